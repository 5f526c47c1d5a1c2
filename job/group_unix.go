//go:build unix

package job

import (
	"os/exec"
	"syscall"
)

// A group is the process group of a command.
type group struct{ cmd *exec.Cmd }

// newGroup puts a command that is to start into a process group of its own.
func newGroup(cmd *exec.Cmd) group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return group{cmd: cmd}
}

// end asks all processes of the group to end.
func (g group) end() { g.signal(syscall.SIGTERM) }

// kill ends all processes of the group that are left.
func (g group) kill() { g.signal(syscall.SIGKILL) }

// signal does nothing when the command has not started, or nobody is left.
func (g group) signal(s syscall.Signal) {
	if g.cmd.Process != nil {
		_ = syscall.Kill(-g.cmd.Process.Pid, s)
	}
}
