package conformance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const (
	lockDoc  = "Session.Lock"
	guardDoc = "Lock.Guard; package doc of registry, fenced locks"
)

var lockCases = []testCase{
	{name: "Exclusive", rules: "R87", run: lockExclusive, place: lockDoc,
		rule: "while one session holds the lock, Lock of another waits"},
	{name: "ExclusiveWithinOneSession", rules: "R90", run: lockOneSession, place: lockDoc,
		rule: "two callers on one session exclude each other, as those of two sessions do"},
	{name: "OtherChildren", rules: "R87", run: lockOtherChildren, place: lockDoc,
		rule: "children of the directory whose names lack latch- neither hold the lock nor wait for it, and stay as they are"},
	{name: "MakesDirectory", rules: "R89", run: lockMakesDirectory, place: "Session.Lock, Lock.Path",
		rule: "the directory is made when missing; the owner's node is ephemeral, holds the value, and has a path of its own each time"},
	{name: "Root", rules: "R87 R89", run: lockRoot, place: "Session.Lock, Lock.Path; package doc, The tree",
		rule: "the root is a directory to lock as any other"},
	{name: "DirectoryVanishes", rules: "R89 R1", run: lockDirectoryVanishes, needs: slowly, place: "Session.Lock; package doc, The tree",
		rule: "the directory is made again, as often as it vanishes before the owner's node is in it"},
	{name: "Fair", rules: "R88", run: lockFair, place: lockDoc,
		rule: "the lock goes to those who wait in the order of their arrival"},
	{name: "TryLock", rules: "R42", run: tryLock, place: "Session.TryLock, registry.ErrHeld",
		rule: "TryLock does not wait: ErrHeld while somebody holds or waits, and it leaves nothing behind"},
	{name: "TokenIncreases", rules: "R105", run: tokenIncreases, place: "Lock.Token",
		rule: "tokens rise strictly from holder to holder and are the Created of the owner's node"},
	{name: "TokenIncreasesOverRestart", rules: "R105 R91", run: tokenOverRestart, needs: alone, place: "Lock.Token, Session.Lock",
		rule: "tokens rise over restarts of the service too, and waiters keep their places"},
	{name: "GuardPassesWhileHeld", rules: "R106 R107", run: guardPasses, place: guardDoc,
		rule: "a commit with the Guard of a held lock passes, from any session, and from a store, which learns of the end too"},
	{name: "GuardFailsAfterRelease", rules: "R106", run: guardAfterRelease, place: guardDoc,
		rule: "a commit with the Guard of a released lock fails with ErrNotFound, also when another holds the lock"},
	{name: "GuardFailsAfterExpiry", rules: "R106", run: guardAfterExpiry, place: guardDoc,
		rule: "a commit with the Guard of a holder whose session the service has ended fails with ErrNotFound"},
	{name: "LostClosesOnExpire", rules: "R108", run: lostOnExpire, place: "Lock.Lost",
		rule: "Lost is closed when the holder's session is lost"},
	{name: "LostNotAfterDeadline", rules: "R108", run: lostByDeadline, place: "Lock.Lost, Session.Done",
		rule: "cut off from the service, Lost is closed no later than the session's Deadline"},
	{name: "LostOnDelete", rules: "R109 R42", run: lostOnDelete, place: "Lock.Lost",
		rule: "Lost is closed when somebody else deletes the owner's node, and the lock can be had again by the same session, too"},
	{name: "CancelWhileWaitingLeavesNoNode", rules: "R93 R94", run: cancelWaiting, place: lockDoc,
		rule: "a waiter whose context ends gets its error and leaves nothing in the queue"},
	{name: "CancelWhileCutOffLeavesNoNode", rules: "R94", run: cancelCutOff, place: lockDoc,
		rule: "a waiter that gives up while it is cut off is removed from the queue once its client is back"},
	{name: "WaiterExpiryDoesNotBlock", rules: "R87", run: waiterExpires, place: lockDoc,
		rule: "a waiter whose session ends does not block those behind it"},
	{name: "NoPhantomLeader", rules: "R8", run: noPhantom, place: lockDoc,
		rule: "a waiter whose session the service has ended never gets the lock, whatever its client knows"},
	{name: "HolderCloseReleases", rules: "R87", run: holderCloses, place: "Session.Close, registry.Lock",
		rule: "closing the holder's session gives the lock to the next"},
	{name: "ReleaseTwice", rules: "R110", run: releaseTwice, place: "Lock.Release",
		rule: "Release is idempotent, and a second one takes nothing from the next holder"},
	{name: "ReleaseAfterTakeoverDoesNotDeleteSuccessor", rules: "R110", run: releaseAfterTakeover, place: "Lock.Release",
		rule: "Release by one whose session had ended deletes nothing of the next holder's"},
	{name: "UncertainJoin", rules: "R91 R111", run: uncertainJoin, place: "Session.Lock, Lock.Release; registry.ErrUncertain",
		rule: "a lock that is taken through an uncertain commit is one place in the queue, not two, and not none; what is released through one is gone"},
	{name: "WaitSurvivesDrop", rules: "R91", run: waitSurvivesDrop, place: "Session.Lock; package doc, Guarantees: connection loss",
		rule: "a waiter keeps its place, and gets the lock, over broken connections"},
	{name: "NoHerd", rules: "R88", run: noHerd, place: "Session.Lock, order of arrival",
		rule: "a release wakes the next in line, not everybody"},
	{name: "ContendersUnderFaults", rules: "R87 R95", run: contendersUnderFaults, place: "registry.Lock; Session.Deadline",
		rule: "under drops, expiries and silence: one holder at a time until its Deadline, guarded writes in the order of tokens"},
	{name: "GuardAfterSet", rules: "R107 R87 R88 R105", run: guardAfterSet, place: guardDoc,
		rule: "a Set of the owner's node, or a waiter's, by anybody changes neither lock, guard, token nor order"},
	{name: "LostWhileCutOff", rules: "R109 R110 R111", run: lostWhileCutOff, place: "Lock.Lost, Lock.Release",
		rule: "Lost is closed for a deletion that happened while the holder was cut off, also when the path was made again"},
	{name: "WaiterIsDeleted", rules: "R92 R89 R105", run: waiterIsDeleted, place: lockDoc,
		rule: "a waiter whose node, or directory, somebody else deletes takes a new place at the end, with its value and a new token"},
	{name: "ReleaseOfDeleted", rules: "R111", run: releaseOfDeleted, place: "Lock.Release",
		rule: "Release of a lock whose node is gone, or whose directory, is nil"},
	{name: "ReleaseSparesOthers", rules: "R110 R92", run: releaseSparesOthers, place: "Lock.Release",
		rule: "what somebody else makes at the path of a node that is gone stays, whoever waited, held or released there"},
	{name: "ReleaseOnLostSession", rules: "R8 R110", run: releaseOnLost, place: "Lock.Release",
		rule: "Release on a lost session fails with ErrSessionLost, and is nil where the node was known to be gone before"},
	{name: "ReleaseDenied", rules: "R111 R94 R41", run: releaseDenied, needs: alone | rights, place: "Lock.Release, Session.Lock",
		rule: "a Release that is refused fails with ErrDenied and the next one tries again; a waiter that gave up is removed in the end"},
	{name: "TryLockThoroughly", rules: "R42 R94", run: tryLockThoroughly, place: "Session.TryLock",
		rule: "TryLock through an uncertain commit is one place or none, of many at once one wins at most, and nothing is left behind"},
	{name: "TryLockRace", rules: "R42 R94", run: tryLockRace, needs: slowly, place: "Session.TryLock",
		rule: "of those who have all seen the lock free one wins at most, and the others do not wait"},
	{name: "ReleaseWithEndedContext", rules: "R34 R111", run: releaseEnded, place: "Lock.Release",
		rule: "a release whose context has ended, or ends first, goes on as long as the session lives"},
	{name: "CutOffLock", rules: "R93", run: lockCutOff, place: lockDoc,
		rule: "Lock and TryLock that give up while the service cannot be reached say so, with the context's error; Lock goes on trying until then"},
}

