// Package workqueue runs tasks on goroutines that exist only while there is work: an
// idle task costs none. A Pool bounds how many run at once; a Task never runs
// twice at the same time, and a Poke that comes while it runs makes it run once
// more. Tasks run in the order in which they were poked, those that were pressed
// before all others.
//
//	pool := workqueue.NewPool(16)
//	task := pool.Task(func() { ... })
//	task.Poke()
//	task.Press()
//	pool.Close() // refuses later pokes, waits for what runs
//
// All methods are safe for concurrent use.
package workqueue

import (
	"slices"
	"sync"
)

// A Pool owns the goroutines of its tasks.
type Pool struct {
	mu      sync.Mutex
	max     int
	workers int
	ready   []*Task // some of them may have run since, or be among the pressed
	pressed []*Task
	closed  bool
	wg      sync.WaitGroup
}

// NewPool returns a pool that runs at most limit tasks at once.
func NewPool(limit int) *Pool { return &Pool{max: limit} }

type state uint8

const (
	idle state = iota
	queued
	running
	again // running, and poked since
)

// A Task is work that may be needed again and again.
type Task struct {
	pool  *Pool
	run   func()
	state state // guarded by pool.mu
	hurry bool  // it is among the pressed, likewise
}

// Task returns a task that is idle. run must not call Pool.Close.
func (p *Pool) Task(run func()) *Task { return &Task{pool: p, run: run} }

// Poke makes the task run soon, or once more when it runs now. It returns at
// once. After Close it does nothing.
func (t *Task) Poke() { t.pool.poke(t, false) }

// Press is Poke for what others wait for: the task runs before all that nobody has
// pressed, also where it was poked before.
func (t *Task) Press() { t.pool.poke(t, true) }

func (p *Pool) poke(t *Task, hurry bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	switch t.state {
	case idle:
		p.queue(t, hurry)
		if p.workers < p.max {
			p.workers++
			p.wg.Go(p.work)
		}
	case queued:
		if hurry && !t.hurry {
			p.queue(t, true)
		}
	case running, again:
		t.state, t.hurry = again, t.hurry || hurry
	}
}

// queue has a task run. The caller holds mu.
func (p *Pool) queue(t *Task, hurry bool) {
	t.state, t.hurry = queued, hurry
	if hurry {
		p.pressed = append(p.pressed, t)
	} else {
		p.ready = append(p.ready, t)
	}
}

// next takes out the task that is to run, nil where there is none. The caller holds mu.
func (p *Pool) next() *Task {
	if t := pop(&p.pressed); t != nil {
		return t
	}
	for {
		if t := pop(&p.ready); t == nil || t.state == queued && !t.hurry {
			return t
		}
	}
}

func pop(from *[]*Task) (t *Task) {
	if all := *from; len(all) > 0 {
		t, all[0] = all[0], nil
		*from = all[1:]
	}
	return t
}

func (p *Pool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := p.next(); t != nil; t = p.next() {
		t.state, t.hurry = running, false
		p.mu.Unlock()
		t.run()
		p.mu.Lock()
		if t.state == again && !p.closed {
			p.queue(t, t.hurry)
		} else {
			t.state = idle
		}
	}
	p.workers--
}

// Close refuses later pokes, drops what is queued, and returns when nothing
// runs any more. It is idempotent.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, t := range slices.Concat(p.ready, p.pressed) {
		if t.state == queued {
			t.state = idle
		}
	}
	p.ready, p.pressed = nil, nil
	p.mu.Unlock()
	p.wg.Wait()
}
