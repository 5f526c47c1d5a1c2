//go:build !unix

package pgserver

import (
	"os/exec"
	"os/user"
)

func detach(*exec.Cmd)             {}
func become(*exec.Cmd, *user.User) {}
func kill(int)                     {}
func suspend(int) bool             { return false }
func resume(int)                   {}