// lock must succeed.
func (t *caseRun) lock(s registry.Session, dir string) registry.Lock {
	l, err := s.Lock(t.ctx, dir, []byte(s.ID()))
	if err != nil {
		t.fatalf("Lock(%s) by session %s: %v", dir, s.ID(), err)
	}
	t.step("session %s has the lock: token %d, node %s", s.ID(), l.Token(), l.Path())
	return l
}

// ways are Lock and TryLock: what holds for one holds for the other.
func ways(s registry.Session) map[string]func(context.Context, string, []byte) (registry.Lock, error) {
	return map[string]func(context.Context, string, []byte) (registry.Lock, error){"Lock": s.Lock, "TryLock": s.TryLock}
}

// lockBy must succeed, with Lock or TryLock.
func (t *caseRun) lockBy(how string, s registry.Session, dir string, value []byte) registry.Lock {
	l, err := ways(s)[how](t.ctx, dir, value)
	if err != nil {
		t.fatalf("%s(%s) by session %s: %v", how, dir, s.ID(), err)
	}
	t.step("session %s has the lock by %s: token %d, node %s", s.ID(), how, l.Token(), l.Path())
	return l
}

// owns compares a lock with its owner's node.
func (t *caseRun) owns(l registry.Lock, value []byte) {
	if n := t.latest(t.s, l.Path()); n.Created != l.Token() || !n.Ephemeral || !bytes.Equal(n.Value, value) {
		t.fatalf("token %d, value %.40q of %d bytes; the owner's node is %s with value %.40q of %d bytes",
			l.Token(), value, len(value), show(n), n.Value, len(n.Value))
	}
}

