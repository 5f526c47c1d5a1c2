package conformance

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// slack is what a timer and a goroutine may be late on a busy machine: half of the least
// margin that an adapter keeps.
func (t *caseRun) slack() time.Duration { return t.h.SessionTimeout() / 20 }

// lateness waits until c is closed, which must be by the Deadline of s, and
// returns how long after it that was seen.
func (t *caseRun) lateness(what string, s registry.Session, c <-chan struct{}) time.Duration {
	for {
		deadline := s.Deadline()
		open := time.NewTimer(time.Until(deadline) + t.h.SessionTimeout()/2)
		select {
		case <-c:
			open.Stop()
			late := time.Since(s.Deadline()).Round(time.Millisecond)
			t.step("session %s: %s closed %v after Deadline", s.ID(), what, late)
			return late
		case <-open.C:
			if !s.Deadline().After(deadline) {
				t.fatalf("%s is open %v after Deadline", what, time.Since(deadline).Round(time.Millisecond))
			}
		case <-t.ctx.Done():
			open.Stop()
			t.fatalf("%s is open and Deadline has advanced to the end of the case: the fault changed nothing", what)
		}
	}
}

// punctual lets attempt be late twice: a machine may stand still for a moment,
// but an adapter that is late is late every time.
func (t *caseRun) punctual(what string, attempt func() (late time.Duration)) {
	const attempts = 3
	var late []time.Duration
	for len(late) < attempts {
		d := attempt()
		if d <= t.slack() {
			return
		}
		late = append(late, d)
	}
	t.fatalf("%s was closed after Deadline in each of %d attempts: %v", what, attempts, late)
}

func doneNotAfterDeadline(t *caseRun) {
	f := t.h.Faults()
	hole := func(d Direction) func(registry.Session) (func(), error) {
		return func(s registry.Session) (func(), error) { return f.Blackhole(s, d) }
	}
	var ways sync.WaitGroup // side by side: each waits for a whole timeout
	for name, cut := range map[string]func(registry.Session) (func(), error){
		"Blackhole both ways": hole(Both), "Blackhole requests": hole(Requests), "Blackhole answers": hole(Answers), "Refuse": f.Refuse,
	} {
		for _, busy := range []bool{false, true} {
			ways.Go(func() {
				t.punctual("Done", func() time.Duration {
					s := t.open()
					if busy {
						t.occupy(s)
						t.drop(s) // and it has borne an outage before
						t.advances(s, 0)
					}
					heal, err := cut(s)
					t.must(name, err)
					defer heal()
					late := t.lateness("Done", s, s.Done())
					t.isError(s.Err(), registry.ErrSessionLost)
					t.proveHit(s)
					return late
				})
			})
		}
	}
	ways.Wait()
}

// occupy gives s a lock, a place in the queue for another one, and a watcher.
func (t *caseRun) occupy(s registry.Session) {
	dir := t.path("of " + s.ID())
	t.lock(t.s, dir)
	t.wait(s, dir, 2)
	t.lock(s, dir+" alone")
	t.syncedOn(s, dir, registry.Children)
}

