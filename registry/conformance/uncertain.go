package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const uncertainDoc = "registry.ErrUncertain; package doc, Guarantees: a commit"

var uncertainCases = []testCase{
	{name: "AnswerLostCreate", rules: "R19 R9 R49 R99", run: answerLostCreate, place: uncertainDoc,
		rule: "a create whose answer is lost is ErrUncertain, not ErrExists by a second attempt, and the session goes on and owns what it made"},
	{name: "AnswerLostCommit", rules: "R19 R40", run: answerLostCommit, place: uncertainDoc,
		rule: "a commit whose answer is lost is ErrUncertain and was applied once, as a whole"},
	{name: "RequestLostCommit", rules: "R19", run: requestLostCommit, place: uncertainDoc,
		rule: "a commit whose request is lost is ErrUncertain, and nobody sends it again but the caller"},
	{name: "AppliedLate", rules: "R20", run: appliedLate, place: uncertainDoc,
		rule: "an uncertain commit may be applied later; a read in between shows the old state and proves nothing"},
	{name: "LateJoinLeavesNoNode", rules: "R94", run: lateJoin, place: lockDoc,
		rule: "a commit by which a lock is joined, and that is applied once the contender has left, leaves nothing in the queue"},
	{name: "ConflictSettlesAnswerLost", rules: "R20", run: conflictAfterAnswerLost, place: uncertainDoc,
		rule: "a conflicting write tells that an uncertain commit was applied: ErrVersion, and then the truth can be read"},
	{name: "ConflictSettlesRequestLost", rules: "R20", run: conflictAfterRequestLost, place: uncertainDoc,
		rule: "a conflicting write that is acknowledged tells that an uncertain commit was not applied and will not be"},
	{name: "ConflictSettlesAppliedLate", rules: "R20", run: conflictBeforeLate, place: uncertainDoc,
		rule: "after a conflicting write is acknowledged, an uncertain commit that arrives later applies nothing"},
	{name: "RetryChainExactlyOnce", rules: "R19", run: retryChain, needs: alone, place: uncertainDoc,
		rule: "1000 commits of one record, each submitted again after ErrUncertain, are applied exactly once each"},
	{name: "CutOffCommit", rules: "R19", run: cutOffCommit, place: uncertainDoc,
		rule: "a commit that was swallowed, or whose answer was, is ErrUncertain when its context ends, or is cancelled"},
	{name: "CommitInFlightAtClose", rules: "R19 R82", run: commitInFlightAtClose, place: "Store.Commit, Session.Close, StoreCloser.Close",
		rule: "a commit in flight at Close, of its session, store or registry, is ErrUncertain: it may have been applied"},
	{name: "CommitInFlightAtLoss", rules: "R82", run: commitInFlightAtLoss, place: uncertainDoc,
		rule: "a commit in flight when its session is lost is ErrUncertain: its caller must not take it for failed"},
	{name: "CutOffRead", rules: "R75", run: cutOffRead, place: "registry.Store",
		rule: "a read that gets no answer fails with ErrUnavailable and its context's error, both"},
	{name: "ReadsAreRetried", rules: "R74", run: readsRetried, place: "registry.Store",
		rule: "reads are retried over broken connections until their context ends"},
	{name: "OversizeDoesNotPoisonNeighbours", rules: "R39", run: oversizeNeighbours, place: "Limits.Validate",
		rule: "commits that are too large are refused and disturb no other on the same client"},
	{name: "ErrorClassTable", rules: "R35 R40", run: errorClassTable, place: "registry.ErrUnavailable, ErrUncertain, ErrSessionLost; Store.Commit",
		rule: "a failed commit has one class, and what was ErrUnavailable is never applied"},
	{name: "EveryKindAlone", rules: "R19", run: uncertainKinds, place: uncertainDoc,
		rule: "each kind of operation alone may be ErrUncertain, and none is sent again"},
	{name: "LateValues", rules: "R30", run: lateValues, place: ownershipDoc,
		rule: "a commit that is applied long after its return writes what it was passed, not what its caller has put there since"},
	{name: "PausedValues", rules: "R30", run: pausedValues, needs: alone, place: ownershipDoc,
		rule: "a commit that the service reads after its caller gave up writes what it was passed"},
	{name: "Swallowed", rules: "R19", run: swallowed, place: uncertainDoc,
		rule: "commits of every kind and mixture whose connection breaks by itself are ErrUncertain, and none is sent again"},
	{name: "ErrorsAreOfOneClass", rules: "R35 R36 R37 R38 R39 R43", run: oneClass, place: "package doc, Errors",
		rule: "an error matches the sentinel that the contract names, and no other"},
}

