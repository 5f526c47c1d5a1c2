package main

import (
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

// leftBehind is how long an output is waited for that something holds open after a command has ended.
const leftBehind = 5 * time.Second

// execute runs a command to its end. A terminal sends Ctrl-C to the command too; what
// only this process gets is handed on.
func execute(cmd *exec.Cmd) outcome {
	cmd.WaitDelay = leftBehind
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return outcome{code: failed, text: "FAILED: " + err.Error()}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt {
				_ = cmd.Process.Signal(s)
			}
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
