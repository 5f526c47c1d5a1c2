package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A beside is a target that is made while others are. What it prints is held back until
// it is waited for.
type beside struct {
	*step

	held    *held
	cmd     *exec.Cmd
	began   time.Time
	signals chan os.Signal
	ended   chan struct{} // outcome is set
	outcome
}

// lowest is the priority of who gets only the time that nobody else wants.
const lowest = "19"

// beside starts a target in a session of its own, so that all that it starts has the lowest priority and ends with
// stop. From then on a signal is for wait, or for the steps before it.
func (p program) beside(target string) (*beside, error) {
	(&step{program: p, name: target}).say("starts at %s, at the lowest priority, beside the others", time.Now().Format(time.TimeOnly))
	b := &beside{held: &held{to: p.out}, began: time.Now(), signals: make(chan os.Signal, 1), ended: make(chan struct{})}
	p.out = b.held
	b.step = &step{program: p, name: target}
	b.cmd = exec.Command("nice", "-n", lowest, p.make, target) //nolint:gosec,noctx // as in run; stop ends it
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.WaitDelay = b.step, b.step, leftBehind
	apart(b.cmd)
	signal.Notify(b.signals, os.Interrupt, syscall.SIGTERM)
	if err := b.cmd.Start(); err != nil {
		signal.Stop(b.signals)
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	last(b.cmd)
	go func() {
		b.outcome = outcomeOf(b.cmd.Wait())
		signal.Stop(b.signals)
		close(b.ended)
	}()
	return b, nil
}

// unwanted reports whether the other targets are not wanted any more: this one has failed, or a signal has come.
func (b *beside) unwanted() bool {
	select {
	case <-b.ended:
		return b.code != 0
	default:
		return len(b.signals) > 0
	}
}

// stop ends it and all that it has started.
func (b *beside) stop() {
	endAll(b.cmd)
	<-b.ended
}

// wait waits for its end, and says how far it is meanwhile.
func (b *beside) wait() (outcome, row) {
	since := time.Now()
	b.held.release()
	o := b.end(b.began, func() outcome {
		select {
		case <-b.ended:
		case <-b.signals:
			b.stop()
		}
		return b.outcome
	})
	return o, row{Step: b.name, Took: time.Since(since), Result: ", " + inWords(time.Since(b.began)) + " with what it was beside"}
}

// A held writer keeps what it gets until it is released.
type held struct {
	to io.Writer

	mu   sync.Mutex
	kept bytes.Buffer
	open bool
}

func (h *held) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open {
		return h.to.Write(p)
	}
	return h.kept.Write(p)
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
	_, _ = h.kept.WriteTo(h.to) // as with every line that is printed
}
