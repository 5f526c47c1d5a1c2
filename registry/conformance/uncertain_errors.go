package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func cutOffCommit(t *caseRun) {
	var ways sync.WaitGroup // side by side: each waits for its context to end
	for _, d := range []Direction{Answers, Requests, Both} {
		for _, how := range []error{context.DeadlineExceeded, context.Canceled} {
			for _, who := range []string{"session", "store"} {
				ways.Go(func() { t.cutOffCommit(d, how, who) })
			}
		}
	}
	ways.Wait()
}

func (t *caseRun) cutOffCommit(d Direction, how error, who string) {
	reg := t.registry()
	s := t.openOn(reg)
	path := t.path(fmt.Sprintf("cut-%d-%.16s-%s", d, how, who))
	var by registry.Store = s
	if who == "store" {
		by = t.store(reg)
		if _, err := by.Get(t.ctx, t.dir); err != nil { // what it opens at its first call is open
			t.fatalf("Get of a store: %v", err)
		}
	}
	heal, err := t.h.Faults().Blackhole(s, d)
	t.must("Blackhole "+d.String(), err)
	defer heal()
	_, err = by.Commit(t.endsIn(t.h.SessionTimeout()/4, how), registry.Create(path, nil))
	t.step("commit(create %s) of a %s = %v", path, who, err)
	t.proveHit(s)
	t.isUncertain(err)
	if d == Answers {
		t.appliedSoon(path)
	} else if n := t.latest(t.s, path); n.Exists() {
		t.void("requests were swallowed, and %s", show(n))
	}
}

func (t *caseRun) appliedSoon(path string) {
	t.eventually("the commit to be applied", func() string {
		if n := t.latest(t.s, path); !n.Exists() {
			return show(n)
		}
		return ""
	})
}

// hitSoon gives an answer time to be swallowed that may be on its way: a commit is seen by others before it is answered.
func (t *caseRun) hitSoon(s registry.Session) {
	until := time.Now().Add(t.h.SessionTimeout() / 4)
	for t.h.Faults().Hits(s) == 0 && time.Now().Before(until) {
		<-time.After(pollEvery)
	}
}

// endsIn returns a context that lasts for d, and ends by its deadline or because it is cancelled.
func (t *caseRun) endsIn(d time.Duration, how error) context.Context {
	if errors.Is(how, context.DeadlineExceeded) {
		return t.within(d)
	}
	ctx, cancel := context.WithCancel(t.ctx)
	timer := time.AfterFunc(d, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}

// commitInFlightAtClose closes what a commit came from that was applied, and not answered.
func commitInFlightAtClose(t *caseRun) {
	var ways sync.WaitGroup
	for _, from := range []string{"session", "store"} {
		for _, by := range []string{"Close", "Registry.Close"} {
			ways.Go(func() { t.commitInFlightAtClose(from, by) })
		}
	}
	ways.Wait()
}

func (t *caseRun) commitInFlightAtClose(from, by string) {
	reg := t.registry()
	marker := t.openOn(reg)
	var s registry.StoreCloser = marker
	if from == "store" {
		s = t.store(reg)
	}
	if _, err := s.Get(t.ctx, t.dir); err != nil { // what it opens at its first call is open
		t.fatalf("Get of a %s: %v", from, err)
	}
	path := t.path(from + " " + by)
	heal, err := t.h.Faults().Blackhole(marker, Answers)
	t.must("Blackhole answers", err)
	defer heal()
	failed := make(chan error, 1)
	go func() { _, err := s.Commit(t.ctx, registry.Create(path, nil)); failed <- err }()
	t.appliedSoon(path)
	t.hitSoon(marker)
	if by == "Close" {
		t.step("Close of a %s = %v", from, s.Close(t.within(t.h.SessionTimeout()/8)))
	} else {
		t.step("Registry.Close = %v", reg.Close())
	}
	select {
	case err = <-failed:
	case <-t.ctx.Done():
		t.fatalf("a commit in flight at %s has not returned", by)
	}
	t.proveHit(marker)
	t.step("the commit of a %s, in flight at %s = %v", from, by, err)
	t.isUncertain(err)
	if lost := errors.Is(err, registry.ErrSessionLost); lost != (from == "session") || errors.Is(err, registry.ErrClosed) {
		t.fatalf("error %v of a commit of a %s, in flight at %s; want ErrUncertain, with ErrSessionLost if it is a session",
			err, from, by)
	}
}

func commitInFlightAtLoss(t *caseRun) {
	s := t.open()
	heal, err := t.h.Faults().Blackhole(s, Answers)
	t.must("Blackhole answers", err)
	defer heal()
	_, err = t.try(t.ctx, s, registry.Create(t.path("a"), nil))
	t.proveHit(s)
	if t.ctx.Err() != nil {
		t.fatalf("the commit returned only with its context, long after the session's Deadline: %v", err)
	}
	t.isUncertain(err)
	t.eventually("the commit to be applied", func() string {
		if n := t.latest(t.s, t.path("a")); !n.Exists() {
			return "it is not: the fault has lost the request too"
		}
		return ""
	})
}

// cutOffRead has reads of sessions and of stores wait until their context ends.
func cutOffRead(t *caseRun) {
	reads := map[string]func(context.Context, registry.Store) error{
		"Get":              func(ctx context.Context, s registry.Store) error { return second(s.Get(ctx, t.dir)) },
		"Get of two nodes": func(ctx context.Context, s registry.Store) error { return second(s.Get(ctx, t.dir, t.path("none"))) },
		"Children":         func(ctx context.Context, s registry.Store) error { return second(s.Children(ctx, t.dir)) },
		"Sync":             func(ctx context.Context, s registry.Store) error { return s.Sync(ctx) },
	}
	var ways sync.WaitGroup // side by side: each waits for its context to end
	for name, read := range reads {
		for _, how := range []error{context.DeadlineExceeded, context.Canceled} {
			ways.Go(func() { t.cutOffRead(name, read, how) })
		}
	}
	ways.Wait()
}

func (t *caseRun) cutOffRead(name string, read func(context.Context, registry.Store) error, how error) {
	reg := t.registry()
	s := t.openOn(reg)
	heal := t.blackhole(s)
	defer heal()
	for who, store := range map[string]registry.Store{"session": s, "store": t.store(reg)} {
		err := read(t.endsIn(t.h.SessionTimeout()/8, how), store)
		t.step("%s of a %s = %v", name, who, err)
		if err == nil && name == "Sync" { // it may have nothing to send, where every read is linearizable
			continue
		}
		t.isError(err, registry.ErrUnavailable)
		t.isError(err, how)
	}
	if name != "Sync" {
		t.proveHit(s)
	}
}

func readsRetried(t *caseRun) {
	s := t.openLate()
	t.create(s, t.path("a"), "x")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if nodes, err := s.Get(t.ctx, t.path("a")); err != nil || string(nodes[0].Value) != "x" {
					t.errorf("Get while connections broke: %v, %v", nodes, err)
					return
				}
				if _, err := s.Children(t.ctx, t.dir); err != nil {
					t.errorf("Children while connections broke: %v", err)
					return
				}
			}
		})
	}
	func() {
		defer func() { close(stop); wg.Wait() }()
		for range 5 {
			t.drop(s)
			t.elapse(30 * time.Millisecond)
		}
		t.cutOff(s, func() { t.elapse(t.h.SessionTimeout() / 5) })
	}()
	patient := t.openLate()
	t.longOutage(patient, map[string]func() error{
		"Get":      func() error { return second(patient.Get(t.ctx, t.path("a"))) },
		"Children": func() error { return second(patient.Children(t.ctx, t.dir)) },
		"Sync":     func() error { return patient.Sync(t.ctx) },
	})
	t.present(s, t.path("a"))
	t.alive(s)
}

