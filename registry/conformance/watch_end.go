package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// keptAll demands that a watch whose session has ended told nothing to be gone that is there.
func (f *follower) keptAll(paths ...string) {
	for _, e := range f.events() {
		if !e.Synced && !e.Node.Exists() && slices.Contains(paths, e.Node.Path) {
			f.t.fatalf("with the end of its session the watch of %s told that %s was gone, which is there", target{e.Path, e.Scope}, e.Node.Path)
		}
	}
}

func watchEndsOnLoss(t *caseRun) {
	t.create(t.s, t.path("a"), "x")
	s := t.open()
	f, waits := t.syncedOn(s, t.dir, registry.Children), t.follow(s)
	idle := t.watch(s)
	t.must("Expire", t.h.Faults().Expire(s))
	t.lostSoon(s)
	t.isError(f.ended(), registry.ErrSessionLost)
	t.isError(waits.ended(), registry.ErrSessionLost)
	f.keptAll(t.path("a"))
	for range 2 { // again, too
		for _, w := range []registry.Watcher{idle, f.w, waits.w} {
			t.isError(second(w.Next(t.within(t.left()/4))), registry.ErrSessionLost)
		}
	}
	closed := t.open()
	f, waits = t.syncedOn(closed, t.dir, registry.Children), t.follow(closed)
	if err := closed.Close(t.ctx); err != nil {
		t.fatalf("Close: %v", err)
	}
	t.isError(f.ended(), registry.ErrSessionLost)
	t.isError(waits.ended(), registry.ErrSessionLost)
	f.keptAll(t.path("a"))
}

func watchEndsOnCtx(t *caseRun) {
	w := t.watch(t.s)
	ctx, cancel := context.WithTimeout(t.ctx, 20*time.Millisecond)
	defer cancel()
	_, err := w.Next(ctx)
	t.step("Next = %v", err)
	t.isError(err, context.DeadlineExceeded)
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	if err := w.Add(t.dir, registry.Self); err != nil {
		t.fatalf("Add after Next had failed with its context's error: %v", err)
	}
	if _, err = w.Next(cancelled); err != nil {
		t.isError(err, context.Canceled)
		t.drain(w, func(e registry.Event) bool { return e.Synced })
	} // else an event was there already, and may be preferred
	t.endedBetween(cancelled, w)
}

// endedBetween takes many events, with calls in between whose context has ended.
func (t *caseRun) endedBetween(ended context.Context, w registry.Watcher) {
	many := make([]string, 300)
	for i := range many {
		many[i] = t.path(fmt.Sprint(i))
	}
	t.createAll(t.s, many)
	t.called("Add", w.Add(t.dir, registry.Children))
	told := map[string]bool{}
	for synced := false; !synced; {
		for i := range 6 {
			ctx := ended
			if i == 5 {
				ctx = t.ctx
			}
			events, err := w.Next(ctx)
			if err != nil && i == 5 {
				t.fatalf("Next after %d events of %d, with calls in between whose context had ended: %v", len(told), len(many), err)
			}
			for _, e := range events {
				told[e.Node.Path] = told[e.Node.Path] || !e.Synced && e.Scope == registry.Children
				synced = synced || e.Synced && e.Scope == registry.Children
			}
		}
	}
	for _, path := range many {
		if !told[path] {
			t.fatalf("of %d nodes %s was not delivered before Synced, with calls of Next in between whose context had ended", len(many), path)
		}
	}
}

// nextGivesUp ends calls of Next while their events are on the way.
func nextGivesUp(t *caseRun) {
	const targets, rounds = 10, 5
	s := t.open()
	late := t.h.SessionTimeout() / 10
	slow, err := t.h.Faults().(*observedFaults).Delay(s, late)
	t.must("Delay", err)
	defer slow()
	f := t.followFor(s, late/4)
	f.add(t.dir, registry.Children)
	for i := range targets {
		f.add(t.path(fmt.Sprint(i)), registry.Self)
	}
	for round := range rounds {
		value := fmt.Sprint(round)
		for i := range targets {
			op := registry.Set(t.path(fmt.Sprint(i)), []byte(value), registry.AnyVersion)
			if round == 0 {
				op = registry.Create(op.Path, op.Value)
			}
			t.commit(t.s, op)
		}
		f.until("value "+value+" to arrive everywhere", func() string {
			for g, v := range f.views {
				if v.synced < v.adds {
					return "Synced of " + g.String() + " has not come"
				}
				for i := range targets {
					p := t.path(fmt.Sprint(i))
					if n := v.nodes[p]; (g.scope == registry.Children || g.path == p) && string(n.Value) != value {
						return fmt.Sprintf("the watch of %s has %s", g, show(n))
					}
				}
			}
			return ""
		})
	}
	slow()
}

