package core_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// Finding C 3: runtime.Goexit, as a failed require calls it, blocked the item for ever and
// kept its place.
func TestFindingC3GoexitEndsTheItem(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.Concurrency = 1
		w := newWitness()
		w.hold = func(_ context.Context, s core.Shard) error {
			if s.Item < 2 {
				runtime.Goexit()
			}
			return nil
		}
		a := b.start("a", w, cfg)
		b.until("three fires", func() bool { return w.count() >= 12 })
		a.stop(b)
		gone := 0
		for _, e := range of[event.ItemEnded](a) {
			if e.Item < 2 {
				require.ErrorIs(b, e.Err, core.ErrGoexit)
				gone++
			} else {
				require.NoError(b, e.Err)
			}
		}
		require.GreaterOrEqual(b, gone, 4)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// Finding C 8: disabled: true in the configuration paused nothing, and was told as in force.
func TestFindingC8DisabledInTheConfigurationPausesAllMembers(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both fire", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && w.count() >= 8 })
		b.setConfig(a, "disabled: false", "disabled: true")
		b.until("both say so", func() bool {
			return strings.Contains(a.job().Disabled, "configuration") && strings.Contains(c.job().Disabled, "configuration")
		})
		b.until("it is told", func() bool { return strings.Contains(strings.Join(problems(a), "\n"), "disabled in its configuration") })
		pause(1200 * time.Millisecond)
		ran := w.count()
		pause(3 * time.Second)
		require.Equal(b, ran, w.count())
		d := b.start("d", w, everySecond, core.WithIP("127.0.0.3")) // who joins now is paused, too
		b.until("it says so", func() bool {
			return d.job().Phase == core.PhaseRunning && strings.Contains(d.job().Disabled, "configuration")
		})
		b.until("it is told", func() bool { return strings.Contains(strings.Join(problems(d), "\n"), "disabled in its configuration") })
		pause(1200 * time.Millisecond)
		require.Equal(b, ran, w.count())
		b.setConfig(a, "disabled: true", "disabled: false")
		b.until("all fire", func() bool { return w.count() >= ran+12 && a.job().Disabled+c.job().Disabled == "" })
		for _, in := range []*instance{a, c} {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
	})
}

// Finding C 15: State counted those that wait for a place among those that run.
func TestFindingC15StateTellsRunningFromQueued(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Concurrency = 1
		w := newWitness()
		w.hold = func(context.Context, core.Shard) error { pause(400 * time.Millisecond); return nil }
		a := b.start("a", w, cfg)
		b.until("one runs", func() bool { return len(a.job().Running) == 1 })
		require.Len(b, a.job().Queued, 3)
		require.NotContains(b, a.job().Queued, a.job().Running[0])
		pause(500 * time.Millisecond)
		require.Len(b, a.job().Running, 1)
		require.Len(b, a.job().Queued, 2)
	})
}

// Finding C 11: with a fixed delay every FireBegun said MadeUp, on a clock that has not
// stopped meanwhile, and Due carried a monotonic reading.
func TestFindingC11AFixedDelayMakesNothingUp(t *testing.T) {
	b := &bed{T: t, ns: freshNamespace(), client: onMemoryInRealTime()} // a bubble's clock hides it
	w := newWitness()
	a := b.start("a", w, core.JobConfig{Name: "delayed", Cron: "@delay 50ms", Shards: 2})
	b.until("six runs", func() bool { return w.count() >= 6 })
	a.stop(b)
	for _, e := range of[event.FireBegun](a) {
		require.False(t, e.MadeUp)
		require.Equal(t, e.Due.Round(0), e.Due, "Due has a monotonic reading")
	}
	for _, due := range w.times(nil) {
		require.Equal(t, due.Round(0), due, "Due has a monotonic reading")
	}
	for _, e := range of[event.ItemEnded](a) {
		require.Equal(t, e.Due.Round(0), e.Due, "Due has a monotonic reading")
	}
}

// Finding C 14: what was skipped was told an item at a time.
func TestFindingC14SkipsAreToldForAllItemsTogether(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 30, Concurrency: 100, Misfire: core.MisfireSkip}
		w := newWitness()
		w.hold = func(context.Context, core.Shard) error { pause(2500 * time.Millisecond); return nil }
		a := b.start("a", w, cfg)
		b.until("one run of each", func() bool { return w.count() >= 60 })
		a.stop(b)
		told := skips(a, event.SkipRunning)
		require.NotEmpty(b, told)
		require.Len(b, told[0].Items, 30)
		require.Equal(b, 2, told[0].Count)
		require.Equal(b, time.Second, told[0].Due.Sub(told[0].First))
		require.LessOrEqual(b, len(told), 2)
	})
}

var errBoom = errors.New("boom")

// Finding C 20: a listener's panic ended the process, and so did one that ends its goroutine.
func TestFindingC20AListenerThatFailsIsAskedAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		log, w := &page{}, newWitness()
		calls := 0
		a := b.start("a", w, everySecond, core.WithLogger(log.logger()), core.WithListener(func(event.Event) {
			if calls++; calls%2 == 0 {
				panic(errBoom)
			}
			runtime.Goexit()
		}))
		b.until("two fires", func() bool { return w.count() >= 8 })
		a.stop(b)
		require.Greater(b, calls, 8)
		require.Contains(b, log.String(), "a listener panicked: boom")
		require.Contains(b, log.String(), "a listener ended its goroutine")
		require.Len(b, of[event.ItemEnded](a), w.count())
	})
}
