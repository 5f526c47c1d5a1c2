//go:build unix

package pgserver

import (
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// detach keeps the signals of a terminal away from the guard: it must outlive
// whoever is interrupted, to clean up.
func detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// become makes a command run as somebody else.
func become(cmd *exec.Cmd, u *user.User) {
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func kill(pid int)         { _ = syscall.Kill(pid, syscall.SIGKILL) }
func suspend(pid int) bool { return syscall.Kill(pid, syscall.SIGSTOP) == nil }
func resume(pid int)       { _ = syscall.Kill(pid, syscall.SIGCONT) }
