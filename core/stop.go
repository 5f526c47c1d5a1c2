package core

import (
	"context"
	"fmt"
	"time"
)

// Stop begins no more fires, waits for running items to end, records their ends
// and leaves the registry. When ctx ends first the items' contexts are cancelled
// with ErrStopped; those that do not return within a second are named in a
// *RunningError. They keep what they own until they return: the session stays
// open for them, and Stop may be called again to wait on. It is idempotent and
// legal before Start.
func (s *Scheduler) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	started := s.started
	s.mu.Unlock()
	if first {
		s.cancel()
		if !started {
			close(s.done)
		}
		s.bump()
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.hurry = true
	s.mu.Unlock()
	s.bump()
	// Cancelled items have a moment to return; once they have, only the registry is
	// waited for, and every request to it is bounded.
	for _, wait := range []time.Duration{stopGrace, 2 * closeWait} {
		timer := time.NewTimer(wait)
		select {
		case <-s.done:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if items := s.stillRunning(); len(items) > 0 {
			return &RunningError{Items: items, Err: context.Cause(ctx)}
		}
	}
	return fmt.Errorf("core: stop: the registry does not answer; what this instance owns is freed when its session expires: %w", context.Cause(ctx))
}

// Done is closed when the scheduler has stopped and everything is joined.
func (s *Scheduler) Done() <-chan struct{} { return s.done }

func (s *Scheduler) stillRunning() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, j := range s.jobs {
		for _, n := range j.runningItems() {
			names = append(names, fmt.Sprintf("%s/%d", j.local.Name, n))
		}
	}
	return names
}