func answerLostCreate(t *caseRun) {
	reader := t.open()
	t.uncertain(t.s, AnswerLost, registry.Create(t.path("a"), []byte("x")))
	t.eventually("the create to be applied", func() string {
		if n := t.latest(reader, t.path("a")); !n.Exists() {
			return "it is not: the fault AnswerLost has lost the request"
		}
		return ""
	})
	t.alive(t.s)
	owner := t.open()
	t.uncertain(owner, AnswerLost, registry.CreateEphemeral(t.path("e"), nil))
	t.eventually("the ephemeral create to be applied", func() string {
		if n := t.latest(owner, t.path("e")); !n.Owned {
			return show(n)
		}
		return ""
	})
	t.mustClose(owner)
	t.sync(reader)
	t.absent(reader, t.path("e"))
}

func answerLostCommit(t *caseRun) {
	t.create(t.s, t.path("a"), "old")
	t.uncertain(t.s, AnswerLost, registry.Set(t.path("a"), []byte("new"), registry.AnyVersion), registry.Create(t.path("b"), nil))
	t.eventually("the commit to be applied", func() string { return t.versions(1) })
	t.still(nil) // a second attempt would show by now
	if saw := t.versions(1); saw != "" {
		t.fatalf("%s: the commit was sent again", saw)
	}
	t.present(t.s, t.path("b"))
}

// versions says whether node a has another version than want.
func (t *caseRun) versions(want registry.Version) string {
	if n := t.latest(t.s, t.path("a")); n.Version != want {
		return fmt.Sprintf("%s; want version %d", show(n), want)
	}
	return ""
}

func requestLostCommit(t *caseRun) {
	t.create(t.s, t.path("a"), "old")
	ops := []registry.Op{registry.Set(t.path("a"), []byte("new"), registry.AnyVersion), registry.Create(t.path("b"), nil)}
	t.uncertain(t.s, RequestLost, ops...)
	t.still(func() {
		if saw := t.versions(0); saw != "" {
			t.fatalf("%s: the request was lost, and was sent again", saw)
		}
	})
	t.absent(t.s, t.path("b"))
	t.alive(t.s)
	t.commit(t.s, ops...)
	if saw := t.versions(1); saw != "" {
		t.fatalf("after the caller submitted it again: %s", saw)
	}
}

// appliedLate looks on with t.s: the client that met the fate may be kept away.
func appliedLate(t *caseRun) {
	for n := range attempts {
		if t.appliedLate(t.path(fmt.Sprint("a", n)), t.path(fmt.Sprint("b", n))) {
			return
		}
		t.step("the commit was not applied late: an election, for one, may have lost it")
	}
	t.void("in %d attempts no commit was applied late", attempts)
}

// appliedLate is false when the service was never given the commit.
func (t *caseRun) appliedLate(a, b string) bool {
	author := t.openLate()
	t.create(t.s, a, "old")
	start := time.Now()
	t.late(author, registry.Set(a, []byte("late"), 0), registry.Create(b, nil))
	if d := time.Since(start); d > LateBy/2 {
		t.void("the commit returned after %v; the service applies it after %v", d, LateBy)
	}
	if n := t.latest(t.s, a); n.Version != 0 {
		t.void("read right after the commit: %s", show(n))
	}
	for until := start.Add(2 * LateBy); ; t.elapse(10 * time.Millisecond) {
		if n := t.latest(t.s, a); n.Version == 1 {
			break
		} else if n.Version != 0 {
			t.fatalf("a commit that was applied late left %s", show(n))
		}
		if time.Now().After(until) {
			return false
		}
	}
	t.present(t.s, b)
	t.present(author, t.dir) // it is back
	t.refused(author, 0, registry.ErrVersion, registry.Set(a, []byte("new"), 0))
	return true
}

// late lets AppliedLate meet the next commit of s.
func (t *caseRun) late(s registry.Session, ops ...registry.Op) {
	hit, err := t.h.Faults().NextCommit(s, AppliedLate)
	t.must("NextCommit of session "+s.ID()+": AppliedLate", err)
	_, err = t.try(t.ctx, s, ops...)
	if !hit() {
		t.void("the fault has not met the commit")
	}
	t.isUncertain(err)
}

