package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// runPatience is how long Run, and a Start that fails, let items end by themselves.
const runPatience = 10 * time.Second

// sameInterrupt is how soon after the first interrupt another one is the same: what sends one to a process and to its
// group, as timeout(1) does, sends two.
const sameInterrupt = 100 * time.Millisecond

// Run runs one job until ctx ends: New, Add, and Scheduler.Run.
func Run(ctx context.Context, reg registry.Registry, work Job, cfg JobConfig, opts ...Option) error {
	s := New(reg, opts...)
	if err := s.Add(work, cfg); err != nil {
		return err
	}
	return s.Run(ctx)
}

// Run starts the jobs, waits until ctx ends, and stops: items have 10 s to end by
// themselves (WithRunPatience), then their contexts are cancelled. When ctx is one of
// signal.NotifyContext, a second interrupt cancels them at once. It stops earlier when every job has ended by
// itself, or Stop was called; as long as one goes on, those that failed are only told
// (event.Stopped). It returns why a job could not run, ErrShutDown for one that was shut down from
// outside, and what Stop returns, joined. It takes the place of Start.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	var some *StartError
	if err := s.start(ctx); err != nil && !errors.As(err, &some) {
		return err
	}
	s.await(ctx)
	return errors.Join(s.outcome(), s.stopPatiently(ctx))
}

// await waits until ctx ends, nothing goes on any more, or somebody stops the scheduler.
func (s *Scheduler) await(ctx context.Context) {
	var goes *job // one that went on when it was looked at last, to ask that first: there may be ten thousand
	for {
		changed := s.state.next()
		if goes == nil || goes.over() {
			all := s.all()
			i := slices.IndexFunc(all, func(j *job) bool { return !j.over() })
			if i < 0 && len(all) > 0 {
				return
			}
			goes = nil
			if i >= 0 {
				goes = all[i]
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-s.halt.Done():
			return
		}
	}
}

// over reports whether the job cannot run, or has left for good.
func (j *job) over() bool {
	phase, _ := j.at()
	return phase == PhaseFailed || phase == PhaseStopped
}

// outcome joins why jobs ended by themselves.
func (s *Scheduler) outcome() error {
	var all []error
	for _, j := range s.all() {
		all = append(all, j.outcome())
	}
	return errors.Join(all...)
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
func (s *Scheduler) stopPatiently(ctx context.Context) error {
	patience := cmp.Or(s.opts.patience, runPatience)
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
	for began := time.Now(); ; {
		select {
		case <-again:
			if time.Since(began) > sameInterrupt {
				cancel()
			}
		case err := <-stopped:
			return err
		}
	}
}

// interrupted reports whether a signal has ended ctx: signal.NotifyContext says so in
// the cause.
func interrupted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && strings.HasSuffix(cause.Error(), "signal received")
}
