package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

func guardAfterSet(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	token := l.Token()
	for i := range 3 {
		t.commit(other, registry.Set(l.Path(), []byte("others may write here"), registry.AnyVersion))
		t.commit(t.s, l.Guard(), registry.Create(t.path(fmt.Sprint("own", i)), nil))
		t.commit(other, l.Guard(), registry.Create(t.path(fmt.Sprint("other", i)), nil))
	}
	t.still(func() { t.held(l) })
	if l.Token() != token {
		t.fatalf("the token went from %d to %d", token, l.Token())
	}
	_, err := other.TryLock(t.ctx, dir, nil)
	t.isError(err, registry.ErrHeld)
	first := t.wait(t.open(), dir, 2)
	second, node := t.place(t.open(), dir, 3)
	third := t.wait(t.open(), dir, 4)
	for _, path := range []string{node, l.Path()} {
		t.commit(other, registry.Set(path, nil, registry.AnyVersion))
	}
	first.stop()
	t.queue(dir, 3)
	t.still(func() { t.stillWaits(second) })
	t.held(l)
	t.release(l)
	t.guardFails(l, t.s)
	l = t.gets(second)
	t.owns(l, nil)
	t.stillWaits(third)
	t.release(l)
	t.release(t.gets(third))
}

func lostWhileCutOff(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	l := t.lock(holder, dir)
	t.cutOff(holder, func() { t.commit(t.s, registry.Delete(l.Path(), registry.AnyVersion)) })
	t.lostLock(l)
	t.alive(holder)
	next := t.lock(t.s, dir)
	t.guardFails(l, holder)
	if err := l.Release(t.ctx); err != nil {
		t.fatalf("Release of a lock whose node somebody else has deleted: %v", err)
	}
	t.queue(dir, 1)
	t.held(next)
	// And what is made again at its path is somebody else's.
	l = t.lock(holder, t.path("again"))
	var others registry.Node
	t.cutOff(holder, func() {
		t.commit(t.s, registry.Delete(l.Path(), registry.AnyVersion))
		others = t.create(t.s, l.Path(), "somebody else's")
	})
	t.lostLock(l)
	t.alive(holder)
	t.release(l)
	t.unchanged(t.s, others)
}

func waiterIsDeleted(t *caseRun) {
	dir := t.path("lock")
	holder := t.lock(t.s, dir)
	a, node := t.place(t.open(), dir, 2)
	b := t.wait(t.open(), dir, 3)
	before := t.children(t.s, dir)
	t.commit(t.s, registry.Delete(node, registry.AnyVersion))
	t.takesNewPlace(a, dir, before)
	t.stillWaits(b)
	t.release(holder)
	second := t.gets(b)
	t.stillWaits(a)
	t.release(second)
	last := t.gets(a)
	t.owns(last, []byte(a.s.ID()))
	// And the whole directory goes.
	waits := t.wait(t.open(), dir, 2)
	if err := registry.DeleteTree(t.ctx, t.s, dir); err != nil {
		t.fatalf("DeleteTree: %v", err)
	}
	t.lostLock(last)
	next := t.gets(waits)
	t.owns(next, []byte(waits.s.ID()))
	t.guardFails(last, t.s)
	t.commit(t.s, next.Guard(), registry.Create(t.path("guarded"), nil))
	t.release(next)
}

// takesNewPlace waits until there is a child of dir that was not there before, and as many as then.
func (t *caseRun) takesNewPlace(w *waiter, dir string, before []string) {
	t.eventually("the waiter to take a new place", func() string {
		t.stillWaits(w)
		t.sync(t.s)
		names := t.children(t.s, dir)
		if len(names) == len(before) && !slices.Equal(names, before) {
			return ""
		}
		return fmt.Sprintf("%q", names)
	})
}

// releaseSparesOthers makes nodes where those of the lock were; they stand in the queue until they are deleted.
func releaseSparesOthers(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	for how := range ways(t.s) {
		l := t.lockBy(how, t.s, dir, nil)
		t.commit(other, registry.Delete(l.Path(), registry.AnyVersion))
		t.lostLock(l)
		others := t.create(other, l.Path(), "somebody else's")
		for range 2 {
			t.release(l)
			t.sync(other)
			t.unchanged(other, others)
		}
		t.commit(other, registry.Delete(l.Path(), registry.AnyVersion))
		// The adapter may look out for a node of its own that comes late.
		hit, err := t.h.Faults().NextCommit(t.s, RequestLost)
		t.must("NextCommit: RequestLost", err)
		l = t.lockBy(how, t.s, dir, nil)
		if !hit() {
			t.void("the fault has not met the commit that joins")
		}
		t.release(l)
		others = t.create(other, l.Path(), "somebody else's")
		t.still(func() { t.unchanged(other, others) })
		t.commit(other, registry.Delete(l.Path(), registry.AnyVersion))
	}
	l := t.lock(t.s, dir)
	w, node := t.place(t.open(), dir, 2)
	var others registry.Node
	t.cutOff(w.s, func() {
		t.commit(other, registry.Delete(node, registry.AnyVersion))
		others = t.create(other, node, "somebody else's")
	})
	t.queue(dir, 3)
	t.still(func() { t.unchanged(other, others) })
	t.commit(other, registry.Delete(node, registry.AnyVersion))
	t.stillWaits(w)
	t.release(l)
	t.release(t.gets(w))
	t.queue(dir, 0)
}

