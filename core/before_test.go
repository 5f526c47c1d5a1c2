package core_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// before is the option by which an instance listens before rounds.
func (x *rounds) before(l core.RoundListeners) core.Option {
	l.BeforeAll = x.after
	return core.WithRoundListeners(everySecond.Name, l)
}

// returned notes for which rounds a listener has returned, and early what began before.
type returned struct {
	last  atomic.Int64
	early atomic.Int64
}

func (r *returned) note(due time.Time) { r.last.Store(max(r.last.Load(), due.UnixNano())) }

// work is for the witness: every run is of a round for which the listener has returned.
func (r *returned) work(_ context.Context, s core.Shard) error {
	if s.Due.UnixNano() > r.last.Load() {
		r.early.Add(1)
	}
	return nil
}

// holdOne has the listener wait in its next call, for the round that it returns, until open.
func (x *rounds) holdOne(b *bed) (due time.Time, open func()) {
	until := make(chan struct{})
	var held atomic.Int64
	x.mu.Lock()
	x.hold = func(_ context.Context, r core.Round) error {
		if held.CompareAndSwap(0, r.Due.UnixNano()) {
			<-until
		}
		return nil
	}
	x.mu.Unlock()
	b.until("the listener is called", func() bool { return held.Load() != 0 })
	return time.Unix(0, held.Load()), func() { close(until) }
}

// listened waits until everybody has heard that somebody listens.
func (b *bed) listened(x *rounds, from int) {
	b.Helper()
	b.until("rounds are called for", func() bool { return len(x.all()) >= from+2 })
}

func TestNoItemStartsBeforeTheListenerHasReturned(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x, r := newWitness(), &rounds{}, &returned{}
		x.hold = func(_ context.Context, round core.Round) error {
			pause(150 * time.Millisecond)
			r.note(round.Due)
			return nil
		}
		a := b.start("a", w, everySecond, x.before(core.RoundListeners{}))
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		w.mu.Lock()
		w.hold = r.work
		w.mu.Unlock()
		from := len(x.all())
		b.until("five rounds", func() bool { return len(x.all()) >= from+5 })
		x.ordered(b)
		for _, round := range x.all()[from:] {
			require.Zero(b, round.Merged, "%v", round)
			b.until("it runs, whole", func() bool { return w.ran(round.Due) == 4 })
		}
		require.Zero(b, r.early.Load(), "an item began before the listener had returned")
		require.Empty(b, of[event.RoundLate](a))
		require.Empty(b, of[event.RoundLate](c))
		require.Empty(b, w.doubled())
		for _, e := range of[event.RoundHeard](a) {
			require.Equal(b, event.RoundStarted, e.Phase)
			require.NoError(b, e.Err)
		}
	})
}

// The listener's error is the round's: no item of it is called, wherever.
func TestTheListenerRefusesARound(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		a := b.start("a", w, everySecond, x.before(core.RoundListeners{}))
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		refusal := errors.New("by the test")
		var refused atomic.Int64
		x.mu.Lock()
		x.hold = func(_ context.Context, r core.Round) error {
			if refused.CompareAndSwap(0, r.Due.UnixNano()) {
				return refusal
			}
			return nil
		}
		x.mu.Unlock()
		b.until("one is refused", func() bool { return refused.Load() != 0 })
		due := time.Unix(0, refused.Load())
		b.until("all its items fail", func() bool {
			n := 0
			for _, in := range []*instance{a, c} {
				for _, e := range of[event.ItemEnded](in) {
					if e.Due.Equal(due) && errors.Is(e.Err, core.ErrHeldUp) {
						n++
					}
				}
			}
			return n == 4
		})
		require.Zero(b, w.ran(due), "no function is called")
		b.until("the next rounds run", func() bool { return w.ran(due.Add(2*time.Second)) == 4 })
		require.Empty(b, of[event.RoundLate](a))
		require.True(b, slices.ContainsFunc(of[event.RoundHeard](a), func(e event.RoundHeard) bool { return errors.Is(e.Err, refusal) }))
	})
}

// A listener that does not return in time: the items start without, or fail.
func TestTheListenerIsTooLate(t *testing.T) {
	for _, fail := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			w, x := newWitness(), &rounds{}
			a := b.start("a", w, everySecond, x.before(core.RoundListeners{Timeout: 300 * time.Millisecond, Wait: 500 * time.Millisecond, FailLate: fail}))
			c := b.start("c", w, everySecond)
			b.until("shared", func() bool { return allOwned(4, a, c) })
			b.listened(x, 0)
			x.mu.Lock()
			x.hold = func(ctx context.Context, _ core.Round) error { <-ctx.Done(); return ctx.Err() }
			n := len(x.calls)
			x.mu.Unlock()
			b.until("three more are called for", func() bool { return len(x.all()) >= n+4 })
			pause(700 * time.Millisecond)
			for _, r := range x.all()[n : n+3] {
				if fail {
					require.Zero(b, w.ran(r.Due))
				} else {
					require.Equal(b, 4, w.ran(r.Due), "they start all the same")
				}
			}
			x.ordered(b)
			require.Empty(b, w.doubled())
		})
	}
}

