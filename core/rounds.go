package core

import (
	"context"
	"errors"
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

// RoundListeners are called around the rounds of a job: one instance of those that have such a
// listener, for each round and each of the two.
type RoundListeners struct {
	// BeforeAll is called before any item of a round starts, on whichever instance: once all
	// items have begun, those aside that are disabled or still run an older fire. Items wait for
	// it without a place (JobConfig.Concurrency). They start when it has returned nil, and fail
	// this fire with ErrHeldUp where it returns an error: no link sees that, event.ItemEnded tells
	// it. What it returns is told as event.RoundHeard. An instance that has not heard yet that
	// somebody listens, since that one has only just joined, does not wait.
	BeforeAll func(ctx context.Context, r Round) error
	// AfterAll is called after all items of a round have ended, wherever they ran: each has
	// run, or its outcome is recorded as another. What it returns is told as event.RoundHeard.
	AfterAll func(ctx context.Context, r Round) error
	// Timeout bounds a call: its context ends then, and it is not waited for any longer. 0 is
	// 10 s.
	Timeout time.Duration
	// Wait bounds how long an item that has begun waits for the others and for BeforeAll. 0 is
	// twice Timeout. Where several instances listen, the longest counts.
	Wait time.Duration
	// FailLate has an item fail this fire, with ErrHeldUp, where that was too long, where BeforeAll
	// did not return within Timeout, or where its instance died meanwhile. The default is that
	// it starts all the same. event.RoundLate tells for whom it has waited. Where several
	// instances listen, one that wants it is enough.
	FailLate bool
	// Again lets another instance be called for a round for which this one was called, and
	// died: Round.Attempt is 2 then. The default is that nobody is.
	Again bool
}

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
		if l.Wait == 0 {
			l.Wait = 2 * l.Timeout
		}
		o.rounds[job] = l
	}
}

// listens is what others must know of the listeners.
func (l RoundListeners) listens() layout.Listens {
	if l.BeforeAll == nil && l.AfterAll == nil {
		return layout.Listens{}
	}
	is := layout.Listens{After: l.AfterAll != nil, Again: l.Again}
	if l.BeforeAll != nil {
		is.Before, is.Wait, is.Fail = true, l.Wait, l.FailLate
	}
	return is
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
	case l.Wait < 0:
		return wrong("RoundListeners.Wait", "is negative; give a duration, or 0 for twice Timeout")
	case l.listens() == layout.Listens{}:
		return nil
	case c.Monitor == MonitorOff:
		return wrong("Monitor", "without monitoring nobody knows when a round is over; set MonitorOn, or leave WithRoundListeners out")
	case delayed:
		return wrong("Cron", "with a fixed delay each item has fires of its own, and no rounds; use a cron or a rate, or leave WithRoundListeners out")
	}
	return nil
}

// Hear implements membership.Host.
func (j *job) Hear(ctx context.Context, r membership.Round) (unanswered bool, err error) {
	l := j.scheduler.opts.rounds[j.name()]
	call, name := l.AfterAll, "AfterAll"
	if r.Phase == layout.Started {
		call, name = l.BeforeAll, "BeforeAll"
	}
	if call == nil {
		return false, nil
	}
	if !j.calls.take(name, true) {
		return true, errBusy
	}
	return j.calls.bounded(ctx, name, l.Timeout, func(ctx context.Context) error {
		return call(ctx, Round{Job: j.name(), Due: r.Due, Merged: r.Merged, Attempt: r.Attempt, Instance: r.Instance})
	})
}

var errBusy = errors.New("the listener has not returned from the round before, and was not called for this one")