func (t *caseRun) release(l registry.Lock) {
	if err := l.Release(t.ctx); err != nil {
		t.fatalf("Release of %s: %v", l.Path(), err)
	}
	t.step("released %s", l.Path())
	select {
	case <-l.Lost():
	default:
		t.fatalf("Lost is open after Release")
	}
}

func (t *caseRun) held(l registry.Lock) {
	select {
	case <-l.Lost():
		t.fatalf("the lock %s was lost", l.Path())
	default:
	}
}

// lostLock waits until l is lost.
func (t *caseRun) lostLock(l registry.Lock) {
	select {
	case <-l.Lost():
	case <-t.ctx.Done():
		t.fatalf("Lost of %s is open to the end of the case", l.Path())
	}
}

func lockExclusive(t *caseRun) {
	other, dir := t.open(), t.path("lock")
	for i := range 3 {
		first := t.lock(t.s, dir)
		ctx, cancel := context.WithTimeout(t.ctx, 100*time.Millisecond)
		l, err := other.Lock(ctx, dir, nil)
		cancel()
		if err == nil {
			t.fatalf("round %d: sessions %s and %s both hold the lock, tokens %d and %d", i, t.s.ID(), other.ID(), first.Token(), l.Token())
		}
		t.step("Lock of session %s = %v", other.ID(), err)
		t.isError(err, context.DeadlineExceeded)
		t.held(first)
		t.release(first)
		t.release(t.lock(other, dir))
	}
}

