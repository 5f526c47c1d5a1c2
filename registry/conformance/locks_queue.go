package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A waiter is a call of Lock on its way.
type waiter struct {
	s    registry.Session
	done chan struct{}
	lock registry.Lock
	err  error
	stop context.CancelFunc
}

// wait starts Lock and returns once it stands in the queue: so many nodes are in dir.
func (t *caseRun) wait(s registry.Session, dir string, queue int) *waiter {
	ctx, cancel := context.WithCancel(t.ctx)
	w := &waiter{s: s, done: make(chan struct{}), stop: cancel}
	go func() {
		defer close(w.done)
		w.lock, w.err = s.Lock(ctx, dir, []byte(s.ID()))
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	t.queue(dir, queue)
	t.step("session %s waits for the lock", s.ID())
	return w
}

// place is wait, and returns the path of the waiter's node as well.
func (t *caseRun) place(s registry.Session, dir string, queue int) (*waiter, string) {
	before := t.children(t.s, dir)
	w := t.wait(s, dir, queue)
	return w, dir + "/" + t.newName(dir, before)
}

// newName is that of the one child of dir that is not among those before.
func (t *caseRun) newName(dir string, before []string) string {
	names := slices.DeleteFunc(t.children(t.s, dir), func(name string) bool { return slices.Contains(before, name) })
	if len(names) != 1 {
		t.fatalf("%q in %s are new, not one", names, dir)
	}
	return names[0]
}

// queue waits until so many contenders are in dir.
func (t *caseRun) queue(dir string, want int) {
	t.eventually(fmt.Sprintf("%d nodes in the queue", want), func() string {
		if t.s.Err() != nil {
			t.fatalf("the session that looks on was lost: %v", t.s.Err())
		}
		t.sync(t.s)
		if names := t.children(t.s, dir); len(names) != want {
			return fmt.Sprintf("%d: %q", len(names), names)
		}
		return ""
	})
}

// gets waits until w has the lock.
func (t *caseRun) gets(w *waiter) registry.Lock {
	select {
	case <-w.done:
	case <-t.ctx.Done():
		t.fatalf("session %s, next in line, did not get the lock to the end of the case", w.s.ID())
	}
	if w.err != nil {
		t.fatalf("Lock of session %s: %v", w.s.ID(), w.err)
	}
	t.step("session %s has the lock: token %d", w.s.ID(), w.lock.Token())
	return w.lock
}

func (t *caseRun) stillWaits(w *waiter) {
	select {
	case <-w.done:
		t.fatalf("Lock of session %s returned %v while another holds it", w.s.ID(), w.err)
	default:
	}
}

func lockFair(t *caseRun) {
	const contenders = 6
	dir := t.path("lock")
	holder := t.lock(t.s, dir)
	reg := t.registry()
	shared := t.openOn(reg)
	waiters := make([]*waiter, contenders)
	for i := range waiters {
		s := shared
		if i%3 > 0 {
			s = t.open()
		}
		waiters[i] = t.wait(s, dir, i+2)
	}
	for i, w := range waiters {
		for _, behind := range waiters[i:] {
			t.stillWaits(behind)
		}
		t.release(holder)
		holder = t.gets(w)
	}
}

func cancelWaiting(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	for _, s := range []registry.Session{other, t.s} {
		for try := 1; ; try++ {
			w := t.wait(s, dir, 2)
			t.still(nil) // it waits for nobody but the holder
			w.stop()
			<-w.done
			t.step("cancelled: Lock = %v", w.err)
			t.isError(w.err, context.Canceled)
			t.queue(dir, 1)
			if !errors.Is(w.err, registry.ErrUnavailable) {
				break
			}
			if try == 5 { // a read of its own may have been under way, but not each time
				t.fatalf("error %v, %d times in a row; the service could be reached", w.err, try)
			}
		}
	}
	t.held(l)
	next := t.wait(other, dir, 2)
	t.release(l)
	t.gets(next)
}

func cancelCutOff(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	w := t.wait(other, dir, 2)
	heal := t.blackhole(other)
	defer heal()
	w.stop()
	select {
	case <-w.done:
	case <-time.After(t.h.SessionTimeout() / 2):
		t.fatalf("Lock has not returned %v after its context ended", t.h.SessionTimeout()/2)
	}
	t.step("cancelled: Lock = %v", w.err)
	t.isError(w.err, context.Canceled)
	t.proveBlackhole(other)
	heal()
	t.step("healed")
	t.queue(dir, 1)
	t.held(l)
}

func waiterExpires(t *caseRun) {
	dir := t.path("lock")
	l := t.lock(t.s, dir)
	dead := t.wait(t.open(), dir, 2)
	last := t.wait(t.open(), dir, 3)
	t.must("Expire the first waiter", t.h.Faults().Expire(dead.s))
	t.queue(dir, 2)
	t.stillWaits(last)
	t.release(l)
	t.gets(last)
	<-dead.done
	t.isError(dead.err, registry.ErrSessionLost)
}

func noPhantom(t *caseRun) {
	dir := t.path("lock")
	l := t.lock(t.s, dir)
	dead := t.wait(t.open(), dir, 2)
	t.must("Expire the waiter", t.h.Faults().Expire(dead.s))
	t.queue(dir, 1)
	t.release(l)
	select {
	case <-dead.done:
	case <-t.ctx.Done():
		t.fatalf("Lock of the dead session has not returned")
	}
	if dead.err == nil {
		t.fatalf("Lock returned token %d to session %s, which the service had ended while it waited", dead.lock.Token(), dead.s.ID())
	}
	t.isError(dead.err, registry.ErrSessionLost)
}

func holderCloses(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	l := t.lock(holder, dir)
	w := t.wait(t.s, dir, 2)
	t.mustClose(holder)
	t.lostLock(l)
	t.gets(w)
	t.guardFails(l, t.s)
}

func releaseTwice(t *caseRun) {
	dir, other := t.path("lock"), t.open()
	l := t.lock(t.s, dir)
	t.release(l)
	next := t.lock(other, dir)
	t.release(l)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := l.Release(t.ctx); err != nil {
				t.errorf("Release again: %v", err)
			}
		})
	}
	wg.Wait()
	t.queue(dir, 1)
	t.held(next)
	t.commit(other, next.Guard(), registry.Create(t.path("a"), nil))
}