// Items wait for those that have not begun, and say for whom.
func TestARoundDoesNotGather(t *testing.T) {
	for _, fail := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			w, x := newWitness(), &rounds{}
			a := b.start("a", w, everySecond, x.before(core.RoundListeners{Wait: 700 * time.Millisecond, FailLate: fail}))
			c := b.start("c", w, everySecond)
			b.until("shared", func() bool { return allOwned(4, a, c) })
			b.listened(x, 0)
			id := c.job().Instance
			c.gate.hold(func(ops []registry.Op) { <-b.Context().Done() }) // its begins do not come through
			b.until("it is told", func() bool { return len(of[event.RoundLate](a)) >= 2 })
			late := of[event.RoundLate](a)[1]
			require.Equal(b, []string{id}, late.Missing)
			require.Len(b, late.Items, 2)
			require.Empty(b, late.Caller)
			require.Equal(b, fail, late.Failed)
			require.Equal(b, 700*time.Millisecond, late.Waited)
			b.until("its outcome", func() bool {
				return slices.ContainsFunc(of[event.ItemEnded](a), func(e event.ItemEnded) bool {
					return e.Due.Equal(late.Due) && errors.Is(e.Err, core.ErrHeldUp) == fail
				})
			})
			if fail {
				require.Zero(b, w.ran(late.Due))
			}
		})
	}
}

// What is to be told while the registry does not answer for whom items waited is told at the end of
// the session.
func TestALateRoundIsToldThoughTheSessionIsLost(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		a := b.start("a", w, everySecond, x.before(core.RoundListeners{Wait: 700 * time.Millisecond}))
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		silent, asked := make(chan struct{}), make(chan struct{}, 100)
		ledger := b.own(a, "ledgers/"+c.job().Instance)
		a.gate.ask(func(paths []string) {
			if slices.Contains(paths, ledger) {
				asked <- struct{}{}
				<-silent
			}
		})
		c.gate.hold(func([]registry.Op) { <-b.Context().Done() }) // its begins do not come through
		<-asked
		ended := len(of[event.ItemEnded](a))
		b.until("the next round is late too", func() bool { return len(of[event.ItemEnded](a)) >= ended+4 })
		told := len(of[event.RoundLate](a))
		a.gate.lose()
		b.until("what waits is told", func() bool { return len(of[event.RoundLate](a)) > told })
		close(silent)
		b.until("and what was being told", func() bool { return len(of[event.RoundLate](a)) > told+1 })
	})
}

// Who is called dies: another one is, where that may be; else the items go on or fail.
func TestWhoIsCalledBeforeARoundDies(t *testing.T) {
	for _, c := range []struct{ again, fail bool }{{true, false}, {false, false}, {false, true}} {
		inBubble(t, func(b *bed) {
			w, x := newWitness(), &rounds{}
			l := core.RoundListeners{Again: c.again, FailLate: c.fail, Timeout: 20 * time.Second}
			cfg := withFailover(everySecond)
			ins := []*instance{b.start("a", w, cfg, x.before(l)), b.start("c", w, cfg, x.before(l)), b.start("d", w, cfg, x.before(l))}
			b.until("shared", func() bool { return allOwned(4, ins...) })
			b.listened(x, 0)
			leads, others := leader(b, ins...)
			id := leads.job().Instance
			var stuck atomic.Int64
			x.mu.Lock()
			x.hold = func(ctx context.Context, r core.Round) error {
				if r.Attempt == 1 && r.Instance == id {
					stuck.CompareAndSwap(0, r.Due.UnixNano())
					<-ctx.Done()
				}
				return nil
			}
			x.mu.Unlock()
			b.until("somebody is called", func() bool { return stuck.Load() != 0 })
			due := time.Unix(0, stuck.Load())
			require.Zero(b, w.ran(due))
			b.crash(leads)
			b.until("its death is told", func() bool { return len(of[event.RoundLost](others[0]))+len(of[event.RoundLost](others[1])) == 1 })
			b.until("later rounds run", func() bool { return w.ran(due.Add(8*time.Second)) == 4 })
			called := slices.ContainsFunc(x.all(), func(r core.Round) bool { return r.Due.Equal(due) && r.Attempt == 2 })
			require.Equal(b, c.again, called)
			failed := 0
			for _, in := range others {
				for _, e := range of[event.ItemEnded](in) {
					if e.Due.Equal(due) && errors.Is(e.Err, core.ErrHeldUp) {
						failed++
					}
				}
			}
			require.Equal(b, c.fail, failed > 0, "%d failed", failed)
			require.Empty(b, w.doubled())
		})
	}
}

// Whoever stops while its items wait gives them back; nobody runs twice, and they are no tries.
func TestStopBeforeARound(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		cfg := withFailover(everySecond)
		a := b.start("a", w, cfg, x.before(core.RoundListeners{Timeout: 20 * time.Second}))
		c := b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		due, open := x.holdOne(b)
		c.stop(b)
		require.Zero(b, w.ran(due))
		b.until("a has them", func() bool { return allOwned(4, a) })
		open()
		b.until("all of them run", func() bool { return w.ran(due.Add(2*time.Second)) == 4 })
		require.GreaterOrEqual(b, w.ran(due), 2, "those that had waited here")
		require.Empty(b, w.again(), "what was given back is no try")
		require.Empty(b, w.doubled())
	})
}

