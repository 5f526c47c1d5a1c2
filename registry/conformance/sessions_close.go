package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// prompt lets attempt take too long twice, while there is time for another: a machine may stand still for a moment.
func (t *caseRun) prompt(what string, bound time.Duration, attempt func() (took time.Duration)) {
	var all []time.Duration
	for took := time.Duration(0); len(all) < attempts && t.left() > 2*took; all = append(all, took) {
		if took = attempt().Round(time.Millisecond); took <= bound {
			return
		}
	}
	t.fatalf("%s took %v, each time; want at most %v", what, all, bound)
}

// closes calls Close and returns how long it took. nil says that the node at path is gone.
func (t *caseRun) closes(ctx context.Context, s registry.Session, path string) time.Duration {
	start := time.Now()
	err := s.Close(ctx)
	took := time.Since(start)
	t.step("Close of session %s = %v after %v", s.ID(), err, took)
	if err == nil && t.latest(t.s, path).Exists() {
		t.fatalf("Close returned nil; the service could not be told, and the session's node is there")
	}
	return took
}

// closeUnreachable ends the context of Close in both ways, and calls Close alone, beside a longer one, and again.
func closeUnreachable(t *caseRun) {
	brief := t.h.SessionTimeout() / 10
	cancelled := func(d time.Duration) context.Context {
		ctx, cancel := context.WithCancel(t.ctx)
		timer := time.AfterFunc(d, cancel)
		t.Cleanup(func() { timer.Stop(); cancel() })
		return ctx
	}
	bound := brief + t.h.SessionTimeout()/4
	ends := map[string]func(time.Duration) context.Context{"a deadline": t.within, "a cancel": cancelled}
	var ways sync.WaitGroup // side by side: each waits for a session to expire
	for how, within := range ends {
		for _, beside := range []bool{false, true} {
			ways.Go(func() {
				t.prompt("Close with "+how+" after "+brief.String(), bound, func() time.Duration {
					return t.closeCutOff(func() context.Context { return within(brief) }, bound, beside)
				})
			})
		}
	}
	ways.Wait()
}

func (t *caseRun) closeCutOff(brief func() context.Context, bound time.Duration, beside bool) (took time.Duration) {
	owner := t.open()
	path := t.path(owner.ID())
	t.commit(owner, registry.CreateEphemeral(path, nil))
	l := t.lock(owner, path+"-lock")
	heal := t.blackhole(owner)
	defer heal()
	t.step("Release, which goes on for as long as the session lives = %v", l.Release(t.within(t.h.SessionTimeout()/20)))
	var work sync.WaitGroup
	defer work.Wait()
	if beside {
		work.Go(func() { t.closes(t.within(t.h.SessionTimeout()/2), owner, path) })
		t.lostSoon(owner)
	}
	if took = t.closes(brief(), owner, path); took > bound {
		return took
	}
	t.closes(brief(), owner, path)
	t.lostSoon(owner)
	t.isError(owner.Err(), registry.ErrSessionLost)
	t.goneSoon(t.s, path)
	return took
}

func closeAfterLoss(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("a"), nil))
	heal := t.blackhole(owner)
	defer heal()
	t.lostSoon(owner)
	t.proveHit(owner)
	heal()
	t.step("healed")
	if err := owner.Close(t.ctx); err != nil {
		t.fatalf("Close of a lost session whose service can be reached: %v", err)
	}
	t.sync(t.s)
	t.absent(t.s, t.path("a"))

	// Its heartbeats arrive until it is lost, so that its nodes outlive it.
	owner = t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("b"), nil))
	for _, d := range []Direction{Answers, Both} {
		heal, err := t.h.Faults().Blackhole(owner, d)
		t.must("Blackhole "+d.String(), err)
		defer heal()
		t.lostSoon(owner)
	}
	t.closes(t.within(t.h.SessionTimeout()/10), owner, t.path("b"))

	// The service has ended it, and its client does not know that yet.
	owner = t.open()
	t.commit(owner, registry.CreateEphemeral(t.path("c"), nil))
	t.must("Expire", t.h.Faults().Expire(owner))
	t.goneSoon(t.s, t.path("c"))
	if err := owner.Close(t.ctx); err != nil {
		t.fatalf("Close of a session that the service has ended: %v; want nil, its nodes are gone", err)
	}
}

// closeBeside calls what others may while Close of a session of their registry waits for the service.
func closeBeside(t *caseRun) {
	brief := t.h.SessionTimeout() / 10
	bound := brief + t.h.SessionTimeout()/4
	t.prompt("a call beside a Close that waits, with a context of "+brief.String(), bound, func() time.Duration {
		reg := t.registry()
		closing, other, third := t.openOn(reg), t.openOn(reg), t.openOn(reg)
		heal := t.blackhole(closing)
		defer heal()
		t.proveBlackhole(closing)
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { t.step("Close = %v", closing.Close(t.within(t.h.SessionTimeout()/2))) })
		t.lostSoon(closing)
		ctx := t.within(brief)
		calls := t.calls(ctx, other)
		calls["Registry.Open"] = func() error { return second(reg.Open(ctx)) }
		calls["OpenStore"] = func() error { return second(reg.OpenStore(ctx)) }
		calls["Close"] = func() error { return third.Close(ctx) }
		return t.longest(calls)
	})
}

