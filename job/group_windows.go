package job

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// A group is a command and what it has started.
type group struct{ cmd *exec.Cmd }

// newGroup gives a command that is to start a process group of its own.
func newGroup(cmd *exec.Cmd) group {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	return group{cmd: cmd}
}

// end ends the command with its tree: there is no asking.
func (g group) end() { g.kill() }

// kill ends the command with its tree.
func (g group) kill() {
	if g.cmd.Process == nil || g.cmd.ProcessState != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = exec.CommandContext(ctx, "taskkill", "/T", "/F", "/PID", strconv.Itoa(g.cmd.Process.Pid)).Run()
}