// deadlineBeforeDeletion cuts 20 sessions off, each at another moment between two heartbeats and right after calls that
// were answered, and compares their Deadline with when their nodes are seen gone.
func deadlineBeforeDeletion(t *caseRun) {
	const sessions = 20
	owners := make([]registry.Session, sessions)
	paths := make([]string, sessions)
	for i := range owners {
		owners[i], paths[i] = t.open(), t.path(fmt.Sprint(i))
		t.commit(owners[i], registry.CreateEphemeral(paths[i], nil))
	}
	for i, s := range owners {
		t.sync(s)
		t.commit(s, registry.Set(paths[i], nil, 0))
		t.present(s, paths[i])
		heal, err := t.h.Faults().Blackhole(s, Direction(i%2)) // Both, Requests
		t.must("Blackhole "+Direction(i%2).String(), err)
		defer heal()
		t.elapse(t.h.SessionTimeout() / sessions)
	}
	gone := make([]time.Time, sessions)
	inTime := func(i int) {
		if after := owners[i].Deadline().Sub(gone[i]); after > 0 {
			t.fatalf("the node of session %s was gone %v before the session's Deadline", owners[i].ID(), after)
		}
	}
	t.eventually("all ephemeral nodes to expire", func() string {
		left := 0
		t.sync(t.s)
		for i, n := range t.getAll(t.s, paths...) {
			if !n.Exists() && gone[i].IsZero() {
				gone[i] = time.Now()
				inTime(i)
			} else if n.Exists() {
				left++
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d are left", left)
		}
		return ""
	})
	for i, s := range owners {
		t.lostSoon(s)
		t.proveHit(s)
		inTime(i) // an answer on its way may have moved it
	}
}

func dropReconnect(t *caseRun) {
	id := t.s.ID()
	for i := range 12 { // a client that waits longer after each one, and never less, would not come back in time
		t.drop(t.s)
		t.present(t.s, t.dir)
		t.commitAgain(t.s, registry.Create(t.path(fmt.Sprint(i)), nil))
	}
	t.alive(t.s)
	if t.s.ID() != id {
		t.fatalf("the session's ID went from %s to %s", id, t.s.ID())
	}
}

// commitAgain repeats what is idempotent, as the callers of a registry do after
// a connection broke: a create that exists is done.
func (t *caseRun) commitAgain(s registry.Session, op registry.Op) {
	t.eventually("a commit to get through", func() string {
		_, err := t.try(t.ctx, s, op)
		switch {
		case err == nil, errors.Is(err, registry.ErrExists) && op.Kind != registry.OpSet:
			return ""
		case errors.Is(err, registry.ErrUncertain), errors.Is(err, registry.ErrUnavailable):
			return err.Error()
		}
		t.fatalf("commit(%s): %v; want success, ErrUncertain or ErrUnavailable", describe([]registry.Op{op}), err)
		return ""
	})
}

func dropKeeps(t *caseRun) {
	owner := t.open()
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.commit(owner, registry.CreateEphemeral(t.path("a"), []byte("x")))
	was := f.becomes(t.path("a"), "x")
	t.commit(owner, registry.CreateEphemeral(t.path("deleted"), nil))
	t.commit(t.s, registry.Delete(t.path("deleted"), 0))
	lock, err := owner.TryLock(t.ctx, t.path("lock"), nil)
	if err != nil {
		t.fatalf("TryLock: %v", err)
	}
	for range 3 {
		before := owner.Deadline()
		t.drop(owner)
		t.eventually("a heartbeat after the drop", func() string {
			t.alive(owner)
			if owner.Deadline().After(before) {
				return ""
			}
			return "Deadline stands"
		})
	}
	t.unchanged(t.s, was)
	t.absent(t.s, t.path("deleted"))
	t.isOwned(owner, was.Path)
	t.create(t.s, t.path("end"), "end")
	f.becomes(t.path("end"), "end")
	for _, e := range f.events() {
		if e.Node.Path == t.path("a") && e.Node.Created != was.Created {
			t.fatalf("others saw %s; it was %s", show(e.Node), show(was))
		}
	}
	select {
	case <-lock.Lost():
		t.fatalf("the lock was lost")
	default:
	}
}

func (t *caseRun) isOwned(s registry.Session, path string) {
	if n := t.present(s, path); !n.Owned {
		t.fatalf("the session reads its own node as %s", show(n))
	}
}

func blackholeShort(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	was := t.latest(t.s, t.path("a"))
	for _, d := range []Direction{Both, Requests, Answers} {
		before := owner.Deadline()
		heal, err := t.h.Faults().Blackhole(owner, d)
		t.must("Blackhole "+d.String(), err)
		t.elapse(t.h.SessionTimeout() / 3)
		heal()
		t.eventually("a heartbeat after the silence", func() string {
			t.alive(owner)
			if owner.Deadline().After(before.Add(t.h.SessionTimeout() / 3)) {
				return ""
			}
			return "Deadline stands"
		})
	}
	t.proveHit(owner)
	t.sync(t.s)
	t.unchanged(t.s, was)
}

func reconnectQuickly(t *caseRun) {
	const outage, within = 4 * time.Second, 2 * time.Second
	reg := t.registry()
	first := t.openOn(reg)
	heal, err := t.h.Faults().Refuse(first)
	t.must("Refuse", err)
	defer heal()
	var s registry.Session
	var openErr error
	var at time.Time
	var wg sync.WaitGroup
	wg.Go(func() {
		s, openErr = reg.Open(t.ctx)
		at = time.Now()
	})
	t.elapse(outage)
	healed := time.Now()
	heal()
	t.step("healed after %v", outage)
	wg.Wait()
	if openErr != nil {
		t.fatalf("Open, called during the outage: %v", openErr)
	}
	defer s.Close(t.ctx)
	t.proveHit(first)
	if d := at.Sub(healed); d < 0 {
		t.void("a session was opened through connections that are refused")
	} else if d > within {
		t.fatalf("Open returned %v after the outage had ended", d)
	}
	t.present(s, t.dir)
}