func releaseOnLost(t *caseRun) {
	holder := t.open()
	var gone, there []registry.Lock
	for how := range ways(holder) {
		released := t.lockBy(how, holder, t.path("released "+how), nil)
		t.release(released)
		deleted := t.lockBy(how, holder, t.path("deleted "+how), nil)
		t.commit(t.s, registry.Delete(deleted.Path(), registry.AnyVersion))
		t.lostLock(deleted)
		gone = append(gone, released, deleted)
		there = append(there, t.lockBy(how, holder, t.path("held "+how), nil))
	}
	heal := t.blackhole(holder) // so that it sees no deletion before the loss
	defer heal()
	t.lostSoon(holder)
	t.proveHit(holder)
	for range 2 {
		for _, l := range gone {
			t.release(l)
		}
		for _, l := range there {
			err := l.Release(t.ctx)
			t.step("Release of %s = %v", l.Path(), err)
			t.isError(err, registry.ErrSessionLost)
		}
	}
}

func releaseDenied(t *caseRun) {
	for how := range ways(t.s) {
		dir, holder := t.path(how), t.open()
		l := t.lockBy(how, holder, dir, nil)
		w := t.wait(t.open(), dir, 2)
		allow, err := t.h.Faults().(*observedFaults).Deny(dir)
		t.must("Deny "+dir, err)
		defer allow()
		w.stop()
		<-w.done
		t.step("the waiter gave up: %v", w.err)
		for want, ctx := range t.ended() {
			if err := l.Release(ctx); !errors.Is(err, want) && !errors.Is(err, registry.ErrDenied) {
				t.fatalf("Release of what is denied, with an ended context: error %v; want %v or ErrDenied", err, want)
			}
		}
		for range 2 {
			err := l.Release(t.within(t.left() / 4))
			t.step("Release of what is denied = %v", err)
			t.isError(err, registry.ErrDenied)
		}
		t.still(nil) // while the waiter's removal is refused too
		allow()
		t.release(l)
		t.queue(dir, 0)
		t.alive(w.s)
	}
}

func releaseOfDeleted(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	t.commit(other, registry.Delete(l.Path(), registry.AnyVersion))
	for range 2 {
		if err := l.Release(t.ctx); err != nil {
			t.fatalf("Release of a lock whose node somebody else has deleted: %v; want nil, it is gone", err)
		}
	}
	t.queue(dir, 0)
	t.release(t.lock(other, dir))
	// And with the node its directory.
	for how := range ways(t.s) {
		l = t.lockBy(how, t.s, t.path(how), nil)
		t.called("DeleteTree", registry.DeleteTree(t.ctx, other, t.path(how)))
		for range 2 {
			if err := l.Release(t.ctx); err != nil {
				t.fatalf("Release of a lock whose directory somebody else has deleted: %v; want nil, its node is gone", err)
			}
		}
	}
}

func tryLockThoroughly(t *caseRun) {
	for _, fate := range []Fate{AnswerLost, RequestLost} {
		dir := t.path(fate.String())
		t.create(t.s, dir, "")
		s := t.open()
		hit, err := t.h.Faults().NextCommit(s, fate)
		t.must("NextCommit: "+fate.String(), err)
		l, err := s.TryLock(t.ctx, dir, []byte("mine"))
		if err != nil {
			t.fatalf("TryLock of a free lock, its commit %s: %v", fate, err)
		}
		if !hit() {
			t.void("the fault has not met the commit")
		}
		t.queue(dir, 1)
		if n := t.present(t.s, l.Path()); string(n.Value) != "mine" || n.Created != l.Token() {
			t.fatalf("token %d; the owner's node is %s with value %q", l.Token(), show(n), n.Value)
		}
		for range 5 {
			_, err = t.s.TryLock(t.ctx, dir, nil)
			t.isError(err, registry.ErrHeld)
		}
		t.queue(dir, 1)
		t.held(l)
		t.release(l)
		t.queue(dir, 0)
	}
	dir, many := t.path("many"), make([]registry.Session, 8)
	for i := range many {
		many[i] = t.open()
	}
	t.tryAtOnce(t.ctx, dir, many)
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	_, err := t.s.TryLock(ctx, dir, nil)
	t.isError(err, context.Canceled)
	t.queue(dir, 0)
}

// tryLockRace has answers come so late that all look before anybody has joined.
func tryLockRace(t *caseRun) {
	dir, rivals := t.path("race"), make([]registry.Session, 4)
	t.create(t.s, dir, "")
	for i := range rivals {
		rivals[i] = t.open()
		heal, err := t.h.Faults().(*observedFaults).Delay(rivals[i], t.h.SessionTimeout()/20)
		t.must("Delay", err)
		defer heal()
	}
	t.tryAtOnce(t.within(t.left()/2), dir, rivals)
}

// tryAtOnce has all sessions call TryLock at the same time: one gets the lock at most, and the others are told that it is
// held before it is released.
func (t *caseRun) tryAtOnce(ctx context.Context, dir string, sessions []registry.Session) {
	holders := make(chan registry.Lock, len(sessions))
	results := make(chan error, len(sessions))
	for _, s := range sessions {
		go func() {
			l, err := s.TryLock(ctx, dir, nil)
			if err == nil {
				holders <- l
			}
			results <- err
		}()
	}
	won := 0
	for range sessions {
		if err := <-results; err == nil {
			won++
		} else {
			t.isError(err, registry.ErrHeld)
		}
	}
	if won > 1 {
		t.fatalf("%d of %d who called TryLock at once hold the lock", won, len(sessions))
	}
	t.queue(dir, won)
	if won == 1 {
		t.release(<-holders)
	}
}
