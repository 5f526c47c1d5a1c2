package core

import (
	"slices"
	"sync"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
)

// A job is one job of a scheduler, over all its lives.
type job struct {
	scheduler *Scheduler
	work      Job
	local     JobConfig
	limit     int

	mu      sync.Mutex
	running map[int]int // item → functions that have not returned
	active  int
	waiting []launch
	member  *member // of the current life
	phase   Phase
	err     error
	wait    string
}

// A launch is one run of an item: its function, and who is told of its result.
type launch struct {
	item int
	run  func() error
	done func(error)
}

// start runs an item's function on a goroutine, at once when fewer than limit run.
func (j *job) start(l launch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running[l.item]++
	if j.active >= j.limit {
		j.waiting = append(j.waiting, l)
		return
	}
	j.active++
	j.scheduler.runs.Go(func() { j.runAll(l) })
}

// runAll runs l, and then what waits for a place.
func (j *job) runAll(l launch) {
	for {
		err := l.run()
		j.returned(l.item)
		l.done(err)
		j.mu.Lock()
		if len(j.waiting) == 0 {
			j.active--
			j.mu.Unlock()
			j.scheduler.bump()
			return
		}
		l = j.waiting[0]
		j.waiting = j.waiting[1:]
		j.mu.Unlock()
	}
}

func (j *job) returned(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[n]--; j.running[n] == 0 {
		delete(j.running, n)
	}
}

// runs reports whether a function of the item has not returned.
func (j *job) runs(n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.running[n] > 0
}

// runningItems returns the items whose function has not returned, sorted.
func (j *job) runningItems() []int {
	j.mu.Lock()
	defer j.mu.Unlock()
	items := make([]int, 0, len(j.running))
	for n := range j.running {
		items = append(items, n)
	}
	slices.Sort(items)
	return items
}

// enter changes the phase. err is kept for PhaseFailed.
func (j *job) enter(p Phase, err error) {
	j.mu.Lock()
	changed := j.phase != p
	j.phase, j.err = p, err
	j.mu.Unlock()
	if changed {
		j.scheduler.bump()
	}
}

// waits says what the job waits for; "" is nothing.
func (j *job) waits(what string) {
	j.mu.Lock()
	changed := j.wait != what
	j.wait = what
	j.mu.Unlock()
	if changed {
		dispatch.Emit(j.scheduler.events, event.Waiting{Job: j.local.Name, For: what})
		j.scheduler.bump()
	}
}
