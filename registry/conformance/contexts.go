package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const contextDoc = "package doc, Guarantees: a context bounds the call"

// ended returns contexts that have ended, with what they say.
func (t *caseRun) ended() map[error]context.Context {
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	late, cancel := context.WithTimeout(t.ctx, -1)
	cancel()
	return map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late}
}

// brief calls with a context that ends right after the return, as with a deferred cancel.
func brief[T any](t *caseRun, what string, call func(context.Context) (T, error)) T {
	ctx, cancel := context.WithTimeout(t.ctx, t.left())
	defer cancel()
	got, err := call(ctx)
	if err != nil {
		t.fatalf("%s: %v", what, err)
	}
	t.step("%s returned, and its context has ended", what)
	return got
}

func contextsEndAfterReturn(t *caseRun) {
	reg := t.registry()
	s := brief(t, "Open", reg.Open)
	w := brief(t, "Watch", s.Watch)
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	lock := func(try func(context.Context, string, []byte) (registry.Lock, error), dir string) func(context.Context) (registry.Lock, error) {
		return func(ctx context.Context) (registry.Lock, error) { return try(ctx, dir, nil) }
	}
	locks := []registry.Lock{brief(t, "Lock", lock(s.Lock, t.path("lock"))), brief(t, "TryLock", lock(s.TryLock, t.path("try")))}
	store := brief(t, "OpenStore", reg.OpenStore)
	defer store.Close(t.ctx)
	stored := brief(t, "Watch of a store", store.Watch)
	defer stored.Close()
	if err := stored.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add to the watcher of a store: %v", err)
	}
	brief(t, "Commit", func(ctx context.Context) (registry.Revision, error) {
		return s.Commit(ctx, registry.CreateEphemeral(t.path("mine"), nil))
	})
	brief(t, "Get", func(ctx context.Context) ([]registry.Node, error) { return s.Get(ctx, t.dir) })
	opened := time.Now()
	t.eventually("the session to live a timeout longer", func() string {
		t.alive(s)
		if s.Deadline().After(opened.Add(t.h.SessionTimeout())) {
			return ""
		}
		return "Deadline is " + time.Until(s.Deadline()).String() + " ahead"
	})
	held := t.lock(t.s, t.path("waited"))
	waits := t.wait(s, t.path("waited"), 2)
	t.release(held)
	locks = append(locks, t.gets(waits))
	waits.stop()
	t.still(func() { t.held(waits.lock) })
	for _, l := range locks {
		t.held(l)
		t.commit(s, l.Guard(), registry.Set(t.dir, nil, registry.AnyVersion))
	}
	t.present(s, t.path("mine"))
	if _, err := store.Commit(t.ctx, registry.Create(t.path("end"), []byte("end"))); err != nil {
		t.fatalf("commit of the store: %v", err)
	}
	for _, w := range []registry.Watcher{w, stored} {
		if err := w.Add(t.path("end"), registry.Self); err != nil {
			t.fatalf("Add: %v", err)
		}
		t.drain(w, func(e registry.Event) bool { return e.Node.Path == t.path("end") && e.Scope == registry.Children })
	}
	for _, l := range locks {
		t.release(l)
	}
}

func endedContextEveryMethod(t *caseRun) {
	reg := t.registry()
	s := t.openOn(reg)
	w := t.watch(s)
	st := t.store(reg)
	stored := t.watchStore(st)
	for want, ctx := range t.ended() {
		calls := t.calls(ctx, s)
		for name, call := range t.storeCalls(ctx, st) {
			calls["a store's "+name] = call
		}
		calls["Get of no paths"] = func() error { return second(s.Get(ctx)) }
		calls["Next of a store's watcher"] = func() error { return second(stored.Next(ctx)) }
		calls["Next"] = func() error { _, err := w.Next(ctx); return err }
		calls["Registry.Open"] = func() error { _, err := reg.Open(ctx); return err }
		calls["OpenStore"] = func() error { _, err := reg.OpenStore(ctx); return err }
		for name, call := range calls {
			start := time.Now()
			err := call()
			t.step("%s with an ended context = %v", name, err)
			if !errors.Is(err, want) || errors.Is(err, registry.ErrUncertain) || errors.Is(err, registry.ErrSessionLost) {
				t.fatalf("%s with an ended context: error %v; want %v, and nothing sent", name, err, want)
			}
			if d := time.Since(start); d > t.h.SessionTimeout()/2 {
				t.fatalf("%s with an ended context took %v", name, d)
			}
		}
	}
	t.alive(s)
	t.still(nil)
	t.hasChildren(t.s, t.dir)
	t.commit(s, registry.Create(t.path("b"), nil))
}

