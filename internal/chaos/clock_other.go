//go:build !linux

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// Without a clock that all processes share, and children that die with their parent,
// nothing is run.
const supported = false

const pausing, resuming = syscall.Signal(0), syscall.Signal(0)

func common() time.Duration { return 0 }

func commonOf(time.Time) time.Duration { return 0 }

func apart(*exec.Cmd) {}
