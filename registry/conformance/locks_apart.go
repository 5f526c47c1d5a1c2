package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// lockApartCases are about several locks, waiters or steps at once.
var lockApartCases = []testCase{
	{name: "LocksAreApart", rules: "R108 R109", run: locksAreApart, place: "Lock.Lost",
		rule: "of the locks of one session each tells its own end, by Release or by whoever deletes its node, and no other's; the loss ends all"},
	{name: "SessionsOfOneRegistry", rules: "R87 R88", run: locksOfOneRegistry, place: lockDoc,
		rule: "sessions of one registry exclude each other and wait for each other, as those of two do, however the holder ends"},
	{name: "WaitersOfOneSession", rules: "R88 R90 R94", run: waitersOfOneSession, place: lockDoc,
		rule: "where one of two waiters on one session gives up, the other keeps its place"},
	{name: "DeletedTogether", rules: "R87 R92 R105", run: deletedTogether, place: lockDoc,
		rule: "a waiter whose node is deleted together with the holder's does not hold the lock: it takes a new place at the end"},
	{name: "GuardIsJudgedByTheService", rules: "R106", run: guardIsJudged, needs: slowly, place: guardDoc,
		rule: "the Guard of a lock whose node is gone fails at once, before its holder is told of that"},
	{name: "DirectoryMadeByMany", rules: "R89", run: directoryMadeByMany, needs: slowly, place: lockDoc,
		rule: "many who lock a directory that is missing at the same time make it, and get the lock one after the other"},
	{name: "JoinThroughManyDrops", rules: "R91 R93 R94", run: joinThroughDrops, place: lockDoc,
		rule: "a Lock whose connection breaks again and again before it is answered goes on trying, and has one place in the end"},
	{name: "GivenUpAtEachStep", rules: "R93 R94", run: givenUpAtEachStep, needs: slowly, place: lockDoc,
		rule: "at whatever step of Lock or TryLock their context ends, they return a lock or leave nothing behind"},
}

func locksAreApart(t *caseRun) {
	holder, other, st := t.open(), t.open(), t.store(t.registry())
	var locks []registry.Lock
	for i := range 10 {
		locks = append(locks, t.lock(holder, t.path(fmt.Sprint("lock", i))))
	}
	ends := []func(registry.Lock){
		t.release,
		func(l registry.Lock) { t.commit(other, registry.Delete(l.Path(), registry.AnyVersion)) },
		func(l registry.Lock) { t.commit(holder, registry.Delete(l.Path(), registry.AnyVersion)) },
		func(l registry.Lock) {
			t.called("Delete by a store", second(st.Commit(t.ctx, registry.Delete(l.Path(), registry.AnyVersion))))
		},
	}
	for _, oldest := range []bool{true, false} {
		for _, end := range ends {
			last := len(locks) - 1
			l, left := locks[last], locks[:last]
			if oldest {
				l, left = locks[0], locks[1:]
			}
			end(l)
			t.lostLock(l)
			for _, l := range left {
				t.held(l)
			}
			locks = left
		}
	}
	t.still(func() {
		for _, l := range locks {
			t.held(l)
		}
	})
	t.must("Expire the holder", t.h.Faults().Expire(holder))
	for _, l := range locks {
		t.lostLock(l)
	}
}

func locksOfOneRegistry(t *caseRun) {
	reg, dir := t.registry(), t.path("lock")
	first := t.openOn(reg)
	holder, l := first, t.lock(first, dir)
	for _, end := range []func(){
		func() { t.release(l) },
		func() { t.commit(first, registry.Delete(l.Path(), registry.AnyVersion)) },
		func() { t.mustClose(holder) },
		func() { t.must("Expire the holder", t.h.Faults().Expire(holder)) },
	} {
		next := t.openOn(reg)
		_, err := next.TryLock(t.ctx, dir, nil)
		t.isError(err, registry.ErrHeld)
		w := t.wait(next, dir, 2)
		t.stillWaits(w)
		t.held(l)
		end()
		holder, l = next, t.gets(w)
	}
	t.release(l)
	t.queue(dir, 0)
}

func waitersOfOneSession(t *caseRun) {
	dir, shared := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	first := t.wait(shared, dir, 2)
	second, node := t.place(shared, dir, 3)
	third := t.wait(t.open(), dir, 4)
	first.stop()
	<-first.done
	t.isError(first.err, context.Canceled)
	t.queue(dir, 3)
	t.still(func() {
		t.stillWaits(second)
		t.present(t.s, node)
	})
	t.release(l)
	l = t.gets(second)
	if l.Path() != node {
		t.fatalf("who waited at %s has the lock at %s: it left its place when another waiter of its session gave up",
			node, l.Path())
	}
	t.stillWaits(third)
	t.release(l)
	t.release(t.gets(third))
	t.queue(dir, 0)
}

