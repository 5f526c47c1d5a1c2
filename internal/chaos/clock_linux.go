package main

import (
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// origin ties the monotonic clock of the machine, which all processes share, to the one that the time package reads
// here. A process may stand still between two readings, so the closest of some counts: by two milliseconds one process
// of a run once wrote down everything too early.
var origin, originTime = func() (origin time.Duration, at time.Time) {
	closest := time.Hour
	for range 100 {
		before := machineTime()
		now := time.Now()
		if apart := machineTime() - before; apart < closest {
			closest, origin, at = apart, before+apart/2, now
		}
	}
	return origin, at
}()

func machineTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(ts.Nano())
}

// common is the common time of all processes of a run.
func common() time.Duration { return origin + time.Since(originTime) }

// commonOf is the common time of an instant with a monotonic reading.
func commonOf(t time.Time) time.Duration { return origin + t.Sub(originTime) }

// apart keeps a child out of the terminal's Ctrl-C, which its parent answers, and lets
// it die with its parent.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

const supported = true

// A process that is sent pausing stands still until it is sent resuming.
const pausing, resuming = syscall.SIGSTOP, syscall.SIGCONT
