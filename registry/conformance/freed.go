package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A census counts what an adapter has handed out, and what of it the collector has freed.
type census struct {
	what  string
	born  int
	freed atomic.Int64
}

// add counts v. What is no pointer, or so small that it shares its memory with others, cannot be told apart.
func (c *census) add(v any) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Type().Elem().Size() < 32 {
		return
	}
	c.born++
	runtime.AddCleanup((*byte)(p.UnsafePointer()), func(n *atomic.Int64) { n.Add(1) }, &c.freed)
}

// kept says how many are still there, "" for next to none: the last one may stand in something that is used again.
func (c *census) kept() string {
	if left := c.born - int(c.freed.Load()); left > c.born/10 {
		return fmt.Sprintf("%d of %d %s are not freed", left, c.born, c.what)
	}
	return ""
}

// closedIsFreed hands nothing to the case that would keep it: no Cleanup, no follower, no observed session.
func closedIsFreed(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	seen := t.registry()
	s := t.openOn(seen)
	reg := unobserved(seen)
	watchers := &census{what: "watchers that were closed, their session open,"}
	locks := &census{what: "locks that were released, their session open,"}
	sessions := &census{what: "sessions that were closed, their registry open,"}
	stores := &census{what: "stores that were closed, their registry open,"}
	for i := range 40 {
		t.watchesOnce(s, watchers)
		t.locksOnce(s, t.path("lock"), locks)
		if i < 20 {
			t.storesOnce(reg, stores)
		}
		if i < 10 {
			t.mustClose(t.opensOnce(reg, sessions))
		}
	}
	t.expiresOnce(reg, 10, sessions)
	t.step("%d watchers closed, %d locks released, %d sessions and %d stores closed", watchers.born, locks.born, sessions.born, stores.born)
	t.eventually("what was closed and released to be freed", func() string {
		runtime.GC()
		var kept []string
		for _, c := range []*census{watchers, locks, sessions, stores} {
			if some := c.kept(); some != "" {
				kept = append(kept, some)
			}
		}
		return strings.Join(kept, "; ")
	})
	t.alive(s)
}

func (t *caseRun) watchesOnce(s registry.Store, c *census) {
	w, err := s.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	c.add(w)
	for _, scope := range []registry.Scope{registry.Self, registry.Children} {
		if err := w.Add(t.dir, scope); err != nil {
			t.fatalf("Add: %v", err)
		}
	}
	if _, err := w.Next(t.ctx); err != nil {
		t.fatalf("Next: %v", err)
	}
	if err := w.Close(); err != nil {
		t.fatalf("Watcher.Close: %v", err)
	}
}

func (t *caseRun) locksOnce(s registry.Session, dir string, c *census) {
	l, err := s.Lock(t.ctx, dir, nil)
	if err != nil {
		t.fatalf("Lock: %v", err)
	}
	c.add(l)
	if err := l.Release(t.ctx); err != nil {
		t.fatalf("Release: %v", err)
	}
}

// opensOnce opens a session that has a watcher and holds a lock to its end.
func (t *caseRun) opensOnce(reg registry.Registry, c *census) registry.Session {
	s, err := reg.Open(t.ctx)
	if err != nil {
		t.fatalf("Open: %v", err)
	}
	c.add(s)
	w, err := s.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	if _, err := s.TryLock(t.ctx, t.path("lock "+s.ID()), nil); err != nil {
		t.fatalf("TryLock: %v", err)
	}
	return s
}

// expiresOnce closes sessions that the service has ended before.
func (t *caseRun) expiresOnce(reg registry.Registry, n int, c *census) {
	var expired []registry.Session
	for range n {
		expired = append(expired, t.opensOnce(reg, c))
	}
	for _, s := range expired {
		t.must("Expire", t.h.Faults().Expire(s))
	}
	for _, s := range expired {
		t.lostSoon(s)
		_ = s.Close(t.ctx) // what it says of a lost session is CloseAfterLossEndsAtService's
	}
}