func deletedTogether(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	holder := t.lock(t.s, dir)
	a, node := t.place(t.open(), dir, 2)
	b := t.wait(t.open(), dir, 3)
	t.commit(other, registry.Delete(holder.Path(), registry.AnyVersion), registry.Delete(node, registry.AnyVersion))
	t.lostLock(holder)
	next := t.gets(b)
	t.eventually("the waiter to take a new place", func() string {
		t.stillWaits(a)
		t.sync(t.s)
		if names := t.children(t.s, dir); len(names) != 2 {
			return fmt.Sprintf("%q", names)
		}
		return ""
	})
	t.release(next)
	last := t.gets(a)
	t.owns(last, []byte(a.s.ID()))
	if last.Token() <= next.Token() {
		t.fatalf("token %d after token %d", last.Token(), next.Token())
	}
	t.commit(other, last.Guard(), registry.Create(t.path("guarded"), nil))
	t.release(last)
	t.queue(dir, 0)
}

// guardIsJudged deletes the owner's node when what the holder is told comes late.
func guardIsJudged(t *caseRun) {
	holder := t.open()
	l := t.lock(holder, t.path("lock"))
	heal, err := t.h.Faults().(*observedFaults).Delay(holder, t.h.SessionTimeout()/16)
	t.must("Delay", err)
	defer heal()
	t.commit(t.s, registry.Delete(l.Path(), registry.AnyVersion))
	t.guardFails(l, holder)
	heal()
	t.lostLock(l)
}

// directoryMadeByMany has answers come so late that all see the directory missing before anybody has made it.
func directoryMadeByMany(t *caseRun) {
	rivals := make([]registry.Session, 4)
	for i := range rivals {
		rivals[i] = t.open()
		heal, err := t.h.Faults().(*observedFaults).Delay(rivals[i], t.h.SessionTimeout()/40)
		t.must("Delay", err)
		defer heal()
	}
	t.tryAtOnce(t.within(t.left()/2), t.path("tried/by/many"), rivals)
	dir := t.path("locked/by/many")
	var locking sync.WaitGroup
	for _, s := range rivals {
		locking.Go(func() {
			l, err := s.Lock(t.ctx, dir, nil)
			if err == nil {
				err = l.Release(t.ctx)
			}
			if err != nil {
				t.errorf("Lock and Release of session %s, beside others that make the directory: %v", s.ID(), err)
			}
		})
	}
	locking.Wait()
	t.queue(dir, 0)
}

// joinThroughDrops breaks the connection while requests, or answers, are swallowed: more than one attempt to join is of
// unknown outcome.
func joinThroughDrops(t *caseRun) {
	for _, d := range []Direction{Requests, Answers} {
		dir, s := t.path(d.String()), t.open()
		t.create(t.s, dir, "")
		heal, err := t.h.Faults().Blackhole(s, d)
		t.must("Blackhole "+d.String(), err)
		defer heal()
		w := &waiter{s: s, done: make(chan struct{})}
		go func() {
			defer close(w.done)
			w.lock, w.err = s.Lock(t.ctx, dir, []byte(s.ID()))
		}()
		for range 3 {
			t.elapse(t.h.SessionTimeout() / 20)
			t.must("Drop", t.h.Faults().Drop(s))
		}
		heal()
		t.step("healed")
		l := t.gets(w)
		t.owns(l, []byte(s.ID()))
		t.queue(dir, 1)
		t.release(l)
		t.queue(dir, 0)
		t.alive(s)
	}
}

// givenUpAtEachStep delays answers, so that a context can end between any two of them: while a lock that is free is
// taken, and while one is handed over.
func givenUpAtEachStep(t *caseRun) {
	const free, handed = 10, 6
	s, late := t.open(), t.h.SessionTimeout()/40
	held, waits := make([]registry.Lock, handed), make([]*waiter, handed)
	var dirs []string
	for i := range handed {
		dir := t.path("handed" + strconv.Itoa(i))
		held[i] = t.lock(t.s, dir)
		waits[i] = t.wait(s, dir, 2)
		dirs = append(dirs, dir)
	}
	heal, err := t.h.Faults().(*observedFaults).Delay(s, late)
	t.must("Delay", err)
	defer heal()
	var calls sync.WaitGroup
	for how, lock := range ways(s) {
		for i := range free {
			dir, ctx := t.path(how+strconv.Itoa(i)), t.within(time.Duration(2*i+1)*late/2)
			dirs = append(dirs, dir)
			calls.Go(func() {
				t.lockOrNothing(how+" of "+dir, func() (registry.Lock, error) { return lock(ctx, dir, nil) })
			})
		}
	}
	for i, w := range waits {
		calls.Go(func() {
			t.release(held[i])
			time.AfterFunc(time.Duration(2*i+1)*late/2, w.stop)
			t.lockOrNothing("a Lock that waited", func() (registry.Lock, error) { <-w.done; return w.lock, w.err })
		})
	}
	calls.Wait()
	heal()
	t.eventually("nothing to be left in the queues", func() string {
		t.sync(t.s)
		for _, dir := range dirs {
			names, err := t.s.Children(t.ctx, dir)
			if err != nil && !errors.Is(err, registry.ErrNotFound) || len(names) > 0 {
				return fmt.Sprintf("%q in %s, %v", names, dir, err)
			}
		}
		return ""
	})
	t.alive(s)
}

// lockOrNothing releases what a call whose context may have ended returns.
func (t *caseRun) lockOrNothing(what string, call func() (registry.Lock, error)) {
	l, err := call()
	t.step("%s = %v", what, err)
	if err == nil {
		err = l.Release(t.ctx)
	} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		t.fatalf("%s, then Release: %v; want a lock, or what the context says", what, err)
	}
}
