package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func closeRemoves(t *caseRun) {
	owner, other := t.open(), t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil), registry.CreateEphemeral(t.path("b"), nil), registry.Create(t.path("p"), nil))
	t.commit(other, registry.CreateEphemeral(t.path("c"), nil))
	t.changesKind(owner)
	t.mustClose(owner)
	t.sync(t.s)
	t.absent(t.s, t.path("a"), t.path("b"), t.path("once persistent"))
	t.present(t.s, t.path("c"))
	t.present(t.s, t.path("p"))
	t.present(t.s, t.path("once ephemeral"))
	t.isError(owner.Err(), registry.ErrSessionLost)
}

// changesKind makes an ephemeral node persistent, and the other way round, as far as that goes.
func (t *caseRun) changesKind(owner registry.Session) {
	was, becomes := t.path("once ephemeral"), t.path("once persistent")
	t.commit(owner, registry.CreateEphemeral(was, nil), registry.Create(becomes, nil))
	t.commit(owner, registry.Delete(was, 0), registry.Delete(becomes, 0))
	t.commit(owner, registry.Create(was, nil), registry.CreateEphemeral(becomes, nil))
}

func closeIdempotent(t *caseRun) {
	s := t.open()
	results := make(chan error)
	for range 8 {
		go func() { results <- s.Close(t.ctx) }()
	}
	for range 8 {
		if err := <-results; err != nil {
			t.errorf("Close, called eight times at once: %v", err)
		}
	}
	t.mustClose(s)
}

func registryClose(t *caseRun) {
	reg := t.registry()
	a, b := t.openOn(reg), t.openOn(reg)
	t.commit(a, registry.CreateEphemeral(t.path("a"), nil))
	st := t.store(reg)
	for range 2 {
		if err := reg.Close(); err != nil {
			t.fatalf("Registry.Close: %v", err)
		}
		t.step("closed their registry")
		for _, s := range []registry.Session{a, b} {
			select {
			case <-s.Done():
			default:
				t.fatalf("Registry.Close has returned, and Done of session %s is open", s.ID())
			}
			t.isError(s.Err(), registry.ErrSessionLost)
		}
		_, err := st.Get(t.ctx, t.path("a"))
		t.isError(err, registry.ErrClosed)
	}
	_, err := reg.Open(t.ctx)
	t.isError(err, registry.ErrClosed)
	t.goneSoon(t.s, t.path("a"))
}

func errorEveryMethod(t *caseRun) {
	expired, closed, silent := t.open(), t.open(), t.open()
	for _, s := range []registry.Session{expired, closed, silent} {
		w := t.watch(s)
		if err := w.Add(t.dir, registry.Self); err != nil {
			t.fatalf("Add: %v", err)
		}
		l, err := s.TryLock(t.ctx, t.path("lock-"+s.ID()), nil)
		if err != nil {
			t.fatalf("TryLock: %v", err)
		}
		heal := func() {}
		switch s {
		case expired:
			t.must("Expire", t.h.Faults().Expire(s))
			t.lostSoon(s)
		case closed:
			t.mustClose(s)
		case silent:
			heal, err = t.h.Faults().Blackhole(s, Both)
			t.must("Blackhole both ways", err)
			t.lostSoon(s)
			t.proveHit(s)
		}
		for name, call := range t.methods(s, w) {
			err := call()
			t.step("%s = %v", name, err)
			t.isLostAlone(name+" on a lost session", err)
		}
		select {
		case <-l.Lost():
		case <-t.ctx.Done():
			t.fatalf("Lost of a lock is open after its session has ended")
		}
		heal()
		t.mustClose(s)
	}
}

// isLostAlone demands ErrSessionLost, and nothing that speaks of an outcome.
func (t *caseRun) isLostAlone(what string, err error) {
	if !errors.Is(err, registry.ErrSessionLost) {
		t.fatalf("%s: error %v; want ErrSessionLost", what, err)
	}
	for _, other := range []error{registry.ErrUncertain, registry.ErrUnavailable, registry.ErrClosed} {
		if errors.Is(err, other) {
			t.fatalf("%s: error %v is %q as well; want ErrSessionLost alone", what, err, other)
		}
	}
}

