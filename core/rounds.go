package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/membership"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
)

// A Round is one fire of all items of a job, over all instances.
type Round struct {
	// Job is the name of the job.
	Job string
	// Due is the instant of the fire.
	Due time.Time
	// Merged is how many fires since the round before have no call of their own: they were
	// over together with this one.
	Merged int
	// Attempt is 2 when the instance that was called first has died, else 1.
	Attempt int
	// Instance is the id of this instance.
	Instance string
}

// RoundListeners are called around the rounds of a job.
type RoundListeners struct {
	// AfterAll is called after all items of a round have ended, wherever they ran: each has
	// run, or its outcome is recorded as another. One instance of those that have one is
	// called for a round. What it returns is told as event.RoundHeard.
	AfterAll func(ctx context.Context, r Round) error
	// Timeout bounds a call: its context ends then, and it is not waited for any longer. 0 is
	// 10 s.
	Timeout time.Duration
	// Again lets another instance be called for a round for which this one was called, and
	// died: Round.Attempt is 2 then. The default is that nobody is.
	Again bool
}

// listenTimeout is RoundListeners.Timeout unless it is given.
const listenTimeout = 10 * time.Second

// listenGrace is how long a listener has to return after its context has ended.
const listenGrace = 100 * time.Millisecond

// WithRoundListeners has listeners called around the rounds of the job that has this name.
// Rounds need monitoring, and a schedule that is no fixed delay: Add refuses others.
func WithRoundListeners(job string, l RoundListeners) Option {
	return func(o *options) {
		if o.rounds == nil {
			o.rounds = map[string]RoundListeners{}
		}
		if l.Timeout == 0 {
			l.Timeout = listenTimeout
		}
		o.rounds[job] = l
	}
}

// listens is what others must know of the listeners.
func (l RoundListeners) listens() layout.Listens {
	if l.AfterAll == nil {
		return layout.Listens{}
	}
	return layout.Listens{After: true, Again: l.Again}
}

// validate reports what does not fit the job.
func (l RoundListeners) validate(c JobConfig, delayed bool) error {
	wrong := func(name, problem string) error {
		e := field.Errorf(name, "%s", problem)
		e.Job = c.Name
		return e
	}
	switch {
	case l.Timeout < 0:
		return wrong("RoundListeners.Timeout", "is negative; give a duration, or 0 for 10s")
	case l.listens() == layout.Listens{}:
		return nil
	case c.Monitor == MonitorOff:
		return wrong("Monitor", "without monitoring nobody knows when a round is over; set MonitorOn, or leave WithRoundListeners out")
	case delayed:
		return wrong("Cron", "with a fixed delay each item has fires of its own, and no rounds; use a cron or a rate, or leave WithRoundListeners out")
	}
	return nil
}

// listening is which calls of listeners are under way.
type listening struct {
	mu     sync.Mutex
	busy   [layout.Phases]bool
	joined sync.WaitGroup
}

// take reports whether no call of the phase is under way, of which there is one from now on.
func (x *listening) take(p layout.Phase) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	free := !x.busy[p]
	x.busy[p] = true
	return free
}

func (x *listening) release(p layout.Phase) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy[p] = false
}

// names are the calls that are under way, as Stop names them.
func (x *listening) names(job string) (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.busy[layout.Completed] {
		names = append(names, job+"/AfterAll")
	}
	return names
}

var errBusy = errors.New("the listener has not returned from the round before, and was not called for this one")

// hear calls a listener for a round. It returns when that has, or when its time is over.
func (j *job) hear(ctx context.Context, r membership.Round) error {
	l := j.scheduler.opts.rounds[j.local.Name]
	call := l.AfterAll
	if call == nil {
		return nil
	}
	if !j.listening.take(r.Phase) {
		return errBusy
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.Timeout, fmt.Errorf("the listener took longer than %v: %w", l.Timeout, context.DeadlineExceeded))
	returned := make(chan error, 1)
	j.listening.joined.Go(func() {
		defer cancel()
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			j.listening.release(r.Phase) // before anybody is called for the next round
			j.scheduler.bump()
			returned <- err
		}()
		err = call(ctx, Round{Job: j.local.Name, Due: r.Due, Merged: r.Merged, Attempt: r.Attempt, Instance: r.Instance})
	})
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(listenGrace)
	defer grace.Stop()
	select {
	case err := <-returned:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}
