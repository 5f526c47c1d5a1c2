//go:build unix

package zkserver

import (
	"os/exec"
	"syscall"
)

// detach keeps the signals of a terminal away from the guard: it must outlive
// whoever is interrupted, to clean up.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