func lockOneSession(t *caseRun) {
	dir := t.path("lock")
	first := t.lock(t.s, dir)
	l, err := t.s.TryLock(t.ctx, dir, nil)
	if err == nil {
		t.fatalf("TryLock on the session that holds the lock returned another, token %d beside %d", l.Token(), first.Token())
	}
	t.isError(err, registry.ErrHeld)
	ctx, cancel := context.WithTimeout(t.ctx, 50*time.Millisecond)
	l, err = t.s.Lock(ctx, dir, nil)
	cancel()
	if err == nil {
		t.fatalf("Lock on the session that holds the lock returned another, token %d beside %d", l.Token(), first.Token())
	}
	t.isError(err, context.DeadlineExceeded)
	t.release(first)
	var inside, tokens atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 3 {
				l, err := t.s.Lock(t.ctx, dir, nil)
				if err != nil {
					t.errorf("Lock: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.errorf("%d callers on one session hold the lock", n)
				}
				if last := tokens.Swap(int64(l.Token())); last >= int64(l.Token()) {
					t.errorf("token %d after token %d", l.Token(), last)
				}
				inside.Add(-1)
				if err := l.Release(t.ctx); err != nil {
					t.errorf("Release: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func lockMakesDirectory(t *caseRun) {
	dir := t.path("no/such/dir")
	first, err := t.s.Lock(t.ctx, dir, []byte("who I am"))
	if err != nil {
		t.fatalf("Lock of a directory that is missing: %v", err)
	}
	n := t.present(t.s, first.Path())
	if string(n.Value) != "who I am" || !n.Ephemeral || !n.Owned {
		t.fatalf("the owner's node is %s with value %q", show(n), n.Value)
	}
	t.queue(dir, 1)
	t.release(first)
	t.absent(t.s, first.Path())
	second := t.lock(t.s, dir)
	if second.Path() == first.Path() {
		t.fatalf("two acquisitions have the owner's node %s", first.Path())
	}
	if d := t.present(t.s, dir); d.Ephemeral {
		t.fatalf("the directory is %s", show(d))
	}
	long := bytes.Repeat([]byte("value"), registry.PortableLimits().MaxValue/len("value"))
	for how := range ways(t.s) {
		for _, value := range [][]byte{nil, long} {
			l := t.lockBy(how, t.s, t.path("value"), value)
			t.owns(l, value)
			t.release(l)
		}
	}
}

func lockRoot(t *caseRun) {
	other := t.open()
	for how := range ways(t.s) {
		l := t.lockBy(how, t.s, "/", []byte("mine"))
		if name := strings.TrimPrefix(l.Path(), "/"); name == l.Path() || !slices.Contains(t.children(t.s, "/"), name) {
			t.fatalf("the owner's node is %s, and the children of the root are %q", l.Path(), t.children(t.s, "/"))
		}
		t.owns(l, []byte("mine"))
		_, err := other.TryLock(t.ctx, "/", nil)
		t.isError(err, registry.ErrHeld)
		w := &waiter{s: other, done: make(chan struct{})}
		go func() {
			defer close(w.done)
			w.lock, w.err = other.Lock(t.ctx, "/", nil)
		}()
		t.still(func() { t.stillWaits(w) })
		t.commit(other, l.Guard(), registry.Create(t.path(how), nil))
		t.release(l)
		t.release(t.gets(w))
		t.sync(t.s)
		t.absent(t.s, l.Path(), w.lock.Path())
	}
}

// lockDirectoryVanishes deletes the directory when its maker has seen that it is there, and does not know it yet.
func lockDirectoryVanishes(t *caseRun) {
	s, late := t.open(), t.h.SessionTimeout()/12
	heal, err := t.h.Faults().(*observedFaults).Delay(s, late)
	t.must("Delay", err)
	defer heal()
	var wg sync.WaitGroup
	for how, lock := range ways(s) {
		dir, w := t.path(how), &waiter{s: s, done: make(chan struct{})}
		wg.Go(func() {
			defer close(w.done)
			w.lock, w.err = lock(t.ctx, dir, nil)
		})
		wg.Go(func() {
			gone := t.deleteTwice(dir, late*3/2, w.done)
			t.step("%s: the directory was deleted %d times while it was joined", how, gone)
			t.release(t.gets(w))
		})
	}
	wg.Wait()
}

// deleteTwice deletes an empty directory twice, each time a while after it was made, unless done ends it.
func (t *caseRun) deleteTwice(dir string, after time.Duration, done <-chan struct{}) (gone int) {
	for ; gone < 2 && !isClosed(done); t.elapse(pollEvery) {
		if !t.latest(t.s, dir).Exists() {
			continue
		}
		t.elapse(after)
		_, err := t.s.Commit(t.ctx, registry.Delete(dir, registry.AnyVersion))
		switch {
		case err == nil:
			gone++
		case !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrNotEmpty):
			t.fatalf("Delete of the directory: %v", err)
		}
	}
	return gone
}

func lockOtherChildren(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	t.create(t.s, dir, "")
	names := []string{"0000000000", "config", "latch", "lock-0000000001"}
	t.commit(other, registry.CreateEphemeral(dir+"/"+names[0], nil))
	for _, name := range names[1:] {
		t.create(t.s, dir+"/"+name, "x")
	}
	were := t.getAll(t.s, dir+"/"+names[0], dir+"/"+names[1], dir+"/"+names[2], dir+"/"+names[3])
	for how := range ways(t.s) {
		l := t.lockBy(how, t.s, dir, nil)
		_, err := other.TryLock(t.ctx, dir, nil)
		t.isError(err, registry.ErrHeld)
		w := t.wait(other, dir, len(names)+2)
		t.release(l)
		t.release(t.gets(w))
		t.queue(dir, len(names))
	}
	for _, was := range were {
		t.unchanged(t.s, was)
	}
}

func tryLock(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	first, err := t.s.TryLock(t.ctx, dir, nil)
	if err != nil {
		t.fatalf("TryLock of a free lock: %v", err)
	}
	for _, s := range []registry.Session{other, t.s} {
		start := time.Now()
		_, err = s.TryLock(t.ctx, dir, nil)
		t.step("TryLock = %v", err)
		t.isError(err, registry.ErrHeld)
		if d := time.Since(start); d > 2*time.Second {
			t.fatalf("TryLock of a held lock took %v", d)
		}
	}
	t.queue(dir, 1)
	w := t.wait(t.open(), dir, 2)
	t.release(first)
	l := t.gets(w)
	_, err = t.s.TryLock(t.ctx, dir, nil)
	t.isError(err, registry.ErrHeld)
	t.release(l)
	t.queue(dir, 0)
	if l, err = other.TryLock(t.ctx, dir, nil); err != nil {
		t.fatalf("TryLock of a lock that is free again: %v", err)
	}
	t.release(l)
}

func tokenIncreases(t *caseRun) {
	dir := t.path("lock")
	sessions := []registry.Session{t.s, t.open(), t.open()}
	var last registry.Revision
	for i := range 12 {
		s := sessions[i%3]
		l := t.lock(s, dir)
		if l.Token() <= last {
			t.fatalf("token %d after token %d", l.Token(), last)
		}
		last = l.Token()
		if n := t.present(s, l.Path()); n.Created != last {
			t.fatalf("token %d; the owner's node is %s", last, show(n))
		}
		t.release(l)
	}
}

func tokenOverRestart(t *caseRun) {
	dir := t.path("lock")
	before := t.lock(t.s, dir)
	t.release(before)
	holder, waiter := t.openLate(), t.openLate() // which outlive the restart, where a session can
	held, waits := t.lock(holder, dir), t.wait(waiter, dir, 2)
	names := t.children(t.s, dir)
	deadlines := map[registry.Session]time.Time{holder: holder.Deadline(), waiter: waiter.Deadline()}
	t.must("RestartServer", t.h.Faults().RestartServer())
	next, lives := t.open(), true
	for s, was := range deadlines {
		t.eventually("a heartbeat after the restart, or the loss of the session", func() string {
			if s.Err() == nil && !s.Deadline().After(was) {
				return "neither"
			}
			return ""
		})
		lives = lives && s.Err() == nil
	}
	t.step("both sessions live: %v", lives)
	if lives {
		t.still(func() { t.hasChildren(next, dir, names...) })
		t.stillWaits(waits)
		t.release(held)
		t.release(t.gets(waits))
	} else {
		_, _ = holder.Close(t.ctx), waiter.Close(t.ctx)
	}
	if after := t.lock(next, dir); after.Token() <= before.Token() {
		t.fatalf("token %d after the restart, %d before", after.Token(), before.Token())
	}
}
