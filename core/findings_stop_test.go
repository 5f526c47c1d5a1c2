package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// Finding 3: Stop dropped what the instance still owed, and recorded it as done.
func TestFinding3WhatIsOwedAtStopIsMadeUpByTheNextOwner(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Misfire = core.MisfireAll
		a := b.start("a", w, cfg)
		b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 8 })
		from := w.first()
		a.gate.decide(func([]registry.Op) fate { return requestLost }) // nothing begins: there is a backlog
		pause(4 * time.Second)
		w.holds(func(context.Context, core.Shard) error { pause(400 * time.Millisecond); return nil })
		before := w.count()
		a.gate.decide(nil)
		b.until("it makes up", func() bool { return w.count() >= before+4 })
		d := b.start("d", w, cfg) // there is always one that is up
		a.stop(b)
		w.holds(nil)
		b.until("the next owner has", func() bool { return allOwned(4, d) && w.count() >= before+32 })
		end := w.last().Add(-2 * time.Second)
		d.stop(b)
		h := b.history(w, a, d)
		if b.fake { // on a real clock the last of the backlog may run over the next fire
			require.Empty(b, h.skipped, "of a backlog that is not too long nothing is skipped")
		}
		require.Empty(b, h.open(1, 4, from, end))
		require.Empty(b, h.wrong())
		require.Empty(b, w.doubled())
	})
}

// Finding 12: after Stop's context had ended, runs that waited for a place were recorded as
// failed though their functions were never called, and nobody made them up.
func TestFinding12WhatWaitsForAPlaceAtStopIsGivenBack(t *testing.T) {
	for name, patience := range map[string]time.Duration{"past its context": 200 * time.Millisecond, "in time": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(b *bed) {
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 6, Concurrency: 2, Misfire: core.MisfireAll}
				w := newWitness()
				held := make(chan struct{})
				release := sync.OnceFunc(func() { close(held) })
				w.hold = func(ctx context.Context, _ core.Shard) error {
					select {
					case <-ctx.Done():
					case <-held:
					}
					return nil
				}
				a := b.start("a", w, cfg)
				called := func() int { return len(of[event.ItemCalled](a)) }
				b.until("two run, the others wait", func() bool { return called() == 2 && len(a.job().Queued) == 4 })
				first := w.first()
				d := b.start("d", w, cfg)
				ctx, cancel := context.WithTimeout(b.Context(), patience)
				defer cancel()
				stopped := make(chan error, 1)
				go func() { stopped <- a.Stop(ctx) }()
				b.until("nothing waits for a place", func() bool { return a.State().Stopping && len(a.job().Queued) == 0 })
				if patience > time.Second {
					release()
				}
				require.NoError(b, <-stopped)
				for _, e := range of[event.ItemEnded](a) {
					require.NoError(b, e.Err)
				}
				require.Equal(b, 2, called(), "what waited for a place is not called")
				require.Len(b, of[event.ItemEnded](a), 2, "what was not called has not ended")
				w.holds(nil)
				release()
				ran := w.count()
				b.until("the next owner fires", func() bool { return allOwned(6, d) && w.count() >= ran+18 })
				end := w.last().Add(-2 * time.Second)
				d.stop(b)
				h := b.history(w, a, d)
				for n := range 6 {
					ran := w.times(func(s core.Shard) bool { return s.Item == n })
					require.True(b, ran[0].Equal(first), "item %d: the fire that was given back ran %v", n, ran[0])
				}
				require.Empty(b, h.open(1, 6, first, end))
				require.Empty(b, h.wrong())
				require.Empty(b, w.doubled())
			})
		})
	}
}

// Finding C 17: Run waited for ten seconds and did not say for what.
func TestFindingC17RunSaysWhatItWaitsFor(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		var told []string
		work := core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			cancel()
			pause(2 * time.Second)
			return context.Cause(ctx)
		})
		cfg := everySecond
		cfg.Shards = 1
		err := core.Run(ctx, b.registry(), work, cfg, core.WithIP("127.0.0.1"), core.WithRunPatience(5*time.Second),
			core.WithListener(func(e event.Event) {
				if e, ok := e.(event.Waiting); ok && e.Job == "" {
					told = append(told, e.For)
				}
			}))
		require.NoError(b, err)
		require.Equal(b, []string{"hello/0 to end, for at most 5s; a second interrupt ends them at once"}, told)
	})
}

// A schedule that changes while the scheduler waits for what runs was said never to fire again.
func TestAScheduleThatChangesDuringStopFiresAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, release := newWitness(), make(chan struct{})
		w.hold = func(context.Context, core.Shard) error { <-release; return nil }
		cfg := core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 2}
		a, c := b.start("a", w, cfg), b.start("c", newWitness(), cfg)
		b.until("it runs", func() bool { return allOwned(2, a, c) && len(a.job().Running) == 1 })
		stopped := make(chan error, 1)
		go func() { stopped <- a.Stop(b.Context()) }()
		b.until("another one leads", func() bool { return a.State().Stopping && a.job().Leader == c.job().Instance })
		b.setConfig(a, "cron: 0/5 * * * * ?", "cron: 0 0 0 * * ?")
		b.until("the schedule is in force", func() bool { return c.job().Next.Hour() == 0 && c.job().Next.Day() == 2 })
		b.rested(a)
		st, warned := a.job(), of[event.Warning](a)
		close(release)
		require.NoError(b, <-stopped)
		c.stop(b)
		require.False(b, st.Never)
		require.Empty(b, warned)
	})
}

// While all items of a job with a fixed delay run it is not known when it fires next, which is not never.
func TestAFixedDelayIsNeverOverWhileAllItemsRun(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, release := newWitness(), make(chan struct{})
		w.hold = func(context.Context, core.Shard) error { <-release; return nil }
		a := b.start("a", w, core.JobConfig{Name: "hello", Cron: "@delay 5s", Shards: 1})
		b.until("it runs", func() bool { return len(a.job().Running) == 1 })
		b.rested(a)
		st := a.job()
		close(release)
		a.stop(b)
		require.True(b, st.Next.IsZero())
		require.False(b, st.Never)
	})
}