func oversizeNeighbours(t *caseRun) {
	limits := t.s.Limits()
	value := make([]byte, limits.MaxValue)
	var large []registry.Op
	for i := range limits.MaxBytes/len(value) + 1 {
		large = append(large, registry.Create(t.path(fmt.Sprint("large", i)), value))
	}
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for i := range 25 {
				if _, err := t.s.Commit(t.ctx, registry.Create(t.path(fmt.Sprint(k, "-", i)), nil)); err != nil {
					t.errorf("a small commit beside large ones: %v", err)
					return
				}
			}
		})
	}
	for range 20 {
		if _, err := t.s.Commit(t.ctx, large...); !errors.Is(err, registry.ErrInvalid) {
			t.errorf("commit of %d bytes, MaxBytes is %d: error %v; want ErrInvalid", len(large)*len(value), limits.MaxBytes, err)
			break
		}
	}
	wg.Wait()
	if names := t.children(t.s, t.dir); len(names) != 200 {
		t.fatalf("%d nodes; 200 were created by small commits", len(names))
	}
	t.alive(t.s)
}

func errorClassTable(t *caseRun) {
	refused := func(s registry.Session) (func(), error) { return t.h.Faults().Refuse(s) }
	hole := func(d Direction) func(registry.Session) (func(), error) {
		return func(s registry.Session) (func(), error) { return t.h.Faults().Blackhole(s, d) }
	}
	var unavailable []string
	for name, inject := range map[string]func(registry.Session) (func(), error){
		"refused": refused, "requests": hole(Requests), "answers": hole(Answers), "both": hole(Both),
	} {
		s := t.open()
		heal, err := inject(s)
		t.must(name, err)
		for i := range 5 {
			path := t.path(fmt.Sprint(name, i))
			_, err := t.try(t.within(t.h.SessionTimeout()/20), s, registry.Create(path, nil))
			switch {
			case errors.Is(t.class(err), registry.ErrUnavailable):
				unavailable = append(unavailable, path)
				if name != "refused" {
					t.fatalf("a commit that was sent is %v; nobody knows whether it was applied", err)
				}
			case errors.Is(t.class(err), context.DeadlineExceeded):
				unavailable = append(unavailable, path)
			}
		}
		t.proveHit(s)
		heal()
	}
	t.still(nil)
	t.sync(t.s)
	for _, path := range unavailable {
		t.absent(t.s, path)
	}
}

// class returns the one class of a commit's failure.
func (t *caseRun) class(err error) error {
	if err == nil {
		t.void("a commit succeeded through the fault")
	}
	var found []error
	for _, class := range []error{registry.ErrUnavailable, registry.ErrUncertain} {
		if errors.Is(err, class) {
			found = append(found, class)
		}
	}
	if len(found) == 0 {
		for _, class := range []error{registry.ErrSessionLost, context.DeadlineExceeded} {
			if errors.Is(err, class) {
				found = append(found, class)
				break
			}
		}
	}
	if len(found) != 1 {
		t.fatalf("error %v is of the classes %v; want one of ErrUnavailable, ErrUncertain, ErrSessionLost, the context's", err, found)
	}
	return found[0]
}