// methods are all that must fail once a session has ended.
func (t *caseRun) methods(s registry.Session, w registry.Watcher) map[string]func() error {
	return map[string]func() error{
		"Get":          func() error { _, err := s.Get(t.ctx, t.dir); return err },
		"Get of none":  func() error { _, err := s.Get(t.ctx); return err },
		"Children":     func() error { _, err := s.Children(t.ctx, t.dir); return err },
		"Sync":         func() error { return s.Sync(t.ctx) },
		"Commit":       func() error { _, err := s.Commit(t.ctx, registry.Create(t.path("x"), nil)); return err },
		"Watch":        func() error { _, err := s.Watch(t.ctx); return err },
		"Lock":         func() error { _, err := s.Lock(t.ctx, t.path("free"), nil); return err },
		"TryLock":      func() error { _, err := s.TryLock(t.ctx, t.path("free"), nil); return err },
		"Err":          s.Err,
		"Watcher.Next": func() error { _, err := w.Next(t.ctx); return err },
		"Watcher.Add":  func() error { return w.Add(t.dir, registry.Children) },

		"Watcher.Add of what it watches": func() error { return w.Add(t.dir, registry.Self) },
	}
}

// errTellsWithDone asks all the time, while sessions end in each way there is.
func errTellsWithDone(t *caseRun) {
	brief := t.h.SessionTimeout() / 8
	var ways sync.WaitGroup // side by side: some wait for a session to expire
	for name, end := range map[string]func(reg registry.Registry, s registry.Session){
		"Close": func(_ registry.Registry, s registry.Session) { t.mustClose(s) },
		"Close, cut off": func(_ registry.Registry, s registry.Session) {
			defer t.blackhole(s)()
			t.step("cut off: Close = %v", s.Close(t.within(brief)))
		},
		"Close with an ended context": func(_ registry.Registry, s registry.Session) {
			t.step("Close with an ended context = %v", s.Close(t.ended()[context.Canceled]))
		},
		"Registry.Close": func(reg registry.Registry, _ registry.Session) { t.called("Registry.Close", reg.Close()) },
		"an expiry":      func(_ registry.Registry, s registry.Session) { t.must("Expire", t.h.Faults().Expire(s)) },
		"silence":        func(_ registry.Registry, s registry.Session) { defer t.blackhole(s)(); t.lostSoon(s) },
	} {
		ways.Go(func() {
			reg := t.registry()
			s := t.openOn(reg)
			t.syncedOn(s, t.dir, registry.Children)
			var looking sync.WaitGroup
			last := s.Deadline()
			looking.Go(func() { t.looksAtEnd(name, s) })
			end(reg, s)
			looking.Wait()
			if d := s.Deadline(); d.Before(last) {
				t.fatalf("%s: Deadline went back by %v", name, last.Sub(d))
			}
		})
	}
	ways.Wait()
}

// looksAtEnd asks Err before Done: what Err tells has happened by then.
func (t *caseRun) looksAtEnd(how string, s registry.Session) {
	for t.ctx.Err() == nil {
		err, done := s.Err(), isClosed(s.Done())
		switch {
		case err != nil && !done:
			t.fatalf("%s: Err is %v, and Done is open", how, err)
		case done && !errors.Is(s.Err(), registry.ErrSessionLost):
			t.fatalf("%s: Done is closed, and Err is %v", how, s.Err())
		case done:
			return
		}
		<-time.After(50 * time.Microsecond)
	}
	t.fatalf("%s: Done is open to the end of the case", how)
}

func noWriteAfterLoss(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("before"), nil))
	t.must("Expire", t.h.Faults().Expire(owner))
	t.goneSoon(t.s, t.path("before"))
	t.eventually("commits of the dead session to fail with ErrSessionLost", func() string {
		_, err := owner.Commit(t.ctx, registry.CreateEphemeral(t.path("after"), nil))
		if err == nil {
			t.fatalf("session %s had been ended by the service, and made an ephemeral node", owner.ID())
		}
		if errors.Is(err, registry.ErrSessionLost) {
			return ""
		}
		return err.Error()
	})
	t.lostSoon(owner)
	for range 20 {
		_, err := owner.Commit(t.ctx, registry.CreateEphemeral(t.path("after"), nil))
		t.isError(err, registry.ErrSessionLost)
		_, err = owner.Commit(t.ctx, registry.Create(t.path("persistent"), nil))
		t.isError(err, registry.ErrSessionLost)
	}
	t.sync(t.s)
	t.absent(t.s, t.path("after"), t.path("persistent"))
}

