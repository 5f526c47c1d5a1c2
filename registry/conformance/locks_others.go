package conformance

import (
	"context"
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
	t.release(l)
	t.guardFails(l, t.s)
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
}

func waiterIsDeleted(t *caseRun) {
	dir := t.path("lock")
	holder := t.lock(t.s, dir)
	before := t.children(t.s, dir)
	a := t.wait(t.open(), dir, 2)
	var node string
	for _, name := range t.children(t.s, dir) {
		if !slices.Contains(before, name) {
			node = name
		}
	}
	b := t.wait(t.open(), dir, 3)
	t.commit(t.s, registry.Delete(dir+"/"+node, registry.AnyVersion))
	t.eventually("the waiter to take a new place", func() string {
		t.stillWaits(a)
		t.sync(t.s)
		names := t.children(t.s, dir)
		if len(names) == 3 && !slices.Contains(names, node) {
			return ""
		}
		return fmt.Sprintf("%q", names)
	})
	t.stillWaits(b)
	t.release(holder)
	second := t.gets(b)
	t.stillWaits(a)
	t.release(second)
	last := t.gets(a)
	// And the whole directory goes.
	waits := t.wait(t.open(), dir, 2)
	if err := registry.DeleteTree(t.ctx, t.s, dir); err != nil {
		t.fatalf("DeleteTree: %v", err)
	}
	t.lostLock(last)
	next := t.gets(waits)
	t.guardFails(last, t.s)
	t.commit(t.s, next.Guard(), registry.Create(t.path("guarded"), nil))
	t.release(next)
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
	dir := t.path("many")
	holders := make(chan registry.Lock, 8)
	results := make(chan error, 8)
	for range 8 {
		s := t.open()
		go func() {
			l, err := s.TryLock(t.ctx, dir, nil)
			if err == nil {
				holders <- l
			}
			results <- err
		}()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else {
			t.isError(err, registry.ErrHeld)
		}
	}
	if won > 1 {
		t.fatalf("%d of 8 who called TryLock at once hold the lock", won)
	}
	t.queue(dir, won)
	if won == 1 {
		t.release(<-holders)
	}
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	_, err := t.s.TryLock(ctx, dir, nil)
	t.isError(err, context.Canceled)
	t.queue(dir, 0)
}