// callsBeside calls everything twice while the service does not answer: without an end, and briefly.
func callsBeside(t *caseRun) {
	brief := t.h.SessionTimeout() / 10
	bound := brief + t.h.SessionTimeout()/4
	t.prompt("a call beside others that wait, with a context of "+brief.String(), bound, func() time.Duration {
		s := t.open()
		patient, giveUp := context.WithCancel(t.ctx)
		heal := t.blackhole(s)
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer giveUp()
		defer heal()
		for range 2 {
			for _, call := range t.calls(patient, s) {
				waiting.Go(func() { _ = call() })
			}
		}
		t.proveBlackhole(s)
		return t.longest(t.calls(t.within(brief), s))
	})
}

// longest makes calls at once and returns how long the last one took.
func (t *caseRun) longest(calls map[string]func() error) time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			err := call()
			t.step("%s = %v after %v", name, err, time.Since(start))
		})
	}
	all.Wait()
	return time.Since(start)
}

// registryCloseCutOff closes a registry while a Close and an Open wait for the service.
func registryCloseCutOff(t *caseRun) {
	bound := t.h.SessionTimeout() / 2
	t.prompt("Registry.Close, while the service did not answer,", bound, func() time.Duration {
		reg := t.registry()
		s, closing := t.openOn(reg), t.openOn(reg)
		path := t.path(s.ID())
		t.commit(s, registry.CreateEphemeral(path, nil))
		heal := t.blackhole(s)
		defer heal()
		t.proveBlackhole(s)
		var work sync.WaitGroup
		defer work.Wait()
		opened := t.opens(reg)
		work.Go(func() { t.step("Session.Close = %v", closing.Close(t.within(bound*5/4))) })
		t.lostSoon(closing)
		start := time.Now()
		t.step("Registry.Close = %v", reg.Close())
		took := time.Since(start)
		if took > bound {
			return took
		}
		t.notOpened(opened)
		t.lostSoon(s)
		heal()
		t.goneSoon(t.s, path)
		return took
	})
}

// An opening is what came of an Open.
type opening struct {
	s   registry.Session
	err error
}

// opens calls Open and lets it come as far as it can.
func (t *caseRun) opens(reg registry.Registry) <-chan opening {
	c := make(chan opening, 1)
	go func() {
		s, err := reg.Open(t.ctx)
		c <- opening{s, err}
	}()
	t.elapse(t.h.SessionTimeout() / 16)
	return c
}

// notOpened demands that an Open which was under way when its registry was closed has failed, or soon does.
func (t *caseRun) notOpened(c <-chan opening) {
	goesOn := time.NewTimer(t.h.SessionTimeout())
	defer goesOn.Stop()
	select {
	case o := <-c:
		t.step("Open, under way when its registry was closed = %v", o.err)
		switch {
		case o.err != nil && !errors.Is(o.err, registry.ErrClosed):
			t.fatalf("Open, under way when its registry was closed: error %v; want ErrClosed", o.err)
		case o.err == nil && o.s.Err() == nil:
			t.fatalf("Open, under way when its registry was closed, returned a session that lives")
		}
	case <-goesOn.C:
		t.fatalf("Open goes on %v after its registry was closed", t.h.SessionTimeout())
	}
}

// openRacesClose closes registries whose Open is answered late, or refused.
func openRacesClose(t *caseRun) {
	faults := t.h.Faults().(*observedFaults)
	var ways sync.WaitGroup
	for name, fault := range map[string]func(registry.Session) (func(), error){
		"Delay":  func(s registry.Session) (func(), error) { return faults.Delay(s, t.h.SessionTimeout()/4) },
		"Refuse": faults.Refuse,
	} {
		ways.Go(func() {
			reg := t.registry()
			first := t.openOn(reg)
			heal, err := fault(first)
			t.must(name, err)
			defer heal()
			opened := t.opens(reg)
			t.step("Registry.Close = %v", reg.Close())
			t.notOpened(opened)
		})
	}
	ways.Wait()
}

// ephemeralsRaceClose closes sessions that make nodes, by several callers each.
func ephemeralsRaceClose(t *caseRun) {
	const rounds, callers = 6, 4
	reg := t.registry()
	for round := range rounds {
		s := t.openOn(reg)
		var busy, all sync.WaitGroup
		busy.Add(callers)
		for caller := range callers {
			all.Go(func() {
				begun := sync.OnceFunc(busy.Done)
				defer begun()
				for i := 0; ; i++ {
					_, err := s.Commit(t.ctx, registry.CreateEphemeral(t.path(fmt.Sprintf("%d-%d-%d", round, caller, i)), nil))
					begun()
					if err != nil {
						t.isError(err, registry.ErrSessionLost)
						return
					}
				}
			})
		}
		busy.Wait()
		t.mustClose(s)
		all.Wait()
		t.noneIsLeft()
	}
	t.still(t.noneIsLeft)
}

func (t *caseRun) noneIsLeft() {
	t.sync(t.s)
	if names := t.children(t.s, t.dir); len(names) > 0 {
		t.fatalf("Close has returned nil, and of the nodes that were on their way %q exists", names)
	}
}
