package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// runPatience is how long Run lets items end by themselves.
const runPatience = 10 * time.Second

// Run runs one job until ctx ends, then stops: items have 10 s to end by
// themselves (WithRunPatience), then their contexts are cancelled. When ctx is one of
// signal.NotifyContext, a second interrupt cancels them at once. It returns why the job
// could not run, ErrShutDown when the instance was shut down from outside, or what Stop
// returns.
func Run(ctx context.Context, reg registry.Registry, work Job, cfg JobConfig, opts ...Option) error {
	s := New(reg, opts...)
	if err := s.Add(work, cfg); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	j := s.jobs[0]
	for ended := false; !ended; {
		changed := s.state.next()
		if phase, _ := j.at(); phase == PhaseFailed || phase == PhaseStopped {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			ended = true
		}
	}
	return errors.Join(j.outcome(), s.stopPatiently(ctx, cmp.Or(s.opts.patience, runPatience)))
}

// outcome is why a job that ended by itself did.
func (j *job) outcome() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.why == event.StopShutDown {
		return fmt.Errorf("core: job %q: %w", j.name(), ErrShutDown)
	}
	return j.err
}

// stopPatiently stops, says what it waits for, and gives up waiting at a second interrupt.
func (s *Scheduler) stopPatiently(ctx context.Context, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	again := make(chan os.Signal, 1)
	if interrupted(ctx) { // before it is said that another one is heard
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
	}
	if items := s.stillRunning(); len(items) > 0 {
		s.emit(event.Waiting{For: fmt.Sprintf("%s to end, for at most %v; a second interrupt ends them at once", few(items), patience)})
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(waiting) }()
	select {
	case <-again:
		cancel()
		return <-stopped
	case err := <-stopped:
		return err
	}
}

// interrupted reports whether a signal has ended ctx: signal.NotifyContext says so in
// the cause.
func interrupted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && strings.HasSuffix(cause.Error(), "signal received")
}
