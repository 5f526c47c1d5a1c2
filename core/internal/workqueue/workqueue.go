// Package workqueue runs tasks on goroutines that exist only while there is work: an
// idle task costs none. A Pool bounds how many run at once; a Task never runs
// twice at the same time, and a Poke that comes while it runs makes it run once
// more.
//
//	pool := workqueue.NewPool(16)
//	task := pool.Task(func() { ... })
//	task.Poke()
//	pool.Close() // refuses later pokes, waits for what runs
//
// All methods are safe for concurrent use.
package workqueue

import "sync"

// A Pool owns the goroutines of its tasks.
type Pool struct {
	mu      sync.Mutex
	max     int
	workers int
	ready   []*Task
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
}

// Task returns a task that is idle. run must not call Pool.Close.
func (p *Pool) Task(run func()) *Task { return &Task{pool: p, run: run} }

// Poke makes the task run soon, or once more when it runs now. It returns at
// once. After Close it does nothing.
func (t *Task) Poke() { t.pool.poke(t) }

func (p *Pool) poke(t *Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	switch t.state {
	case idle:
		t.state = queued
		p.ready = append(p.ready, t)
		if p.workers < p.max {
			p.workers++
			p.wg.Go(p.work)
		}
	case running:
		t.state = again
	}
}

func (p *Pool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready) > 0 {
		t := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		t.state = running
		p.mu.Unlock()
		t.run()
		p.mu.Lock()
		if t.state == again && !p.closed {
			t.state = queued
			p.ready = append(p.ready, t)
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
	for _, t := range p.ready {
		t.state = idle
	}
	p.ready = nil
	p.mu.Unlock()
	p.wg.Wait()
}
