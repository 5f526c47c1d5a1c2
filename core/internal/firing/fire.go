package firing

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Fire is the items of one due time that run together here. Its methods are safe for
// concurrent use.
type Fire struct {
	// Context is that of the runs.
	Context context.Context

	f            *Firing
	first        sync.Once
	once         chan struct{} // closed when what is done once is done
	due          time.Time
	instance     string
	epoch, total int
	begun        time.Time

	// Guarded by the firing's lock.
	items   []int
	pending int
	failed  map[int]error
	called  int // how many functions were, or are about to be, and may have returned
}

// newFire makes a fire that has not begun.
func newFire(f *Firing, due time.Time) *Fire {
	return &Fire{Context: f.cfg.Context, f: f, once: make(chan struct{}), due: due}
}

// A FireState is what a fire has come to.
type FireState struct {
	Instance     string
	Due          time.Time
	Epoch, Total int
	Items        []int // ascending
	Errs         map[int]error
	Took         time.Duration
}

// Once calls do at the first call, and returns when that has returned, at each. Nobody waits on
// a lock for it: a test whose clock is not real would stand still.
func (x *Fire) Once(do func()) {
	mine := false
	x.first.Do(func() { mine = true })
	if !mine {
		<-x.once
		return
	}
	defer close(x.once)
	do()
}

// Now is what the fire has come to.
func (x *Fire) Now() FireState { return x.f.stateOf(x) }

func (f *Firing) stateOf(x *Fire) FireState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return x.now()
}

// now is Now. The caller holds the firing's lock.
func (x *Fire) now() FireState {
	items := slices.Clone(x.items)
	slices.Sort(items)
	return FireState{
		Instance: x.instance, Due: x.due, Epoch: x.epoch, Total: x.total, Items: slices.Compact(items), Errs: maps.Clone(x.failed), Took: time.Since(x.begun),
	}
}
