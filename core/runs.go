package core

import (
	"context"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/settings"
	"github.com/elasticron/elasticron/registry"
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
			return j.runs.all(job)
		}
	}
	return nil
}

// Call implements membership.Host.
func (j *job) Call(ctx context.Context, set *settings.Settings, r *firing.Run, own *ownership.Ownership) (err error) {
	if r.Refused == nil {
		if err := j.before(ctx, r); err != nil {
			return err
		}
	}
	s := j.shard(set, r)
	s.own = own
	now := j.scheduler.opts.now
	began := now()
	at := j.runs.begin(&s, began)
	dispatch.Emit(j.scheduler.events, event.ItemCalled{Run: runOf(&s, began)})
	err = ErrGoexit // unless the function returns
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		ended := now()
		j.runs.end(at, ended.Sub(began), err)
		run := runOf(&s, began)
		run.Ended, run.Err = ended, err
		dispatch.Emit(j.scheduler.events, event.ItemReturned{Run: run})
	}()
	if r.Refused != nil {
		return r.Refused
	}
	return j.work.Run(ctx, s)
}

// runOf is what is told of a run that began.
func runOf(s *Shard, began time.Time) event.Run {
	return event.Run{
		Job: s.Job, Instance: s.Instance, TaskID: s.TaskID, Epoch: s.Epoch, Total: s.Total, Item: s.Item, Due: s.Due,
		Source: string(s.Source), Attempt: s.Attempt, Lost: s.Lost, Missed: s.Missed, Fence: int64(s.Fence), Began: began,
	}
}

// runs are the latest ones of a job, in a ring. Its lock is a leaf.
type runs struct {
	mu   sync.Mutex
	most int
	ring []kept     // grows until it has so many
	some *keptShare // of the latest
	next int        // the number of the next run, which is at its remainder by most
}

// A kept run is a quarter of an event.Run: a process with ten thousand jobs keeps half a million.
type kept struct {
	share           *keptShare
	rare            *keptRare
	due, began      int64 // in nanoseconds since 1970
	took            time.Duration
	fence           registry.Revision
	item            int32
	attempt, missed int32
}

// running is what a run took that has not returned.
const running = -1

// A keptShare is what many runs have in common.
type keptShare struct {
	instance     string
	source       Source
	epoch, total int
	due, began   *time.Location
}

// A keptRare is what few have.
type keptRare struct {
	lost string
	err  error
}

func newRuns(n int) *runs {
	if n == 0 {
		n = keptRuns
	}
	return &runs{most: max(n, 0)}
}

// begin keeps a run that begins, and returns its number.
func (r *runs) begin(s *Shard, began time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.next
	r.next++
	if r.most == 0 {
		return n
	}
	share := keptShare{s.Instance, s.Source, s.Epoch, s.Total, s.Due.Location(), began.Location()}
	if r.some == nil || *r.some != share {
		r.some = &share
	}
	k := kept{
		share: r.some, due: s.Due.UnixNano(), began: began.UnixNano(), took: running, fence: s.Fence,
		item: narrow(s.Item), attempt: narrow(s.Attempt), missed: narrow(s.Missed),
	}
	if s.Lost != "" {
		k.rare = &keptRare{lost: s.Lost}
	}
	if n < r.most {
		r.ring = append(r.ring, k)
	} else {
		r.ring[n%r.most] = k
	}
	return n
}

// narrow is n, or the nearest number of 32 bits.
func narrow(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// end says that a run has returned, which may be kept no more.
func (r *runs) end(n int, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 || r.next-n > r.most {
		return
	}
	k := &r.ring[n%r.most]
	if k.took = max(took, 0); err != nil {
		rare := keptRare{err: err}
		if k.rare != nil {
			rare.lost = k.rare.lost
		}
		k.rare = &rare
	}
}

// all are the runs of a job, in the order in which they began.
func (r *runs) all(job string) []event.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []event.Run
	for n := r.next - len(r.ring); n < r.next; n++ {
		all = append(all, r.ring[n%r.most].run(job))
	}
	return all
}

func (k *kept) run(job string) event.Run {
	s := Shard{
		Job: job, Instance: k.share.instance, Source: k.share.source, Epoch: k.share.epoch, Total: k.share.total,
		Item: int(k.item), Attempt: int(k.attempt), Missed: int(k.missed), Fence: k.fence,
		Due: time.Unix(0, k.due).In(k.share.due),
	}
	s.TaskID = taskID(&s)
	began := time.Unix(0, k.began).In(k.share.began)
	run := runOf(&s, began)
	if k.rare != nil {
		run.Lost, run.Err = k.rare.lost, k.rare.err
	}
	if k.took != running {
		run.Ended = began.Add(k.took)
	}
	return run
}