// calls are all calls of a session that take a context and fail when it has ended.
func (t *caseRun) calls(ctx context.Context, s registry.Session) map[string]func() error {
	calls := t.storeCalls(ctx, s)
	calls["Lock"] = func() error { return second(s.Lock(ctx, t.path("lock"), nil)) }
	calls["TryLock"] = func() error { return second(s.TryLock(ctx, t.path("try"), nil)) }
	return calls
}

// storeCalls are those that a store has too.
func (t *caseRun) storeCalls(ctx context.Context, s registry.Store) map[string]func() error {
	return map[string]func() error{
		"Get":      func() error { return second(s.Get(ctx, t.dir)) },
		"Children": func() error { return second(s.Children(ctx, t.dir)) },
		"Sync":     func() error { return s.Sync(ctx) },
		"Commit":   func() error { return second(s.Commit(ctx, registry.Create(t.path("x"), nil))) },
		"Watch":    func() error { return second(s.Watch(ctx)) },
	}
}

func (t *caseRun) watchStore(st registry.StoreCloser) registry.Watcher {
	w, err := st.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch of a store: %v", err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func closeEnded(t *caseRun) {
	bound := t.h.SessionTimeout()/4 + t.h.SessionTimeout()/4 // as promised, and a busy machine
	for want, ctx := range t.ended() {
		owner, path := t.open(), t.path(want.Error()[:16])
		t.commit(owner, registry.CreateEphemeral(path, nil))
		start := time.Now()
		if err := owner.Close(ctx); err != nil {
			t.fatalf("Close with an ended context, the service can be reached: %v", err)
		}
		t.step("Close with an ended context took %v", time.Since(start))
		t.sync(t.s)
		t.absent(t.s, path)

		cut := t.open()
		t.commit(cut, registry.CreateEphemeral(path, nil))
		heal := t.blackhole(cut)
		start = time.Now()
		err := cut.Close(ctx)
		t.step("cut off, Close with an ended context = %v after %v", err, time.Since(start))
		if d := time.Since(start); d > bound {
			t.fatalf("Close with an ended context, cut off, took %v; a quarter of the timeout is %v", d, t.h.SessionTimeout()/4)
		}
		if err == nil {
			t.fatalf("Close returned nil; the service could not be told")
		}
		t.lostSoon(cut)
		heal()
		t.goneSoon(t.s, path)
	}
}

func releaseEnded(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	for _, ctx := range t.ended() {
		l := t.lock(holder, dir)
		w := t.wait(t.s, dir, 2)
		t.step("Release with an ended context = %v", l.Release(ctx))
		t.release(t.gets(w))
		t.queue(dir, 0)
	}
	t.alive(holder)
	l := t.lock(holder, dir)
	heal, err := t.h.Faults().Refuse(holder)
	t.must("Refuse", err)
	defer heal()
	err = l.Release(t.within(t.h.SessionTimeout() / 10))
	t.step("cut off, Release = %v", err)
	if err == nil {
		t.fatalf("Release returned nil; the service could not be told")
	}
	heal()
	t.queue(dir, 0)
	t.alive(holder)
	l = t.lock(holder, dir)
	t.advances(holder, 0) // so that it bears another outage
	heal, err = t.h.Faults().Refuse(holder)
	t.must("Refuse", err)
	defer heal()
	first := make(chan error, 1)
	go func() { first <- l.Release(t.ctx) }()
	t.lostLock(l)
	err = l.Release(t.within(t.h.SessionTimeout() / 10))
	t.step("cut off, a second Release while the first is under way = %v", err)
	if err == nil {
		t.fatalf("a second Release returned nil while the first is under way; the service could not be told")
	}
	heal()
	if err := <-first; err != nil {
		t.fatalf("Release, called while the service could not be reached: %v", err)
	}
	t.release(l)
	t.sync(t.s)
	t.absent(t.s, l.Path())
}

