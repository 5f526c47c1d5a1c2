package conformance

import (
	"context"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// pause stops the service and proves that it does not answer.
func (t *caseRun) pause() (resume func()) {
	resume, err := t.h.Faults().PauseServer()
	t.must("PauseServer", err)
	t.Cleanup(resume)
	_, err = t.s.Get(t.within(t.h.SessionTimeout()/10), t.dir)
	if err == nil {
		t.void("the service answers a read while it is paused")
	}
	t.step("Get = %v", err)
	return resume
}

func pauseShort(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	was := t.latest(t.s, t.path("a"))
	resume := t.pause()
	t.elapse(t.h.SessionTimeout()/3 - t.h.SessionTimeout()/10)
	before := owner.Deadline()
	resume()
	t.eventually("a heartbeat after the pause", func() string {
		t.alive(owner)
		if owner.Deadline().After(before) {
			return ""
		}
		return "Deadline stands"
	})
	t.sync(t.s)
	t.unchanged(t.s, was)
}

func pauseLong(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	resume := t.pause()
	t.lateness("Done", owner, owner.Done())
	t.elapse(t.h.SessionTimeout() / 4)
	resume()
	t.step("resumed")
	next := t.open()
	t.goneSoon(next, t.path("a"))
	t.commit(next, registry.CreateEphemeral(t.path("a"), nil))
	_, err := owner.Get(t.ctx, t.dir)
	t.isError(err, registry.ErrSessionLost)
}

func restartKeepsData(t *caseRun) {
	a := t.create(t.s, t.path("a"), "x")
	rev := t.commit(t.s, registry.Set(a.Path, []byte("y"), 0))
	a = t.present(t.s, a.Path)
	t.create(t.s, t.path("a/b"), "z")
	t.must("RestartServer", t.h.Faults().RestartServer())
	next := t.open()
	t.sync(next)
	t.unchanged(next, a)
	t.hasChildren(next, a.Path, "b")
	if later := t.commit(next, registry.Set(a.Path, nil, 1)); later <= rev {
		t.fatalf("revision %d after the restart, %d before", later, rev)
	}
	if n := t.create(next, t.path("c"), ""); n.Created <= rev {
		t.fatalf("Created %d after the restart; revision %d was given before", n.Created, rev)
	}
}

// outlived waits until s is lost, or has certainly outlived what happened at the
// time since: its Deadline is a whole expiry later.
func (t *caseRun) outlived(s registry.Session, since time.Time) bool {
	t.eventually("the session to be lost, or to have lived a timeout longer", func() string {
		select {
		case <-s.Done():
			return ""
		default:
		}
		if s.Deadline().After(since.Add(t.expiry())) {
			return ""
		}
		return "neither"
	})
	return s.Err() == nil
}

func restartSessionRule(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	was := t.present(owner, t.path("a"))
	t.commit(owner, registry.CreateEphemeral(t.path("deleted"), nil))
	t.commit(t.s, registry.Delete(t.path("deleted"), 0))
	t.must("RestartServer", t.h.Faults().RestartServer())
	restarted := time.Now()
	reader := t.open()
	lives := t.outlived(owner, restarted)
	t.sync(reader)
	t.absent(reader, t.path("deleted"))
	if lives {
		t.step("the session lives")
		t.unchanged(reader, was)
		t.isOwned(owner, was.Path)
		t.mustClose(owner)
	}
	t.goneSoon(reader, was.Path)
}

func loseLeader(t *caseRun) {
	owner := t.open()
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.commit(owner, registry.CreateEphemeral(t.path("a"), []byte("x")))
	was := f.becomes(t.path("a"), "x")
	t.must("LoseLeader", t.h.Faults().LoseLeader())
	lost := time.Now()
	t.commitAgain(owner, registry.Create(t.path("b"), nil))
	t.eventually("the session to live a timeout longer", func() string {
		t.alive(owner)
		if owner.Deadline().After(lost.Add(t.h.SessionTimeout())) {
			return ""
		}
		return "Deadline is " + time.Until(owner.Deadline()).String() + " ahead"
	})
	t.sync(t.s)
	t.unchanged(t.s, was)
	f.becomes(t.path("b"), "")
}

func stalledEndpoint(t *caseRun) {
	faults := &observedFaults{t.h, t.h.Harness.Faults()}
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	was := t.latest(t.s, t.path("a"))
	before := t.h.Faults().Hits(owner)
	heal, err := faults.StallMember(owner)
	t.must("StallMember", err)
	defer heal()
	stalled := time.Now()
	t.eventually("the session to live two timeouts longer", func() string {
		t.alive(owner)
		if owner.Deadline().After(stalled.Add(2 * t.h.SessionTimeout())) {
			return ""
		}
		return "Deadline is " + time.Until(owner.Deadline()).String() + " ahead"
	})
	if t.h.Faults().Hits(owner) == before {
		t.void("Faults.Hits has not moved")
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.h.SessionTimeout())
	defer cancel()
	if _, err := owner.Get(ctx, t.dir); err != nil {
		t.fatalf("Get while one member is stalled: %v", err)
	}
	t.sync(t.s)
	t.unchanged(t.s, was)
}