func releaseAfterTakeover(t *caseRun) {
	dir, holder := t.path("lock"), t.open()
	l := t.lock(holder, dir)
	t.must("Expire the holder", t.h.Faults().Expire(holder))
	next := t.lock(t.s, dir)
	if err := l.Release(t.ctx); err != nil && !errors.Is(err, registry.ErrSessionLost) {
		t.fatalf("Release after the session had ended: %v; want nil or ErrSessionLost", err)
	}
	t.queue(dir, 1)
	t.held(next)
	t.commit(t.s, next.Guard(), registry.Create(t.path("a"), nil))
}

// noHerd cuts all waiters off but the first, and looks whether the service has something to
// say to them when the lock is released. Sessions that were opened together have their
// heartbeats together too, and those may fall into that moment, but not every time: most
// behind the first must be told something, and more than in as long without a release, in
// one release after another.
func noHerd(t *caseRun) {
	const tries = 4
	surplus, most := 0, 0
	for n := range tries {
		h := t.wokenByRelease(t.path("lock" + strconv.Itoa(n)))
		if h.woken <= h.behind/2 {
			return
		}
		t.step("the service had something to tell %d of %d behind the next in line, and %d in the %v after that: again,"+
			" as it may have answered their heartbeats", h.woken, h.behind, h.idle, h.took)
		surplus += h.woken - h.idle
		most += h.behind / 2
	}
	if surplus > most {
		t.fatalf("in %d releases the service had something to tell %d waiters more than in as long without one", tries, surplus)
	}
}

// A herd is whom a release has woken of those behind the next in line, and how many of them
// the service had something to tell in as long without a release.
type herd struct {
	woken, behind, idle int
	took                time.Duration
}

// wokenByRelease releases a lock, and counts those behind the next in line whom the service
// had something to tell until that one had it.
func (t *caseRun) wokenByRelease(dir string) herd {
	h := herd{behind: 6}
	l := t.lock(t.s, dir)
	first := t.wait(t.open(), dir, 2)
	var others []*waiter
	for i := range h.behind {
		others = append(others, t.wait(t.open(), dir, i+3))
	}
	h.woken, h.took = t.told(others, func() {
		t.release(l)
		t.gets(first)
	})
	if h.woken > h.behind/2 {
		h.idle, _ = t.told(others, func() { t.elapse(h.took) })
	}
	return h
}

// told counts the waiters whom the service has something to tell while something is done.
func (t *caseRun) told(waiters []*waiter, while func()) (told int, took time.Duration) {
	before := make([]int, len(waiters))
	started := time.Now()
	for i, w := range waiters {
		heal, err := t.h.Faults().Blackhole(w.s, Answers)
		t.must("Blackhole answers", err)
		defer heal()
		before[i] = t.h.Faults().Hits(w.s)
	}
	while()
	for i, w := range waiters {
		if t.h.Faults().Hits(w.s) > before[i] {
			told++
		}
	}
	took = time.Since(started)
	if told <= len(waiters)/2 {
		for _, w := range waiters {
			t.proveBlackhole(w.s)
		}
	}
	return told, took
}
