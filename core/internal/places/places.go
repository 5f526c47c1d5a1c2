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

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// A Run is one run of one item. Its methods are called on one goroutine, in the order
// Enter, Call, Left, or Enter and Dropped.
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
	returned func(item int) // called when a function has returned

	mu      sync.Mutex
	active  int
	queue   []*waiter
	waiting map[int]*waiter
	running map[int]int
	wg      sync.WaitGroup
}

type waiter struct {
	run     Run
	dropped bool
}

// New returns places for limit items at once. returned, which may be nil, is called
// after each function has returned and Left was told.
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
		w := &waiter{run: r}
		at := len(p.queue)
		if r.First() {
			at = slices.IndexFunc(p.queue, func(w *waiter) bool { return !w.run.First() })
			if at < 0 {
				at = len(p.queue)
			}
		}
		p.queue = slices.Insert(p.queue, at, w)
		lazymap.Set(&p.waiting, r.Item(), w)
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
	w.dropped = true
	delete(p.waiting, item)
	return true
}

// Running returns the items whose function has not returned, ascending.
func (p *Places) Running() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.running))
}

// Queued returns the items that wait for a place, ascending.
func (p *Places) Queued() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.waiting))
}

// Idle reports whether no function runs.
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
	for len(p.queue) > 0 {
		w := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		if !w.dropped {
			delete(p.waiting, w.run.Item())
			return w.run
		}
	}
	p.active--
	return nil
}

func (p *Places) one(r Run) {
	if !r.Enter() {
		r.Dropped()
		return
	}
	n := r.Item()
	p.mu.Lock()
	lazymap.Set(&p.running, n, p.running[n]+1)
	p.mu.Unlock()
	begun := time.Now()
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		p.mu.Lock()
		if p.running[n]--; p.running[n] == 0 {
			delete(p.running, n)
		}
		p.mu.Unlock()
		r.Left(err, time.Since(begun))
		if p.returned != nil {
			p.returned(n)
		}
	}()
	err = r.Call()
}
