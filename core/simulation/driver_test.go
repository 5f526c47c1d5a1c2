package simulation

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// A step is something that happens at an instant of the seed's choice.
type step struct {
	key  string
	proc *process // whose; nil is the world
	// wait draws how long after it was asked for the step happens.
	wait func(key string) time.Duration
	run  func() // on the driver's goroutine; it must not block
	at   time.Time
}

// A driver lets steps happen one at a time, and looks in between until everything
// has come to rest.
type driver struct {
	rested func() // called whenever everything has come to rest
	wake   chan struct{}

	mu    sync.Mutex
	fresh []*step

	// the driver's own
	queue  steps
	turns  int
	latest time.Time // when something happened
	moved  *process  // whose step that was
}

func newDriver(rested func()) *driver {
	return &driver{rested: rested, wake: make(chan struct{}, 1)}
}

// add asks for a step. It may be called from anywhere.
func (d *driver) add(s *step) {
	d.mu.Lock()
	d.fresh = append(d.fresh, s)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// collect gives what was asked for since the last time an instant, by key.
func (d *driver) collect() {
	synctest.Wait()
	d.rested()
	d.mu.Lock()
	fresh := d.fresh
	d.fresh = nil
	d.mu.Unlock()
	slices.SortStableFunc(fresh, func(a, b *step) int { return cmp.Compare(a.key, b.key) })
	now := time.Now()
	for _, s := range fresh {
		s.at = now.Add(s.wait(s.key))
		heap.Push(&d.queue, s)
	}
}

// until drives up to an instant, or until enough says so.
func (d *driver) until(end time.Time, enough func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.collect()
		if enough != nil && enough() {
			return
		}
		now := time.Now()
		if len(d.queue) > 0 && !d.queue[0].at.After(now) {
			s, _ := heap.Pop(&d.queue).(*step)
			d.turns++
			d.latest = now
			d.happen(s)
			continue
		}
		if !now.Before(end) {
			return
		}
		next := end
		if enough != nil {
			next = now.Add(50 * time.Millisecond) // to ask again
		}
		if len(d.queue) > 0 && d.queue[0].at.Before(next) {
			next = d.queue[0].at
		}
		timer.Reset(next.Sub(now))
		select {
		case <-timer.C:
		case <-d.wake:
		}
	}
}

// happen runs s, unless its process stands still: then when that goes on.
func (d *driver) happen(s *step) {
	if s.proc != nil && s.proc.hold(s) {
		return
	}
	d.moved = s.proc
	s.run()
}

type steps []*step

func (q *steps) Len() int { return len(*q) }

func (q *steps) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	return a.key < b.key
}

func (q *steps) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

func (q *steps) Push(x any) {
	s, _ := x.(*step)
	*q = append(*q, s)
}

func (q *steps) Pop() any {
	old := *q
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return s
}

// A verdict is how waiting for a step ended.
type verdict uint8

const (
	passed verdict = iota
	lost           // the session ended first
	gaveUp         // the caller's context did
	dead           // the process was killed
)

// pass waits for a step of the process. What ends first decides; of several that end
// in one turn the first of the list does, since a select would toss a coin.
func (p *process) pass(ctx context.Context, key string, wait func(string) time.Duration, done <-chan struct{}) verdict {
	if closed(p.dead) {
		return dead
	}
	happened := make(chan struct{})
	p.world.driver.add(&step{key: p.name + " " + key, proc: p, wait: wait, run: func() { close(happened) }})
	select {
	case <-p.dead:
	case <-happened:
	case <-done:
	case <-ctx.Done():
	}
	switch {
	case closed(p.dead):
		return dead
	case closed(happened):
		return passed
	case closed(done):
		return lost
	}
	return gaveUp
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