func (t *caseRun) storesOnce(reg registry.Registry, c *census) {
	st, err := reg.OpenStore(t.ctx)
	if err != nil {
		t.fatalf("OpenStore: %v", err)
	}
	c.add(st)
	t.watchesOnce(st, &census{})
	if err := st.Close(t.ctx); err != nil {
		t.fatalf("Close of a store: %v", err)
	}
}

// A countedContext counts what waits for its end: contexts that are derived from it and functions of
// context.AfterFunc. It hides what it is made from, to which package context would attach them.
type countedContext struct {
	done    <-chan struct{}
	cause   func() error
	waiting *atomic.Int64
}

func countWaiting(ctx context.Context) countedContext {
	return countedContext{done: ctx.Done(), cause: ctx.Err, waiting: new(atomic.Int64)}
}

func (c countedContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c countedContext) Done() <-chan struct{}       { return c.done }
func (c countedContext) Err() error                  { return c.cause() }
func (c countedContext) Value(any) any               { return nil }

// AfterFunc is what package context looks for in a context that is not its own.
func (c countedContext) AfterFunc(f func()) (stop func() bool) {
	c.waiting.Add(1)
	var over atomic.Bool
	first := func() bool {
		if over.Swap(true) {
			return false
		}
		c.waiting.Add(-1)
		return true
	}
	go func() {
		<-c.done
		if first() {
			f()
		}
	}()
	return first
}

// contextKeepsNothing calls everything with a context that lives on, as that of a program does.
func contextKeepsNothing(t *caseRun) {
	reg := t.registry()
	s := t.openOn(reg)
	w := t.watch(s)
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	ctx := countWaiting(t.ctx)
	opened, err := reg.Open(ctx)
	if err != nil {
		t.fatalf("Open: %v", err)
	}
	defer opened.Close(t.ctx)
	st, err := reg.OpenStore(ctx)
	if err != nil {
		t.fatalf("OpenStore: %v", err)
	}
	defer st.Close(t.ctx)
	for i := range 3 {
		for _, store := range []registry.Store{opened, st, s} {
			dir := t.path(fmt.Sprint("dir-", i))
			_, err := store.Commit(ctx, registry.Create(dir, nil))
			t.called("Commit", err)
			_, err = store.Commit(ctx, registry.Delete(dir, 0))
			t.called("Commit", err)
			_, err = store.Commit(ctx, registry.Delete(dir, 0))
			if !errors.Is(err, registry.ErrNotFound) {
				t.fatalf("Delete of what is not there: %v", err)
			}
			_, err = store.Get(ctx, t.dir, dir)
			t.called("Get", err)
			_, err = store.Children(ctx, t.dir)
			t.called("Children", err)
			t.called("Sync", store.Sync(ctx))
			kept, err := store.Watch(ctx) // it is open to the end
			t.called("Watch", err)
			defer kept.Close()
		}
		l, err := s.Lock(ctx, t.path("lock"), nil)
		t.called("Lock", err)
		_, err = opened.TryLock(ctx, t.path("lock"), nil)
		if !errors.Is(err, registry.ErrHeld) {
			t.fatalf("TryLock of what is held: %v", err)
		}
		t.called("Release", l.Release(ctx))
	}
	if _, err := w.Next(ctx); err != nil {
		t.fatalf("Next: %v", err)
	}
	held, err := s.Lock(ctx, t.path("lock"), nil)
	t.called("Lock", err)
	t.step("all calls have returned, with a context that goes on")
	t.eventually("nothing to wait for the context of calls that have returned", func() string {
		if n := ctx.waiting.Load(); n != 0 {
			return fmt.Sprintf("%d wait for it", n)
		}
		return ""
	})
	t.held(held)
	t.release(held)
}

func (t *caseRun) called(what string, err error) {
	if err != nil {
		t.fatalf("%s: %v", what, err)
	}
}