func conflictAfterAnswerLost(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	t.uncertain(t.s, AnswerLost, registry.Set(t.path("a"), []byte("commit 1"), 0), registry.Create(t.path("b"), nil))
	t.refused(t.s, 0, registry.ErrVersion, registry.Set(t.path("a"), []byte("commit 2"), 0))
	if n := t.present(t.s, t.path("a")); string(n.Value) != "commit 1" || n.Version != 1 {
		t.fatalf("after the conflict: %s with value %q", show(n), n.Value)
	}
	t.present(t.s, t.path("b"))
}

func conflictAfterRequestLost(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	t.uncertain(t.s, RequestLost, registry.Set(t.path("a"), []byte("commit 1"), 0), registry.Create(t.path("b"), nil))
	t.commit(t.s, registry.Set(t.path("a"), []byte("commit 2"), 0))
	t.still(nil)
	if n := t.latest(t.s, t.path("a")); string(n.Value) != "commit 2" || n.Version != 1 {
		t.fatalf("after the conflicting write: %s with value %q", show(n), n.Value)
	}
	t.absent(t.s, t.path("b"))
}

func conflictBeforeLate(t *caseRun) {
	author := t.openLate()
	t.create(t.s, t.path("a"), "0")
	t.late(author, registry.Set(t.path("a"), []byte("late"), 0), registry.Create(t.path("b"), nil))
	sent := time.Now()
	if _, err := t.try(t.ctx, t.s, registry.Set(t.path("a"), []byte("conflict"), 0)); err != nil {
		t.void("the conflicting write came too late: %v", err)
	}
	for time.Since(sent) < LateBy+time.Second {
		if n := t.latest(t.s, t.path("a")); string(n.Value) != "conflict" || n.Version != 1 {
			t.fatalf("%v after the conflicting write: %s with value %q", time.Since(sent), show(n), n.Value)
		}
		t.elapse(20 * time.Millisecond)
	}
	t.absent(t.s, t.path("b"))
}

// retryChain is the way to commit exactly once: a record holds the id of its
// last commit, and an uncertain commit is submitted again as it was.
func retryChain(t *caseRun) {
	const commits, faultEvery = 1000, 25
	t.create(t.s, t.path("record"), "none")
	t.create(t.s, t.path("effect"), "")
	hits := 0
	for i := range commits {
		id := fmt.Appendf(nil, "commit %d", i)
		var hit func() bool
		if i%faultEvery == 0 {
			var err error
			fate := []Fate{AnswerLost, RequestLost}[i/faultEvery%2]
			if hit, err = t.h.Faults().NextCommit(t.s, fate); err != nil {
				t.must("NextCommit: "+fate.String(), err)
			}
		}
		t.applyOnce(registry.Version(i), id)
		if hit != nil && hit() {
			hits++
		}
	}
	if hits != commits/faultEvery {
		t.void("%d of %d faults have met a commit", hits, commits/faultEvery)
	}
	if n := t.latest(t.s, t.path("effect")); n.Version != commits {
		t.fatalf("%d commits left their effect %d times", commits, n.Version)
	}
}

func (t *caseRun) applyOnce(v registry.Version, id []byte) {
	for {
		_, err := t.s.Commit(t.ctx, registry.Set(t.path("record"), id, v), registry.Set(t.path("effect"), nil, registry.AnyVersion))
		switch {
		case err == nil:
			return
		case errors.Is(err, registry.ErrUncertain), errors.Is(err, registry.ErrUnavailable):
			continue
		case errors.Is(err, registry.ErrVersion):
			if n := t.get(t.s, t.path("record")); bytes.Equal(n.Value, id) {
				return
			}
		}
		t.fatalf("commit %q at version %d: %v", id, v, err)
	}
}

// uncertain lets a fate meet the next commit of s, which must be ErrUncertain.
func (t *caseRun) uncertain(s registry.Session, fate Fate, ops ...registry.Op) {
	hit, err := t.h.Faults().NextCommit(s, fate)
	t.must("NextCommit of session "+s.ID()+": "+fate.String(), err)
	_, err = t.try(t.ctx, s, ops...)
	if !hit() {
		t.void("the fault has not met the commit")
	}
	t.isUncertain(err)
	t.present(s, t.dir) // the broken connection is made again: what follows meets no leftover of it
}

func (t *caseRun) isUncertain(err error) {
	var ce *registry.CommitError
	switch {
	case err == nil:
		t.fatalf("the commit succeeded; nobody can know: want ErrUncertain (was it sent twice?)")
	case !errors.Is(err, registry.ErrUncertain):
		t.fatalf("error %v; want ErrUncertain", err)
	case errors.Is(err, registry.ErrUnavailable), errors.As(err, &ce):
		t.fatalf("error %v says both that nobody knows and that it was not applied", err)
	}
}
