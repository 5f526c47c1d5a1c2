package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

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
	c.bear((*byte)(p.UnsafePointer()))
}

// addText counts the bytes of a text that somebody else has made; shorter ones may share their memory with others.
func (c *census) addText(s string) {
	if len(s) >= 32 {
		c.bear(unsafe.StringData(s))
	}
}

func (c *census) bear(at *byte) {
	c.born++
	runtime.AddCleanup(at, func(n *atomic.Int64) { n.Add(1) }, &c.freed)
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
		t.locksOnce(s, t.path("lock"), i, locks)
		if i < 20 {
			t.storesOnce(reg, stores)
		}
		if i < 10 {
			ended := t.opensOnce(reg)
			sessions.add(ended)
			t.mustClose(ended)
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

// goneIsForgotten has hundreds of nodes come and go, each seen by a watcher, and keeps nothing of what it was told.
func goneIsForgotten(t *caseRun) {
	const rounds, nodes = 25, 20
	w := t.watch(t.s)
	t.called("Add", w.Add(t.dir, registry.Children))
	told := &census{what: "paths of nodes that were told to be gone"}
	for range rounds {
		t.comeAndGo(w, nodes, told)
	}
	t.step("%d nodes came and went, and their watcher was told", rounds*nodes)
	t.eventually("what was told of nodes that are gone to be freed", func() string {
		runtime.GC()
		return told.kept()
	})
	t.create(t.s, t.path("end"), "end")
	t.drain(w, func(e registry.Event) bool { return string(e.Node.Value) == "end" })
}

// comeAndGo makes so many nodes and deletes them, each time until w has told that.
func (t *caseRun) comeAndGo(w registry.Watcher, nodes int, told *census) {
	var made, gone []registry.Op
	for range nodes {
		path := t.path(strings.ToLower(rand.Text()))
		made, gone = append(made, registry.Create(path, nil)), append(gone, registry.Delete(path, 0))
	}
	for _, ops := range [][]registry.Op{made, gone} {
		t.commit(t.s, ops...)
		left := nodes
		t.drain(w, func(e registry.Event) bool {
			if !e.Synced && e.Node.Exists() == (ops[0].Kind == registry.OpCreate) {
				told.addText(e.Node.Path)
				left--
			}
			return left == 0
		})
	}
}

func (t *caseRun) watchesOnce(s registry.Store, c *census) {
	w, err := s.Watch(t.ctx)
	t.called("Watch", err)
	c.add(w)
	for _, scope := range []registry.Scope{registry.Self, registry.Children} {
		t.called("Add", w.Add(t.dir, scope))
	}
	_, err = w.Next(t.ctx)
	t.called("Next", err)
	t.called("Watcher.Close", w.Close())
}

// locksOnce has a lock by Lock or TryLock, which somebody else may end before its Release.
func (t *caseRun) locksOnce(s registry.Session, dir string, nr int, c *census) {
	lock := s.Lock
	if nr%2 > 0 {
		lock = s.TryLock
	}
	l, err := lock(t.ctx, dir, nil)
	t.called("Lock or TryLock", err)
	c.add(l)
	if nr%4 > 1 {
		t.called("Delete", second(t.s.Commit(t.ctx, registry.Delete(l.Path(), registry.AnyVersion))))
		t.lostLock(l)
	}
	t.called("Release", l.Release(t.ctx))
}

// expiresOnce closes sessions that the service has ended before.
func (t *caseRun) expiresOnce(reg registry.Registry, n int, c *census) {
	var expired []registry.Session
	for range n {
		s := t.opensOnce(reg)
		c.add(s)
		expired = append(expired, s)
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
	t.called("OpenStore", err)
	c.add(st)
	t.watchesOnce(st, &census{})
	t.called("Close of a store", st.Close(t.ctx))
}

// A countedContext counts what waits for its end: contexts that are derived from it and functions of context.AfterFunc.
// It hides the context that it is made from, to which package context would attach them.
type countedContext struct {
	from    context.Context
	waiting *atomic.Int64
}

func (c countedContext) Deadline() (time.Time, bool) { return c.from.Deadline() }
func (c countedContext) Done() <-chan struct{}       { return c.from.Done() }
func (c countedContext) Err() error                  { return c.from.Err() }
func (c countedContext) Value(any) any               { return nil }

// AfterFunc is what package context looks for in a context that is not its own.
func (c countedContext) AfterFunc(f func()) (stop func() bool) {
	c.waiting.Add(1)
	over := sync.OnceFunc(func() { c.waiting.Add(-1) })
	stopped := context.AfterFunc(c.from, func() {
		over()
		f()
	})
	return func() bool {
		over()
		return stopped()
	}
}

// contextKeepsNothing calls everything with a context that lives on, as that of a program does.
func contextKeepsNothing(t *caseRun) {
	reg := t.registry()
	s := t.openOn(reg)
	w := t.watch(s)
	t.called("Add", w.Add(t.dir, registry.Children))
	t.create(t.s, t.path("x"), "") // so that the Commit of storeCalls is refused
	ctx := countedContext{t.ctx, new(atomic.Int64)}
	opened, err := reg.Open(ctx)
	t.called("Open", err)
	defer opened.Close(t.ctx)
	st, err := reg.OpenStore(ctx)
	t.called("OpenStore", err)
	defer st.Close(t.ctx)
	for range 3 {
		for _, store := range []registry.Store{opened, st, s} {
			for name, call := range t.storeCalls(ctx, store) { // its watchers stay open
				if err := call(); !errors.Is(err, registry.ErrExists) {
					t.called(name, err)
				}
			}
			_, err := store.Commit(ctx, registry.Set(t.path("x"), nil, registry.AnyVersion))
			t.called("Commit", err)
		}
		l, err := s.Lock(ctx, t.path("lock"), nil)
		t.called("Lock", err)
		if _, err := opened.TryLock(ctx, t.path("lock"), nil); !errors.Is(err, registry.ErrHeld) {
			t.fatalf("TryLock of what is held: %v", err)
		}
		t.called("Release", l.Release(ctx))
	}
	_, err = w.Next(ctx)
	t.called("Next", err)
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

// called ends the case where a call has failed.
func (t *caseRun) called(what string, err error) {
	if err != nil {
		t.fatalf("%s: %v", what, err)
	}
}