// noGoroutineLeak stays on one registry: what a harness runs for each client is
// not the adapter's.
func noGoroutineLeak(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	reg := t.registry()
	t.mustClose(t.opensOnce(reg)) // what is made once is made now
	before := t.goroutines()
	t.prompt("the goroutines of 30 sessions, after the return of Close,", t.h.SessionTimeout()/10, func() time.Duration {
		for range 30 {
			t.mustClose(t.opensOnce(reg))
		}
		t.step("30 sessions opened, used and closed")
		closed := time.Now()
		t.eventually("their goroutines to end", func() string {
			if n := t.goroutines(); n > before+10 {
				return fmt.Sprintf("%d goroutines; there were %d before", n, before)
			}
			return ""
		})
		return time.Since(closed)
	})

	t.expiresOnce(reg, 20, &census{})
	t.step("20 sessions opened and used, expired, and closed")
	expired := time.Now()
	t.eventually("the goroutines of sessions that were lost to end", func() string {
		n := t.goroutines()
		if n > before+10 && time.Since(expired) > t.h.SessionTimeout() {
			t.fatalf("%d goroutines %v after the Close of sessions that were lost; there were %d before", n, t.h.SessionTimeout(), before)
		} else if n > before+10 {
			return fmt.Sprint(n)
		}
		return ""
	})

	sessions := make([]registry.Session, 20)
	for i := range sessions {
		sessions[i] = t.openOn(reg)
	}
	heal, err := t.h.Faults().Blackhole(sessions[0], Both)
	t.must("Blackhole both ways", err)
	defer heal()
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(func() { _ = s.Close(t.within(t.h.SessionTimeout() / 8)) })
	}
	closing.Wait()
	heal()
	t.step("%d sessions closed that were cut off", len(sessions))
	closed := time.Now()
	t.eventually("the goroutines of sessions that were cut off to end", func() string {
		n := t.goroutines()
		if n <= before+10 {
			return ""
		}
		if time.Since(closed) > t.h.SessionTimeout() {
			t.fatalf("%d goroutines %v after the return of Close, cut off; there were %d before", n, t.h.SessionTimeout(), before)
		}
		return fmt.Sprint(n)
	})
}

// opensOnce opens a session that has a watcher and holds a lock, both to its end, and has released another, been refused
// it and given it up. The case keeps nothing of it.
func (t *caseRun) opensOnce(reg registry.Registry) registry.Session {
	s, err := reg.Open(t.ctx)
	t.called("Open", err)
	w, err := s.Watch(t.ctx)
	t.called("Watch", err)
	t.called("Add", w.Add(t.dir, registry.Children))
	dir := t.path("lock " + s.ID())
	released, err := s.Lock(t.ctx, dir, nil)
	t.called("Lock", err)
	t.called("Release", released.Release(t.ctx))
	_, err = s.TryLock(t.ctx, dir, nil)
	t.called("TryLock", err)
	if _, err = s.TryLock(t.ctx, dir, nil); !errors.Is(err, registry.ErrHeld) {
		t.fatalf("TryLock of what is held: error %v; want ErrHeld", err)
	}
	ctx, cancel := context.WithTimeout(t.ctx, pollEvery)
	defer cancel()
	if _, err = s.Lock(ctx, dir, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.fatalf("Lock of what is held, with a context of %v: error %v; want what the context says", pollEvery, err)
	}
	return s
}

// lateCommitOfDead ends sessions at the service before their commit arrives. A
// client that is kept away cannot do that by Close: then somebody else does.
func lateCommitOfDead(t *caseRun) {
	expire := func(s registry.Session) { t.must("Expire", t.h.Faults().Expire(s)) }
	ends := map[string]func(registry.Session){
		"expired": expire,
		"closed": func(s registry.Session) {
			err := s.Close(t.within(LateBy / 3))
			t.step("Close = %v", err)
			if err != nil {
				t.step("Expire = %v", t.h.Faults().Expire(s)) // an error: Close has come through after all
			}
		},
	}
	var paths []string
	for how, end := range ends {
		owner := t.openLate()
		paths = append(paths, t.path(how))
		t.late(owner, registry.CreateEphemeral(t.path(how), nil))
		sent := time.Now()
		end(owner)
		if d := time.Since(sent); d > LateBy {
			t.void("the session was ended after %v; the service applies the commit after %v", d, LateBy)
		}
	}
	until := time.Now().Add(LateBy + time.Second)
	for time.Now().Before(until) {
		t.sync(t.s)
		t.absent(t.s, paths...)
		t.elapse(20 * time.Millisecond)
	}
}
