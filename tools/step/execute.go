package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// An outcome is how a command ended: an exit code, and words for people.
type outcome struct {
	code int
	text string
}

// signalled is what shells add to the number of the signal that ended a program.
const signalled = 128

// execute runs a command to its end, or terminates it when ctx ends. A terminal sends Ctrl-C to the
// command too; what only this process gets is handed on. A command with a process group of its own gets
// every signal, and all that it has started does.
func execute(ctx context.Context, cmd *exec.Cmd) outcome {
	cmd.WaitDelay = 5 * time.Second // what a command leaves behind may hold its output open
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return outcome{code: failed, text: "FAILED: " + err.Error()}
	}
	grouped := cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid
	tell := func(s syscall.Signal) {
		if grouped {
			_ = syscall.Kill(-cmd.Process.Pid, s)
		} else if s != syscall.SIGINT {
			_ = cmd.Process.Signal(s)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for over := ctx.Done(); ; {
		select {
		case s := <-signals:
			if s, is := s.(syscall.Signal); is {
				tell(s)
			}
		case <-over:
			over = nil
			tell(syscall.SIGTERM)
		case err := <-ended:
			return outcomeOf(err)
		}
	}
}

func outcomeOf(err error) outcome {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return outcome{text: "ok"}
	}
	o := outcome{code: failed, text: "FAILED: " + err.Error()}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		o.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			o.code = signalled + int(status.Signal())
		}
	}
	return o
}
