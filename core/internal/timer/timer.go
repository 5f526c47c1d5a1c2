// Package timer calls functions at wall-clock instants: any number of them on
// one goroutine and one timer.
//
//	clock := timer.New(time.Now, func(by time.Duration) { ... })
//	a := clock.Timer(func(due time.Time) { ... })
//	a.Set(due)
//	clock.Close()
//
// A timer is one shot; its function may set it again. Functions run one after
// another on the clock's goroutine, so they must be quick. The wall clock is
// looked at again at least every Glance, so that one that was set is noticed and
// told: set forward, timers come at once; set back, they wait until the owner
// sets them anew. What can wait while many timers come due at one instant is poked
// after them (Spare). All methods are safe for concurrent use.
package timer

import (
	"container/heap"
	"runtime"
	"sync"
	"time"
)

// Glance is the longest time for which the wall clock is trusted to go on as it did.
const Glance = 5 * time.Second

// Patience is how long Spare keeps a poke at most, besides the function that is being called then.
const Patience = 250 * time.Millisecond

// jump is the least difference between the wall clock and the monotonic one that
// counts as a clock that was set.
const jump = time.Second

// A Wall is a wall clock that is compared with the monotonic one, so that whoever computes
// with its instants knows when it was set. One goroutine at a time may look at it.
type Wall struct {
	now  func() time.Time
	last time.Time // what now said when the monotonic clock said mono
	mono time.Time
}

// NewWall returns the wall clock that now reads.
func NewWall(now func() time.Time) Wall {
	return Wall{now: now, last: now().Round(0), mono: time.Now()}
}

// Look returns what the clock says, and by how much it was set since it was looked at last: 0
// when that is less than a second.
func (w *Wall) Look() (now time.Time, by time.Duration) {
	now, mono := w.now().Round(0), time.Now()
	by = now.Sub(w.last) - mono.Sub(w.mono)
	w.last, w.mono = now, mono
	if by.Abs() < jump {
		by = 0
	}
	return now, by
}

// Last is what the clock said when it was looked at last.
func (w *Wall) Last() time.Time { return w.last }

// A Clock owns one goroutine from New to Close.
type Clock struct {
	now    func() time.Time
	jumped func(by time.Duration)
	wall   Wall
	mu     sync.Mutex
	queue  queue
	wake   chan struct{}
	stop   chan struct{}
	closed sync.Once
	done   chan struct{}

	behind bool      // more is due than what is being called; guarded by mu
	spared []Poker   // until it is not; guarded by mu
	since  time.Time // when the first of them came, by the monotonic clock; guarded by mu
}

// A Poker is told to go on. Poke must be quick.
type Poker interface{ Poke() }

// New starts a clock that reads now. It calls jumped, on its goroutine, when now
// has moved against the monotonic clock by a second or more.
func New(now func() time.Time, jumped func(by time.Duration)) *Clock {
	c := &Clock{now: now, jumped: jumped, wall: NewWall(now), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go c.run()
	return c
}

// A Timer is one function with at most one due time.
type Timer struct {
	clock *Clock
	call  func(due time.Time)
	due   time.Time // guarded by clock.mu
	index int       // in the queue, or -1; guarded by clock.mu
}

// Timer returns a timer that is not set.
func (c *Clock) Timer(call func(due time.Time)) *Timer {
	return &Timer{clock: c, call: call, index: -1}
}

// Set makes the timer call at due, and no longer at the time it was set to.
func (a *Timer) Set(due time.Time) { a.clock.set(a, due) }

func (c *Clock) set(a *Timer, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.due = due.Round(0)
	if a.index >= 0 {
		heap.Fix(&c.queue, a.index)
	} else {
		heap.Push(&c.queue, a)
	}
	if a.index == 0 {
		c.nudge()
	}
}

// Clear makes the timer not call. A call that has begun goes on.
func (a *Timer) Clear() { a.clock.clear(a) }

func (c *Clock) clear(a *Timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.index >= 0 {
		heap.Remove(&c.queue, a.index)
	}
}

func (c *Clock) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close stops the clock and waits for a call that is under way. It is idempotent
// and must not be called from a timer.
func (c *Clock) Close() {
	c.closed.Do(func() { close(c.stop) })
	<-c.done
}

// Spare pokes p once all functions that are due were called: at once while the clock keeps up, else on its
// goroutine, after them, or between two of them once Patience is over. So work on what is over does not
// delay what is due.
func (c *Clock) Spare(p Poker) {
	if !c.Later(p) {
		p.Poke()
	}
}

// Later is Spare, but while the clock keeps up it does nothing and reports false: for callers that do then what p
// does, and hold a lock which Poke takes.
func (c *Clock) Later(p Poker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.behind {
		return false
	}
	if len(c.spared) == 0 {
		c.since = time.Now()
	}
	c.spared = append(c.spared, p)
	return true
}

func (c *Clock) run() {
	defer close(c.done)
	defer c.end()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if _, by := c.wall.Look(); by != 0 {
			c.jumped(by)
		}
		wait, pending := c.callDue()
		var tick <-chan time.Time
		if pending {
			timer.Reset(min(wait, Glance))
			tick = timer.C
		}
		select {
		case <-tick:
		case <-c.wake:
		case <-c.stop:
			return
		}
	}
}

// few is how many are poked before it is looked again whether anything is due.
const few = 64

// callDue calls what is due, pokes what was spared, and returns the time to the next timer.
func (c *Clock) callDue() (wait time.Duration, pending bool) {
	for {
		select {
		case <-c.stop:
			return 0, false
		default:
		}
		c.mu.Lock()
		now := c.now()
		if !c.isDue(now) {
			c.behind = false
			if spared := c.take(few); len(spared) > 0 {
				c.mu.Unlock()
				runtime.Gosched() // goroutines that were made for what was due come first
				poke(spared)
				continue
			}
			if pending = len(c.queue) > 0; pending {
				wait = c.queue[0].due.Sub(now)
			}
			c.mu.Unlock()
			return wait, pending
		}
		first := c.queue[0]
		heap.Pop(&c.queue)
		due := first.due
		c.behind = c.isDue(now)
		var over []Poker
		if len(c.spared) > 0 && time.Since(c.since) >= Patience {
			over = c.take(len(c.spared))
		}
		c.mu.Unlock()
		poke(over)
		first.call(due)
	}
}

// isDue reports whether any timer is due. The caller holds mu.
func (c *Clock) isDue(now time.Time) bool { return len(c.queue) > 0 && !c.queue[0].due.After(now) }

// take takes what was spared first, n at most. The caller holds mu.
func (c *Clock) take(n int) []Poker {
	n = min(n, len(c.spared))
	taken := c.spared[:n:n]
	if c.spared = c.spared[n:]; len(c.spared) == 0 {
		c.spared = nil
	}
	return taken
}

// end keeps nothing any more.
func (c *Clock) end() {
	c.mu.Lock()
	c.behind = false
	spared := c.take(len(c.spared))
	c.mu.Unlock()
	poke(spared)
}

func poke(all []Poker) {
	for _, p := range all {
		p.Poke()
	}
}

type queue []*Timer

func (q *queue) Len() int           { return len(*q) }
func (q *queue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }
func (q *queue) Swap(i, j int) {
	s := *q
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (q *queue) Push(x any) {
	a, _ := x.(*Timer) // heap.Push is given nothing else
	a.index = len(*q)
	*q = append(*q, a)
}

func (q *queue) Pop() any {
	old := *q
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	a.index = -1
	return a
}
