package core

import (
	"context"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/internal/field"
)

// A Fire is what one instance runs of a round: those of its items that run together.
type Fire struct {
	// Job is the name of the job.
	Job string
	// Due is the instant of the fire. With a fixed delay it belongs to one item alone.
	Due time.Time
	// Instance is the id of this instance.
	Instance string
	// Epoch and Total are those of the items.
	Epoch, Total int
	// Items are the sharding items, ascending. Further ones may join after Before was called.
	Items []int
	// Errs are the errors of items that failed, by item, for After. It must not be changed.
	Errs map[int]error
	// Took is the time from the first begin to the last recorded end, for After.
	Took time.Duration
}

// FireListeners are called on each instance around what it runs of a fire, as ElasticJob's job
// listeners are. They need neither monitoring nor a schedule with rounds, and cost no request.
type FireListeners struct {
	// Before is called before the functions of the fire's items here: they wait for it, each with
	// its place. They start whatever it returns, and when its time is over. They are not called where
	// Stop's context has ended meanwhile: the fire stays owed. Nor are they where the session was lost:
	// the fire is cut, or runs again with failover. An item that was killed has failed.
	Before func(ctx context.Context, f Fire) error
	// After is called when all items of the fire that ran here have ended, and their ends are
	// recorded; not when no function was called. The next fire does not wait for it; Stop does.
	After func(ctx context.Context, f Fire) error
	// Timeout bounds a call: its context ends then, and it is not waited for any longer. 0 is
	// 10 s.
	Timeout time.Duration
}

// WithFireListeners has listeners called around each fire of the job that has this name, on
// this instance. What they return is told as event.FireHeard.
func WithFireListeners(job string, l FireListeners) Option {
	return func(o *options) {
		if o.fires == nil {
			o.fires = map[string]FireListeners{}
		}
		if l.Timeout == 0 {
			l.Timeout = listenTimeout
		}
		o.fires[job] = l
	}
}

func (l FireListeners) validate(job string) error {
	if l.Timeout >= 0 {
		return nil
	}
	e := field.Errorf("FireListeners.Timeout", "is negative; give a duration, or 0 for 10s")
	e.Job = job
	return e
}

// before calls the listener before a fire, once for however many of its items. That takes time: it returns why the
// function is not to be called any more.
func (j *job) before(ctx context.Context, r *firing.Run) error {
	l := j.scheduler.opts.fires[j.name()]
	if l.Before == nil {
		return nil
	}
	r.Fire.Once(func() { j.around(r.Fire, "Before", l.Timeout, l.Before) })
	return r.Over(ctx)
}

// FireEnded implements membership.Host: it calls the listener after a fire. Nobody waits for that but Stop.
func (j *job) FireEnded(f *firing.Fire) {
	if l := j.scheduler.opts.fires[j.name()]; l.After != nil {
		j.calls.joined.Go(func() { j.around(f, "After", l.Timeout, l.After) })
	}
}

func (j *job) around(f *firing.Fire, name string, timeout time.Duration, call func(context.Context, Fire) error) {
	is := f.Now()
	begun := time.Now()
	j.calls.take(name, false)
	_, err := j.calls.bounded(f.Context, name, timeout, func(ctx context.Context) error {
		return call(ctx, Fire{
			Job: j.name(), Due: is.Due, Instance: is.Instance, Epoch: is.Epoch, Total: is.Total, Items: is.Items, Errs: is.Errs, Took: is.Took,
		})
	})
	j.scheduler.emit(event.FireHeard{Job: j.name(), Instance: is.Instance, Due: is.Due, Items: is.Items, Listener: name, Took: time.Since(begun), Err: err})
}