func lockCutOff(t *caseRun) {
	var ways sync.WaitGroup
	for name, cut := range map[string]func(registry.Session) (func(), error){
		"Refuse":              t.h.Faults().Refuse,
		"Blackhole both ways": func(s registry.Session) (func(), error) { return t.h.Faults().Blackhole(s, Both) },
	} {
		ways.Go(func() { t.lockCutOff(name, cut) })
	}
	ways.Go(t.lockGoesOnTrying)
	ways.Wait()
}

func (t *caseRun) lockCutOff(name string, cut func(registry.Session) (func(), error)) {
	s, dir := t.open(), t.path("lock "+name)
	t.create(t.s, dir, "")
	for how, lock := range ways(s) {
		for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
			t.advances(s, 0) // so that it bears one call, on a slow machine too
			t.cutOffCall(s, name, how, end, cut, func(ctx context.Context) error { return second(lock(ctx, dir, nil)) })
		}
	}
	t.present(s, t.dir)
	t.queue(dir, 0)
	t.release(t.lock(s, dir))
}

// cutOffCall makes a call while the service cannot be reached. It returns soon after its context has ended, with the
// context's error and ErrUnavailable.
func (t *caseRun) cutOffCall(s registry.Session, name, how string, end error, cut func(registry.Session) (func(), error), call func(context.Context) error) {
	heal, err := cut(s)
	t.must(name, err)
	defer heal()
	start := time.Now()
	err = call(t.endsIn(t.h.SessionTimeout()/12, end))
	t.step("%s while the service cannot be reached = %v", how, err)
	for _, want := range []error{registry.ErrUnavailable, end} {
		if !errors.Is(err, want) {
			t.fatalf("%s while the service cannot be reached: error %v; want %q as well", how, err, want)
		}
	}
	if d := time.Since(start); d > t.h.SessionTimeout()/2 {
		t.fatalf("%s returned %v after its call", how, d)
	}
}

func (t *caseRun) lockGoesOnTrying() {
	s, dir := t.openLate(), t.path("lock again")
	t.createAll(t.s, []string{dir, dir + "/a", dir + "/b"}) // so that what is tried is to join
	t.longOutage(s, map[string]func() error{
		"Lock":    func() error { return second(s.Lock(t.ctx, dir+"/a", nil)) },
		"TryLock": func() error { return second(s.TryLock(t.ctx, dir+"/b", nil)) },
	})
}

// longOutage calls while the client of s is refused for as long as s bears, of its timeout, whatever
// that is: no call may give up.
func (t *caseRun) longOutage(s registry.Session, calls map[string]func() error) {
	t.advances(s, 0)
	outage := min(time.Until(s.Deadline())*2/3, 2*time.Second)
	results := make(chan string, len(calls))
	t.cutOff(s, func() {
		for name, call := range calls {
			go func() {
				failure := ""
				if err := call(); err != nil {
					failure = fmt.Sprintf("%s, called while the service could not be reached for %v: %v", name, outage, err)
				}
				results <- failure
			}()
		}
		t.elapse(outage)
	})
	for range calls {
		if failure := <-results; failure != "" {
			t.fatalf("%s", failure)
		}
	}
}

// closeRaces closes a session whose calls are under way and get no answer.
func closeRaces(t *caseRun) {
	t.inFlight(t.open(), "Close was called", func(s registry.Session) {
		t.step("Close = %v", s.Close(t.within(t.h.SessionTimeout()/8)))
	})
}

func callsInFlightAtLoss(t *caseRun) { t.inFlight(t.open(), "the session was lost", t.lostSoon) }

