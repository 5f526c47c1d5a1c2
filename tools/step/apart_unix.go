//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// apart gives a command that is to be started a session of its own.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// last gives the session of a command that was started the lowest priority of all sessions. Linux with autogroups
// divides the processors among sessions and containers first, and only then by the priorities of processes.
func last(cmd *exec.Cmd) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(lowest), 0) // it is not there elsewhere
}

// endAll ends a command that is apart, and all that it has started.
func endAll(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // they may have ended
