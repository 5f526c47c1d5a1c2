//go:build unix

package testbed

import (
	"os/exec"
	"syscall"
)

// detachProcess keeps the signals of a terminal away from a guard: it must outlive
// whoever is interrupted.
func detachProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