// A lost session at the barrier: nothing was called, and it runs again where failover is on.
func TestTheSessionIsLostBeforeARound(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		cfg := withFailover(everySecond)
		a := b.start("a", w, cfg, x.before(core.RoundListeners{Timeout: time.Minute, Wait: 2 * time.Minute}))
		c := b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		due, open := x.holdOne(b)
		c.gate.lose()
		b.until("it is back", func() bool { return len(of[event.SessionRegained](c)) == 1 })
		require.Zero(b, w.ran(due), "nothing has started")
		open()
		b.until("the round is whole", func() bool { return w.ran(due) == 4 })
		require.Empty(b, w.doubled())
	})
}

// Nobody listens any more: items that wait go on.
func TestTheOnlyListenerLeaves(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		c := b.start("c", w, everySecond)
		a := b.start("a", w, everySecond, x.before(core.RoundListeners{Timeout: time.Minute, Wait: 2 * time.Minute}))
		b.until("shared", func() bool { return allOwned(4, a, c) })
		b.listened(x, 0)
		n := len(x.all())
		b.crash(a)
		count := w.count()
		b.until("c goes on alone", func() bool { return allOwned(4, c) && w.count() >= count+12 })
		require.LessOrEqual(b, len(x.all()), n+1)
		require.Empty(b, w.doubled())
	})
}

// What somebody asked for belongs to no round.
func TestRequestsWaitForNoRound(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		cfg := everySecond
		cfg.Cron = "0 0 0 1 1 ? 2099"
		a := b.start("a", w, cfg, x.before(core.RoundListeners{}))
		b.until("owned", func() bool { return allOwned(4, a) })
		job, err := layout.New(b.ns, cfg.Name)
		require.NoError(b, err)
		b.create(a, job.Request("r"), string(layout.MarshalRequest(layout.Request{Expires: time.Now().Add(time.Hour)})))
		b.until("they run", func() bool { return w.count() == 4 })
		require.Empty(b, x.all())
	})
}

// A listener before rounds costs the leader one commit and two reads, its caller one commit, and
// each fire the operations of a listener after rounds.
func TestWhatAListenerBeforeRoundsCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		b := &bed{T: t, ns: "shop", fake: true, client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
		cfg := core.JobConfig{Name: everySecond.Name, Cron: "0/10 * * * * ?", Shards: 8, Concurrency: 100, ReconcileInterval: -1}
		x, w := &rounds{}, newWitness()
		in := b.start("a", w, cfg, x.before(core.RoundListeners{}))
		b.until("settled", func() bool { return allOwned(8, in) })
		pause(time.Minute)
		synctest.Wait()
		srv.ResetRequests()
		pause(time.Minute)
		synctest.Wait()
		got := srv.Requests()
		got.Heartbeat = 0
		require.Len(b, x.since(time.Now().Add(-60*time.Second)), 6)
		require.Equal(b, memory.Counts{Commit: 6 * 4, Get: 6, Children: 6}, got)
	})
}

// The claim of rounds is made again as it was, and a listener that had answered for one says so again: where it was
// written over with nonsense, or deleted, while a listener was called or between two calls, each round is called for
// once, and each second one begins.
func TestTheClaimIsMadeAgainAsItWas(t *testing.T) {
	for name, spoil := range map[string]registry.Op{
		"deleted": {Kind: registry.OpDelete, Version: registry.AnyVersion}, "nonsense": {Kind: registry.OpSet, Value: []byte("[]"), Version: registry.AnyVersion},
		"null": {Kind: registry.OpSet, Value: []byte("null"), Version: registry.AnyVersion},
	} {
		for _, during := range []bool{false, true} {
			who := map[bool]string{false: "between two calls", true: "during one"}[during]
			t.Run(name+" "+who, func(t *testing.T) {
				inBubble(t, func(b *bed) {
					w, x := newWitness(), &rounds{}
					a := b.start("a", w, everySecond, x.before(core.RoundListeners{}))
					b.listened(x, 0)
					var due time.Time
					open := func() {}
					if during {
						due, open = x.holdOne(b)
					} else {
						n := len(x.all())
						b.until("another round", func() bool { return len(x.all()) > n })
						all := x.all()
						due = all[len(all)-1].Due
						pause(200 * time.Millisecond)
					}
					spoil.Path = b.own(a, "inforce/claim")
					_, err := b.store(a).Commit(b.Context(), spoil)
					require.NoError(b, err)
					pause(200 * time.Millisecond)
					open()
					b.until("all items of the round run", func() bool { return w.ran(due) == 4 })
					b.until("the next rounds begin", func() bool { return len(x.since(due)) > 4 })
					require.Less(b, time.Since(due), 7*time.Second)
					x.ordered(b)
					require.Empty(b, w.doubled())
				})
			})
		}
	}
}
