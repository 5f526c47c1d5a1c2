package core

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/settings"
)

// keptRuns is how many runs of each job are kept.
const keptRuns = 64

// WithKeptRuns sets how many runs of each job Scheduler.Runs knows, the latest ones. 0 is 64,
// negative is none.
func WithKeptRuns(n int) Option { return func(o *options) { o.kept = n } }

// Runs returns the latest runs of a job in this process, in the order in which they began. It costs
// no request. Who wants all of them has a listener (event.ItemCalled, event.ItemReturned), or a sink
// (package tracing).
func (s *Scheduler) Runs(job string) []event.Run {
	for _, j := range s.all() {
		if j.name() == job {
			return j.runs.all()
		}
	}
	return nil
}

// Call implements membership.Host.
func (j *job) Call(ctx context.Context, set *settings.Settings, r *firing.Run, own *ownership.Ownership) (err error) {
	s := j.shard(set, r)
	s.own = own
	now := j.scheduler.opts.now
	run := &event.Run{
		Job: s.Job, Instance: s.Instance, TaskID: s.TaskID, Epoch: s.Epoch, Total: s.Total, Item: s.Item, Due: s.Due,
		Source: string(s.Source), Attempt: s.Attempt, Lost: s.Lost, Missed: s.Missed, Fence: int64(s.Fence), Began: now(),
	}
	j.runs.begin(run)
	dispatch.Emit(j.scheduler.events, event.ItemCalled{Run: *run})
	err = ErrGoexit // unless the function returns
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		dispatch.Emit(j.scheduler.events, event.ItemReturned{Run: j.runs.end(run, func() { run.Ended, run.Err = now(), err })})
	}()
	if r.Refused != nil {
		return r.Refused
	}
	j.before(r.Fire)
	return j.work.Run(ctx, s)
}

// runs are the latest ones of a job, in a ring. Its lock is a leaf.
type runs struct {
	mu   sync.Mutex
	most int
	ring []*event.Run // grows until it has so many
	next int          // the oldest of as many
}

func newRuns(n int) *runs {
	if n == 0 {
		n = keptRuns
	}
	return &runs{most: max(n, 0)}
}

func (r *runs) begin(run *event.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.ring) < r.most:
		r.ring = append(r.ring, run)
	case r.most > 0:
		r.ring[r.next] = run
		r.next = (r.next + 1) % r.most
	}
}

// end changes a run, which may be kept no more, and returns it.
func (r *runs) end(run *event.Run, change func()) event.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	return *run
}

func (r *runs) all() []event.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []event.Run
	for i := range r.ring {
		all = append(all, *r.ring[(r.next+i)%len(r.ring)])
	}
	return all
}
