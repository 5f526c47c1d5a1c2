package main

import "syscall"

// apart keeps a child out of the terminal's Ctrl-C, which its parent answers, and
// lets it die with its parent.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
