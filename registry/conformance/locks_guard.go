package conformance

import (
	"time"

	"github.com/elasticron/elasticron/registry"
)

func guardPasses(t *caseRun) {
	l := t.lock(t.s, t.path("lock"))
	t.commit(t.s, l.Guard(), registry.Create(t.path("a"), nil))
	other := t.open()
	t.commit(other, l.Guard(), registry.Create(t.path("b"), nil))
	st := t.store(t.registry())
	t.called("a store's commit with the Guard", second(st.Commit(t.ctx, registry.Create(t.path("c"), nil), l.Guard())))
	t.held(l)
	t.release(l)
	ops := []registry.Op{registry.Create(t.path("d"), nil), l.Guard()}
	_, err := st.Commit(t.ctx, ops...)
	t.isCommitError(err, 1, registry.ErrNotFound, ops)
}

// guardFails commits with the guard of a lock that is gone.
func (t *caseRun) guardFails(l registry.Lock, sessions ...registry.Session) {
	for _, s := range sessions {
		t.refused(s, 0, registry.ErrNotFound, l.Guard(), registry.Create(t.path("guarded"), nil))
		t.refused(s, 1, registry.ErrNotFound, registry.Create(t.path("guarded"), nil), l.Guard())
		t.absent(s, t.path("guarded"))
	}
}

func guardAfterRelease(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	t.release(l)
	t.guardFails(l, t.s, other)
	next := t.lock(other, dir)
	t.guardFails(l, t.s, other)
	t.release(next)
	again := t.lock(t.s, dir)
	t.guardFails(l, t.s)
	t.guardFails(next, t.s)
	t.commit(t.s, again.Guard(), registry.Create(t.path("a"), nil))
}

func guardAfterExpiry(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	l := t.lock(holder, dir)
	t.must("Expire the holder", t.h.Faults().Expire(holder))
	next := t.lock(t.s, dir)
	t.guardFails(l, t.s)
	if _, err := t.try(t.ctx, holder, l.Guard(), registry.Create(t.path("guarded"), nil)); err == nil {
		t.fatalf("the holder whose session had been ended committed under its guard")
	}
	t.sync(t.s)
	t.absent(t.s, t.path("guarded"))
	t.commit(t.s, next.Guard(), registry.Create(t.path("a"), nil))
}

func lostOnExpire(t *caseRun) {
	holder := t.open()
	l := t.lock(holder, t.path("lock"))
	t.held(l)
	t.must("Expire the holder", t.h.Faults().Expire(holder))
	t.lostLock(l)
	if late := time.Since(holder.Deadline()); late > t.slack() {
		t.fatalf("Lost was closed %v after Deadline", late)
	}
}

func lostByDeadline(t *caseRun) {
	dir := t.path("lock")
	t.punctual("Lost", func() time.Duration {
		holder := t.open()
		l := t.lock(holder, dir)
		heal := t.blackhole(holder)
		defer heal()
		late := t.lateness("Lost", holder, l.Lost())
		t.proveHit(holder)
		next := t.lock(t.s, dir)
		if early := time.Until(holder.Deadline()); early > 0 {
			t.fatalf("another got the lock, token %d, %v before the Deadline of the one before", next.Token(), early)
		}
		t.release(next)
		return late
	})
}

func lostOnDelete(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	l := t.lock(holder, dir)
	t.commit(t.s, registry.Delete(l.Path(), registry.AnyVersion))
	t.lostLock(l)
	t.alive(holder)
	next := t.lock(t.s, dir)
	t.guardFails(l, holder)
	_ = l.Release(t.ctx)
	t.queue(dir, 1)
	t.held(next)
	t.commit(t.s, next.Guard(), registry.Create(t.path("a"), nil))
	for how := range ways(holder) { // what was lost is not held, though nobody has called Release
		lost := t.lock(holder, t.path(how))
		t.commit(t.s, registry.Delete(lost.Path(), registry.AnyVersion))
		t.lostLock(lost)
		t.release(t.lockBy(how, holder, t.path(how), nil))
	}
}