// inFlight ends a session whose calls are under way and get no answer: each fails with that.
func (t *caseRun) inFlight(s registry.Session, when string, end func(registry.Session)) {
	w := t.watch(s)
	l, mine := t.lock(t.s, t.path("held")), t.lock(s, t.path("mine"))
	waits := t.wait(s, t.path("held"), 2)
	heal := t.blackhole(s)
	defer heal()
	calls := map[string]func() error{
		"Get":      func() error { return second(s.Get(t.ctx, t.dir)) },
		"Children": func() error { return second(s.Children(t.ctx, t.dir)) },
		"Lock":     func() error { return second(s.Lock(t.ctx, t.path("held"), nil)) },
		"TryLock":  func() error { return second(s.TryLock(t.ctx, t.path("free"), nil)) },
		"Release":  func() error { return mine.Release(t.ctx) },
		"Next":     func() error { return second(w.Next(t.ctx)) },
		"Commit": func() error {
			err := second(s.Commit(t.ctx, registry.Create(t.path("x"), nil)))
			if errors.Is(err, registry.ErrUncertain) && s.Err() == nil { // its connection broke, before the session ended
				err = errors.Join(err, registry.ErrSessionLost)
			}
			return err
		},
		"Sync": func() error {
			err := s.Sync(t.ctx)
			if err == nil && s.Err() == nil { // it had nothing to send, and was not in flight
				err = registry.ErrSessionLost
			}
			return err
		},
		"a Lock that waited": func() error { <-waits.done; return waits.err },
	}
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(calls))
	for name, call := range calls {
		go func() { results <- result{name, call()} }()
	}
	t.proveBlackhole(s)
	end(s)
	for range calls {
		select {
		case r := <-results:
			r.name += ", in flight when " + when
			t.step("%s = %v", r.name, r.err)
			if errors.Is(r.err, registry.ErrUncertain) && strings.HasPrefix(r.name, "Commit") {
				t.isUncertain(r.err)
				t.isError(r.err, registry.ErrSessionLost)
				continue
			}
			t.isLostAlone(r.name, r.err)
		case <-t.ctx.Done():
			t.fatalf("a call in flight when %s has not returned", when)
		}
	}
	heal()
	t.release(l)
	t.queue(t.path("held"), 0)
}

// sessionsAreApart harms one of two sessions of one registry in each way: the older, or the younger.
func sessionsAreApart(t *caseRun) {
	harms := map[string]func(registry.Session){
		"Expire": func(s registry.Session) { t.must("Expire", t.h.Faults().Expire(s)); t.lostSoon(s) },
		"Close":  func(s registry.Session) { t.mustClose(s); t.mustClose(s) },
		"Close with an ended context": func(s registry.Session) {
			for _, ctx := range t.ended() {
				t.step("Close = %v", s.Close(ctx))
			}
		},
	}
	var ways sync.WaitGroup // side by side: each waits for a whole timeout
	for name, harm := range harms {
		for _, younger := range []bool{false, true} {
			ways.Go(func() {
				reg := t.registry()
				victim, other := t.openOn(reg), t.openOn(reg)
				if younger {
					victim, other = other, victim
				}
				t.apart(reg, victim, other, t.path(fmt.Sprintf("%.8s%d%t", name, len(name), younger)), harm)
			})
		}
	}
	ways.Wait()
}

