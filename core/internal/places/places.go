package places

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
)

// ErrGoexit is the error of a function that called runtime.Goexit, as t.FailNow does.
var ErrGoexit = errors.New("the function called runtime.Goexit")

// A PanicError is the error of a function that panicked.
type PanicError struct {
	// Value is what was given to panic.
	Value any
	// Stack is the stack of the panic, as runtime/debug.Stack writes it.
	Stack []byte
}

// Error never panics: the value may do so when it is printed, and then the text has its type.
func (e *PanicError) Error() (text string) {
	if e == nil {
		return "panic"
	}
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: %T", e.Value)
		}
	}()
	return fmt.Sprintf("panic: %v", e.Value)
}

// A Run is one run of one item. Its methods are called on one goroutine, in the order
// Enter, Call, Left, or Enter and Dropped. From before Enter until Call has returned, or Enter
// has said no, the item counts as one whose function runs.
type Run interface {
	// Item is the sharding item.
	Item() int
	// First reports whether it goes before others that wait for a place.
	First() bool
	// Enter is asked when there is a place. False drops the run.
	Enter() bool
	// Call does the work.
	Call() error
	// Left is told what Call returned, and how long it took.
	Left(err error, took time.Duration)
	// Dropped is told that Call will not be called.
	Dropped()
}

// Places belongs to one job.
type Places struct {
	limit    int
	returned func(item int) // called when a function runs no more

	mu      sync.Mutex
	active  int
	first   queue // what goes before others
	others  queue
	waiting map[int]*waiter
	running map[int]int
	wg      sync.WaitGroup
}

// A queue is what waits for a place, in its order.
type queue struct {
	all     []*waiter
	dropped int // of them
}

func (q *queue) add(r Run) *waiter {
	w := &waiter{run: r, in: q}
	q.all = append(q.all, w)
	return w
}

// next takes the first run out that was not dropped, or returns nil.
func (q *queue) next() *waiter {
	for len(q.all) > 0 {
		w := q.all[0]
		q.all[0] = nil
		if q.all = q.all[1:]; w.run != nil {
			return w
		}
		q.dropped--
	}
	return nil
}

// drop takes a run out. Who was dropped is not kept: while a function does not return there may be ever more of them.
func (q *queue) drop(w *waiter) {
	w.run = nil
	if q.dropped++; 2*q.dropped > len(q.all) {
		q.all = slices.DeleteFunc(q.all, func(w *waiter) bool { return w.run == nil })
		q.dropped = 0
	}
}

type waiter struct {
	run Run // nil: it was dropped
	in  *queue
}

// New returns places for limit items at once. returned, which may be nil, is called
// after each function has returned and Left was told, or was not called and Dropped was.
func New(limit int, returned func(item int)) *Places {
	return &Places{limit: limit, returned: returned}
}

// Limit is how many run at once.
func (p *Places) Limit() int { return p.limit }

// Submit has the run's function called, at once or when a place is free: those that go
// first before the others, each in the order of submission.
func (p *Places) Submit(r Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active >= p.limit {
		q := &p.others
		if r.First() {
			q = &p.first
		}
		lazymap.Set(&p.waiting, r.Item(), q.add(r))
		return
	}
	p.active++
	p.wg.Go(func() { p.work(r) })
}

// Drop takes the item's run out of those that wait for a place. It reports whether it
// was there; Dropped is not called then.
func (p *Places) Drop(item int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[item]
	if w == nil {
		return false
	}
	w.in.drop(w)
	delete(p.waiting, item)
	return true
}

// Running returns the items whose function has not returned, or is about to be called, ascending.
func (p *Places) Running() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.running))
}

// Runs reports whether the function of an item has not returned, or is about to be called.
func (p *Places) Runs(item int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[item] > 0
}

// Queued returns the items that wait for a place, ascending.
func (p *Places) Queued() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.waiting))
}

// Idle reports whether no function runs, or is about to be called.
func (p *Places) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.running) == 0
}

// Wait joins all goroutines. Nothing may be submitted meanwhile but by runs.
func (p *Places) Wait() { p.wg.Wait() }

// work runs r, and then what waits for a place.
func (p *Places) work(r Run) {
	clean := false
	defer func() {
		if clean {
			return
		}
		// The function has ended this goroutine: another one goes on.
		p.mu.Lock()
		defer p.mu.Unlock()
		if next := p.next(); next != nil {
			p.wg.Go(func() { p.work(next) })
		}
	}()
	for r != nil {
		p.one(r)
		p.mu.Lock()
		r = p.next()
		p.mu.Unlock()
	}
	clean = true
}

// next takes the first run that waits, or gives the place up. The caller holds mu.
func (p *Places) next() Run {
	w := p.first.next()
	if w == nil {
		w = p.others.next()
	}
	if w == nil {
		p.active--
		return nil
	}
	if n := w.run.Item(); p.waiting[n] == w { // else a session after it has begun the item, too
		delete(p.waiting, n)
	}
	return w.run
}

func (p *Places) one(r Run) {
	n := r.Item()
	p.mu.Lock() // before Enter: whoever sees that nothing runs, and that Enter will say no from now on, relies on it
	lazymap.Set(&p.running, n, p.running[n]+1)
	p.mu.Unlock()
	if !r.Enter() {
		p.over(n)
		r.Dropped()
		p.tell(n)
		return
	}
	begun := time.Now()
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		p.over(n)
		r.Left(err, time.Since(begun))
		p.tell(n)
	}()
	err = r.Call()
}

// over says that the function of an item runs no more.
func (p *Places) over(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[n]--; p.running[n] == 0 {
		delete(p.running, n)
	}
}

func (p *Places) tell(n int) {
	if p.returned != nil {
		p.returned(n)
	}
}