// drain consumes w until is holds, and returns how many events came.
func (t *caseRun) drain(w registry.Watcher, is func(registry.Event) bool) int {
	for count := 0; ; {
		events, err := w.Next(t.ctx)
		if err != nil {
			t.fatalf("Next after %d events: %v", count, err)
		}
		for _, e := range events {
			count++
			if is(e) {
				return count
			}
		}
	}
}

func watchEndsOnClose(t *caseRun) {
	f := t.syncedOn(t.s, t.dir, registry.Children)
	for range 2 {
		if err := f.w.Close(); err != nil {
			t.fatalf("Watcher.Close: %v", err)
		}
	}
	t.isError(f.ended(), registry.ErrClosed)
	_, err := f.w.Next(t.ctx)
	t.isError(err, registry.ErrClosed)
	t.isError(f.w.Add(t.path("x"), registry.Self), registry.ErrClosed)
	t.isError(f.w.Add(t.dir, registry.Children), registry.ErrClosed)
	f.w.Remove(t.dir, registry.Children)
	t.create(t.s, t.path("a"), "")

	full := t.watch(t.s)
	t.called("Add", full.Add(t.dir, registry.Children))
	t.syncedOn(t.s, t.dir, registry.Children) // by now the other watcher may have its events as well
	t.called("Watcher.Close", full.Close())
	events, err := full.Next(t.ctx)
	t.step("closed with events that wait: Next = %d events, %v", len(events), err)
	t.isError(err, registry.ErrClosed)
}

func stopConsuming(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.syncedOn(t.s, t.dir, registry.Children)
	before := t.goroutines()
	var open []registry.Watcher
	for range 100 {
		w, err := t.s.Watch(t.ctx)
		if err != nil {
			t.fatalf("Watch: %v", err)
		}
		open = append(open, w)
		for _, scope := range []registry.Scope{registry.Self, registry.Children} {
			if err := w.Add(t.dir, scope); err != nil {
				t.fatalf("Add: %v", err)
			}
		}
	}
	for i := range 50 {
		t.commit(t.s, registry.Set(t.path("a"), nil, registry.Version(i)))
	}
	for _, w := range open {
		if err := w.Close(); err != nil {
			t.fatalf("Watcher.Close: %v", err)
		}
	}
	t.eventually("the goroutines of 100 closed watchers to end", func() string {
		if n := t.goroutines(); n > before+10 {
			return fmt.Sprintf("%d goroutines; there were %d before", n, before)
		}
		return ""
	})
}

func slowConsumer(t *caseRun) {
	const nodes, rounds = 10, 200
	writer := t.open()
	for i := range nodes {
		t.create(writer, t.path(fmt.Sprint(i)), "0")
	}
	w := t.watch(t.s)
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	t.drain(w, func(e registry.Event) bool { return e.Synced })
	for i := 1; i <= rounds; i++ {
		ops := make([]registry.Op, nodes)
		for k := range ops {
			ops[k] = registry.Set(t.path(fmt.Sprint(k)), fmt.Append(nil, i), registry.AnyVersion)
		}
		if _, err := writer.Commit(t.ctx, ops...); err != nil {
			t.fatalf("commit: %v", err)
		}
	}
	t.step("%d sets of %d nodes while nobody called Next", rounds*nodes, nodes)
	// A second watcher that sees the end proves that the first could have it by now.
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.create(writer, t.path("end"), "end")
	f.becomes(t.path("end"), "end")
	left := map[string]bool{}
	count := t.drain(w, func(e registry.Event) bool {
		if string(e.Node.Value) == fmt.Sprint(rounds) || string(e.Node.Value) == "end" {
			left[e.Node.Path] = true
		}
		return len(left) == nodes+1
	})
	if count > nodes*rounds/10 {
		t.fatalf("%d events had waited for %d changes of %d nodes: they are not coalesced", count, nodes*rounds, nodes)
	}
}