func (t *caseRun) apart(reg registry.Registry, victim, other registry.Session, dir string, harm func(registry.Session)) {
	t.create(t.s, dir, "")
	t.commit(victim, registry.CreateEphemeral(dir+"/victim", nil))
	t.commit(other, registry.CreateEphemeral(dir+"/other", []byte("x")))
	t.create(t.s, dir+"/end", "0")
	seen, own := t.syncedOn(other, dir, registry.Children), t.lock(other, dir+"-lock")
	store := t.syncedOn(t.store(reg), dir, registry.Children)
	waits := t.wait(victim, dir+"-lock", 2)
	theirs := t.lock(t.s, dir+"-theirs")
	goesOn := t.wait(other, dir+"-theirs", 2)
	t.syncedOn(victim, dir, registry.Children)
	harm(victim)
	<-waits.done
	t.alive(other)
	t.stillWaits(goesOn)
	t.release(theirs)
	t.release(t.gets(goesOn))
	seen.becomes(dir+"/victim", "-")
	t.held(own)
	t.commit(other, own.Guard(), registry.Set(dir+"/end", []byte("1"), 0))
	for _, f := range []*follower{seen, store} {
		f.becomes(dir+"/end", "1")
		f.becomes(dir+"/victim", "-")
	}
	t.queue(dir+"-lock", 1)
	t.isOwned(other, dir+"/other")
	t.advances(other, t.h.SessionTimeout())
	again := t.openOn(reg)
	t.commit(again, registry.CreateEphemeral(dir+"/victim", nil))
	t.release(own)
}

// watchersAreApart has three watchers of the same: of one session, and of three of one registry.
func watchersAreApart(t *caseRun) {
	reg := t.registry()
	t.watchApart(t.path("one"), t.s, t.s, t.s)
	t.watchApart(t.path("three"), t.openOn(reg), t.openOn(reg), t.openOn(reg))
}

func (t *caseRun) watchApart(d string, on ...registry.Session) {
	a, b := d+"/a", d+"/b"
	t.commit(t.s, registry.Create(d, nil), registry.Create(a, []byte("0")))
	var all []*follower
	for _, s := range on {
		t.sync(s)
		all = append(all, t.syncedOn(s, d, registry.Children))
	}
	first, second, third := all[0], all[1], all[2]
	second.add(a, registry.Self)
	second.synced(a, registry.Self)
	first.w.Remove(d, registry.Children)
	if err := third.w.Close(); err != nil {
		t.fatalf("Watcher.Close: %v", err)
	}
	t.isError(third.ended(), registry.ErrClosed)
	rev := t.commit(t.s, registry.Set(a, []byte("1"), 0), registry.Create(b, []byte("1")))
	second.arrives(target{d, registry.Children}, b, rev)
	second.arrives(target{a, registry.Self}, a, rev)
	first.add(b, registry.Self)
	first.becomes(b, "1")
	for _, s := range on {
		t.alive(s)
	}
}

// watchWhileCutOff runs alone: the faults of other cases may wake what Close here has not.
func watchWhileCutOff(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	s := t.open()
	f, other := t.syncedOn(s, t.dir, registry.Children), t.syncedOn(s, t.dir, registry.Children)
	late, gives := t.follow(s), t.watch(s)
	heal := t.blackhole(s)
	defer heal()
	t.proveBlackhole(s)
	quick := func(what string, call func() error) {
		start := time.Now()
		if err := call(); err != nil {
			t.fatalf("%s, cut off: %v", what, err)
		}
		if d := time.Since(start); d > t.h.SessionTimeout()/8 {
			t.fatalf("%s, cut off, took %v: it waits for the service", what, d)
		}
	}
	for i := range 20 {
		quick("Add", func() error { late.add(t.path(fmt.Sprint(i)), registry.Self); return nil })
	}
	quick("Add of children", func() error { late.add(t.dir, registry.Children); return nil })
	quick("Next that gives up", func() error {
		t.called("Add", gives.Add(t.dir, registry.Children))
		ctx, cancel := context.WithTimeout(t.ctx, 10*time.Millisecond)
		defer cancel()
		t.isError(second(gives.Next(ctx)), context.DeadlineExceeded)
		return nil
	})
	quick("Remove", func() error { f.w.Remove(t.dir, registry.Children); return nil })
	quick("Watcher.Close", func() error {
		err := other.w.Close()
		t.isError(other.ended(), registry.ErrClosed)
		return err
	})
	heal()
	late.synced(t.dir, registry.Children)
	late.synced(t.path("19"), registry.Self)
	late.becomes(t.path("a"), "0")
	t.drain(gives, func(e registry.Event) bool { return e.Synced })
	t.alive(s)
}
