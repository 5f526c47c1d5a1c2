package conformance

import (
	"errors"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// sessionEndCases are about what goes on, or hangs, where a session or its registry ends.
var sessionEndCases = []testCase{
	{name: "RegistryCloseEndsCalls", rules: "R70 R8 R66 R103 R108", run: registryCloseEndsCalls,
		place: "Registry.Close; registry.ErrSessionLost",
		rule:  "closing a registry wakes what waits on its sessions, and every call of theirs fails with ErrSessionLost alone, then and later"},
	{name: "CallsInFlightAtRegistryClose", rules: "R8 R70 R82 R103", run: callsInFlightAtRegistryClose,
		place: "Registry.Close; registry.ErrSessionLost",
		rule:  "calls of a session in flight when its registry is closed fail with ErrSessionLost, and a commit that was sent with ErrUncertain as well"},
	{name: "RegistryClosedByMany", rules: "R70 R43", run: registryClosedByMany, place: "Registry.Close",
		rule: "each of several calls of Registry.Close at once returns nil, and not before its sessions have ended"},
	{name: "EphemeralInFlightAtEnd", rules: "R10 R9", run: ephemeralInFlightAtEnd,
		place: "package doc, Guarantees: a session is one life",
		rule:  "an ephemeral node whose create is under way when its session ends, in whatever way, is gone in the end, and does not come"},
}

func registryCloseEndsCalls(t *caseRun) {
	reg, dir := t.registry(), t.path("held")
	held := t.lock(t.s, dir)
	s := t.openOn(reg)
	mine, waits, w := t.lock(s, t.path("mine")), t.wait(s, dir, 2), t.watch(s)
	next := make(chan error, 1)
	go func() { next <- second(w.Next(t.ctx)) }()
	t.called("Registry.Close", reg.Close())
	if !isClosed(s.Done()) {
		t.fatalf("Registry.Close has returned, and Done of session %s is open", s.ID())
	}
	for name, result := range map[string]func() error{
		"a Lock that waited": func() error { <-waits.done; return waits.err },
		"a Next that waited": func() error { return <-next },
	} {
		err := result()
		if t.ctx.Err() != nil {
			t.fatalf("%s when the registry was closed has not returned to the end of the case", name)
		}
		t.step("%s = %v", name, err)
		t.isLostAlone(name+" when the registry was closed", err)
	}
	t.lostLock(mine)
	for name, call := range t.methods(s, w) {
		err := call()
		t.step("%s = %v", name, err)
		t.isLostAlone(name+" of a session whose registry was closed", err)
	}
	t.queue(dir, 1)
	t.held(held)
}

// callsInFlightAtRegistryClose is CloseRacesCalls, but the session is closed by its registry.
func callsInFlightAtRegistryClose(t *caseRun) {
	reg := t.registry()
	t.inFlight(t.openOn(reg), "the registry was closed", func(registry.Session) {
		t.called("Registry.Close", reg.Close())
	})
}

func registryClosedByMany(t *caseRun) {
	reg := t.registry()
	var sessions []registry.Session
	for range 3 {
		sessions = append(sessions, t.openOn(reg))
	}
	var closing sync.WaitGroup
	for range 4 {
		closing.Go(func() {
			err := reg.Close()
			for _, s := range sessions {
				if !isClosed(s.Done()) {
					t.errorf("one of four calls of Registry.Close has returned, and Done of session %s is open", s.ID())
				}
			}
			if err != nil {
				t.errorf("Registry.Close, called four times at once: %v", err)
			}
		})
	}
	closing.Wait()
	_, err := reg.Open(t.ctx)
	t.isError(err, registry.ErrClosed)
}

func ephemeralInFlightAtEnd(t *caseRun) {
	ends := map[string]func(registry.Registry, registry.Session){
		"Close": func(_ registry.Registry, s registry.Session) {
			t.step("Close = %v", s.Close(t.within(t.h.SessionTimeout()/8)))
		},
		"Registry.Close": func(reg registry.Registry, _ registry.Session) {
			t.step("Registry.Close = %v", reg.Close())
		},
		"the loss": func(_ registry.Registry, s registry.Session) { t.lostSoon(s) },
	}
	var paths []string
	var ways sync.WaitGroup // side by side: each waits for a session to expire
	for by, end := range ends {
		for _, d := range []Direction{Answers, Both} {
			path := t.path(fmt.Sprintf("%s, %s", by, d))
			paths = append(paths, path)
			ways.Go(func() { t.ephemeralInFlight(d, path, by, end) })
		}
	}
	ways.Wait()
	t.create(t.s, t.path("end"), "") // how long that takes is what the wait goes by
	t.still(func() { t.sync(t.s); t.absent(t.s, paths...) })
}

// ephemeralInFlight has a session end whose commit gets no answer, and what comes of it once the client is back.
func (t *caseRun) ephemeralInFlight(d Direction, path, by string, end func(registry.Registry, registry.Session)) {
	reg := t.registry()
	s := t.openOn(reg)
	heal, err := t.h.Faults().Blackhole(s, d)
	t.must("Blackhole "+d.String(), err)
	defer heal()
	failed := make(chan error, 1)
	go func() { failed <- second(s.Commit(t.ctx, registry.CreateEphemeral(path, nil))) }()
	if d == Answers {
		t.appliedSoon(path)
	}
	t.hitSoon(s)
	end(reg, s)
	select {
	case err = <-failed:
	case <-t.ctx.Done():
		t.fatalf("a commit in flight at %s has not returned", by)
	}
	t.proveHit(s)
	t.step("the commit, in flight at %s = %v", by, err)
	if err == nil || !errors.Is(err, registry.ErrSessionLost) && !errors.Is(err, registry.ErrUncertain) {
		t.fatalf("error %v of a commit that was in flight at %s; want ErrUncertain or ErrSessionLost", err, by)
	}
	heal()
	t.step("healed")
	t.goneSoon(t.s, path)
}
