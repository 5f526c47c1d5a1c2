package core

import (
	"context"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/lane"
	"github.com/elasticron/elasticron/registry"
)

const (
	// controlLanes and recordLanes bound the registry calls that one process has
	// under way: for membership and leading, and for begins and ends.
	controlLanes = 16
	recordLanes  = 64
	// closeWait bounds how long the end of a session is waited for.
	closeWait = 5 * time.Second
)

// A life is one session of the scheduler, with everything that ends with it.
type life struct {
	scheduler *Scheduler
	session   registry.Session
	watcher   registry.Watcher
	ctx       context.Context
	cancel    context.CancelCauseFunc
	control   *lane.Pool
	records   *lane.Pool
	watching  sync.WaitGroup

	mu      sync.Mutex
	routes  map[target]func(registry.Event)
	members []*member
}

type target struct {
	path  string
	scope registry.Scope
}

// newLife starts following the registry in a session.
func newLife(s *Scheduler, ses registry.Session) (*life, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	w, err := ses.Watch(ctx)
	if err != nil {
		cancel(err)
		return nil, err
	}
	l := &life{
		scheduler: s, session: ses, watcher: w, ctx: ctx, cancel: cancel,
		control: lane.NewPool(controlLanes), records: lane.NewPool(recordLanes),
		routes: map[target]func(registry.Event){},
	}
	l.watching.Go(l.follow)
	return l, nil
}

// follow hands events to whoever watches their target.
func (l *life) follow() {
	for {
		events, err := l.watcher.Next(l.ctx)
		if err != nil {
			return // the session has ended, and its owner sees Done
		}
		for _, e := range events {
			l.mu.Lock()
			handle := l.routes[target{e.Path, e.Scope}]
			l.mu.Unlock()
			if handle != nil {
				handle(e)
			}
		}
	}
}

// watch routes a target's events to handle, on the life's one watch goroutine.
func (l *life) watch(path string, scope registry.Scope, handle func(registry.Event)) {
	l.mu.Lock()
	l.routes[target{path, scope}] = handle
	l.mu.Unlock()
	if err := l.watcher.Add(path, scope); err != nil && l.ctx.Err() == nil && l.session.Err() == nil {
		dispatch.Emit(l.scheduler.events, event.Warning{Problem: "cannot watch " + path, Err: err})
	}
}

func (l *life) unwatch(path string, scope registry.Scope) {
	l.mu.Lock()
	delete(l.routes, target{path, scope})
	l.mu.Unlock()
	l.watcher.Remove(path, scope)
}

// join makes the job a member in this life.
func (l *life) join(j *job) {
	m := newMember(l, j)
	l.mu.Lock()
	l.members = append(l.members, m)
	l.mu.Unlock()
	j.mu.Lock()
	j.member = m
	j.mu.Unlock()
	m.task.Poke()
}

func (l *life) all() []*member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*member(nil), l.members...)
}

// end cancels what runs with cause, drops what has not begun, joins every
// goroutine of the life and ends the session. Functions that still run are not
// waited for.
func (l *life) end(cause error) error {
	l.cancel(cause)
	for _, m := range l.all() {
		m.halt(cause)
	}
	l.control.Close()
	l.records.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := l.session.Close(ctx)
	_ = l.watcher.Close() // it has ended with the session
	l.watching.Wait()
	return err
}
