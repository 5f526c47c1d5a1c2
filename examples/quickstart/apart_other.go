//go:build !linux

package main

import "syscall"

// apart has no more to ask for here: a child ends when its input does.
func apart() *syscall.SysProcAttr { return nil }
