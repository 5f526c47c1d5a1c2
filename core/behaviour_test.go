package core_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestAFireDueWhileTheItemRunsIsSkippedWithAnEvent(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		w.hold = func(ctx context.Context, s core.Shard) error {
			if s.Item == 0 {
				pause(2500 * time.Millisecond)
			}
			return nil
		}
		cfg := everySecond
		cfg.Misfire = core.MisfireSkip
		a := b.start("a", w, cfg)
		b.until("item 1 goes on while item 0 is slow", func() bool {
			return len(skips(a, event.SkipRunning)) >= 4 && w.count() >= 16
		})
		a.stop(b)
		require.Empty(b, w.doubled())
		for _, e := range skips(a, event.SkipRunning) {
			require.Equal(b, []int{0}, e.Items)
		}
	})
}

// By default one run right after stands for what came due meanwhile.
func TestAnOverrunIsMadeUpByOneRun(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		var missed sync.Map // by due, of item 0
		w.hold = func(_ context.Context, s core.Shard) error {
			if s.Item == 0 {
				missed.Store(s.Due.UTC(), s.Missed)
				pause(3500 * time.Millisecond)
			}
			return nil
		}
		stalled := func() time.Duration { return 0 }
		if !b.fake {
			stalled = harness.Stalls(b)
		}
		a := b.start("a", w, madeUpOnce)
		folds := func() (all []event.ItemsFolded) { return of[event.ItemsFolded](a) }
		b.until("item 0 is slow, and the others go on", func() bool { return len(folds()) >= 3 && w.count() >= 24 })
		a.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, b.history(w, a).wrong())
		told := map[time.Time]int{}
		for _, e := range folds() {
			if stalled() < 500*time.Millisecond { // else the machine has overslept fires of all
				require.Equal(b, []int{0}, e.Items)
			}
			require.True(b, e.Last.Before(e.Into))
			if slices.Contains(e.Items, 0) {
				told[e.Into.UTC()] += e.Count
			}
		}
		missed.Range(func(due, n any) bool { // a begin that Stop gave back is not among them
			require.Equal(b, told[due.(time.Time)], n, "each run knows what it stands for")
			return true
		})
		require.Empty(b, of[event.ItemsSkipped](a))
	})
}

// A run that ends at the very instant at which the others come due does not put them off.
func TestARunThatEndsAsOthersComeDue(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		w.hold = func(_ context.Context, s core.Shard) error {
			if s.Item == 0 {
				pause(time.Second)
			}
			return nil
		}
		a := b.start("a", w, madeUpOnce)
		b.until("many fires", func() bool { return w.count() >= 100 })
		a.stop(b)
		for _, e := range of[event.FireBegun](a) {
			require.Zero(b, e.Late, "%v", e)
		}
		for _, e := range of[event.ItemsFolded](a) {
			require.Equal(b, []int{0}, e.Items)
		}
	})
}

func TestAPanicIsTheItemsError(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		boom := errors.New("boom")
		w.hold = func(_ context.Context, s core.Shard) error {
			switch s.Item {
			case 1:
				panic("oh no")
			case 2:
				return boom
			}
			return nil
		}
		a := b.start("a", w, everySecond)
		b.until("three fires", func() bool { return w.count() >= 12 })
		a.stop(b)
		var panicked, failed bool
		for _, e := range of[event.ItemEnded](a) {
			if p, ok := errors.AsType[*core.PanicError](e.Err); ok {
				panicked = true
				require.Equal(b, 1, e.Item)
				require.Equal(b, "oh no", p.Value)
				require.Contains(b, string(p.Stack), "behaviour_test.go")
			}
			failed = failed || (e.Item == 2 && errors.Is(e.Err, boom))
		}
		require.True(b, panicked)
		require.True(b, failed)
		require.Empty(b, w.missing(4, time.Second))
		require.Equal(b, 2, of[event.FireEnded](a)[0].Failed)
	})
}

func TestDisabledItemsAndServers(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		c := b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("shared", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 })
		b.set(a, b.path(a, "sharding/0/disabled"), "")
		b.until("item 0 is skipped", func() bool { return len(skips(a, event.SkipDisabled))+len(skips(c, event.SkipDisabled)) > 2 })
		b.remove(a, b.path(a, "sharding/0/disabled"))

		b.set(a, b.path(a, "servers/127.0.0.1"), "DISABLED")
		b.until("c owns and leads all", func() bool { return allOwned(4, c) && c.job().Leader == c.job().Instance })
		before := w.count()
		b.until("c runs all", func() bool { return w.count() >= before+8 })
		b.set(a, b.path(a, "servers/127.0.0.1"), "ENABLED")
		b.until("shared again", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 })

		b.set(a, b.path(a, "servers/127.0.0.1"), "DISABLED")
		b.set(a, b.path(a, "servers/127.0.0.2"), "DISABLED")
		b.until("nobody leads", func() bool { return c.job().Leader == "" && strings.Contains(c.job().Disabled, "server") })
		calls := b.rested(a, c)
		ran, told := w.count(), len(skips(c, event.SkipDisabled))
		pause(3 * time.Second)
		// Finding 25: what is wholly disabled costs nothing; it is told in bulk when it is over.
		require.Equal(b, calls, requests(a, c))
		require.Equal(b, ran, w.count())
		b.set(a, b.path(a, "servers/127.0.0.2"), "ENABLED")
		b.until("what was due is told", func() bool { return len(skips(c, event.SkipDisabled)) > told })
		require.GreaterOrEqual(b, skips(c, event.SkipDisabled)[told].Count, 3)
		b.set(a, b.path(a, "servers/127.0.0.2"), "DISABLED")
		b.set(a, b.path(a, "servers/127.0.0.1"), "ENABLED")
		b.until("a runs all", func() bool { return allOwned(4, a) && a.job().Leader == a.job().Instance })
		before = w.count()
		b.until("it does", func() bool { return w.count() >= before+8 })
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
	})
}

func TestAChangedCronAndParameterTakeEffect(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Cron, cfg.JobParam = "0 0 0 1 1 ? 2099", "before"
		a := b.start("a", w, cfg)
		b.until("it has its items", func() bool { return allOwned(4, a) })
		b.setConfig(a, "jobParameter: before", "jobParameter: after")
		b.setConfig(a, "cron: 0 0 0 1 1 ? 2099", "cron: '* * * * * ?'")
		b.until("it runs", func() bool { return w.count() >= 4 })
		w.mu.Lock()
		for _, r := range w.runs {
			require.Equal(b, "after", r[0].JobParam)
		}
		w.mu.Unlock()
		b.setConfig(a, "cron: '* * * * * ?'", "cron: 'nonsense'")
		b.until("the refusal is told", func() bool {
			for _, e := range of[event.Warning](a) {
				if e.Err != nil && strings.Contains(e.Problem, "refused") && strings.Contains(e.Err.Error(), "Cron") {
					return true
				}
			}
			return false
		})
		before := w.count()
		b.until("the last good one stays in force", func() bool { return w.count() >= before+8 })
	})
}

func TestAnInstanceRemovedFromOutsideLeavesForGood(t *testing.T) {
	onEach(t, func(b *bed) {
		release := make(chan struct{})
		w := newWitness()
		var held atomic.Bool
		w.hold = func(ctx context.Context, s core.Shard) error {
			if strings.Contains(s.Instance, "@a-") && held.CompareAndSwap(false, true) {
				<-release
				return ctx.Err()
			}
			return nil
		}
		a := b.start("a", w, everySecond)
		c := b.start("c", w, everySecond)
		b.until("shared and held", func() bool { return allOwned(4, a, c) && held.Load() })
		gone := a.job().Instance
		b.remove(a, b.path(a, "instances/"+gone))
		b.until("c has what does not run", func() bool { return len(c.job().Items) == 3 })
		close(release)
		b.until("a has left, c has all", func() bool {
			return a.job().Phase == core.PhaseStopped && allOwned(4, c)
		})
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
		for _, e := range of[event.ItemEnded](a) {
			require.NoError(b, e.Err, "what ran was cancelled")
		}
	})
}

func TestStopWaitsThenCancelsThenNames(t *testing.T) {
	onEach(t, func(b *bed) {
		release := make(chan struct{})
		first := make(chan int, 1) // the item that does not end: what is owned need not run, where it is about to be moved
		causes := make(chan error, 8)
		w := newWitness()
		w.hold = func(ctx context.Context, s core.Shard) error {
			deaf := false
			select {
			case first <- s.Item:
				deaf = true
			default:
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			if deaf {
				<-release
			}
			return nil
		}
		a := b.start("a", w, everySecond)
		c := b.start("c", newWitness(), everySecond)
		b.until("all run", func() bool { return allOwned(4, a, c) && w.count() >= 2 })
		ctx, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- a.Stop(ctx) }()
		err := <-stopped
		require.ErrorIs(b, <-causes, core.ErrStopped)
		var running *core.RunningError
		item := <-first
		require.ErrorAs(b, err, &running)
		require.Equal(b, []string{"hello/" + strconv.Itoa(item)}, running.Items)
		require.NotContains(b, c.job().Items, item, "handed over while its function runs")
		close(release)
		a.stop(b)
		b.until("c has all", func() bool { return allOwned(4, c) })
	})
}

func TestARegistryOutageLosesNoJob(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, madeUpOnce)
		b.until("it runs", func() bool { return w.count() >= 8 })
		a.gate.cut.Store(true)
		b.expire(a.State().Session)
		b.until("the loss is told", func() bool { return len(of[event.SessionLost](a)) == 1 })
		b.until("it waits, and says so", func() bool { return a.job().WaitingFor == "a session with the registry" })
		pause(5 * time.Second)
		a.gate.cut.Store(false)
		b.until("it runs again", func() bool { return allOwned(4, a) && len(of[event.SessionRegained](a)) == 1 })
		before := w.count()
		b.until("three fires", func() bool { return w.count() >= before+12 })
		a.stop(b)
		require.Empty(b, w.doubled())
		require.NotEmpty(b, of[event.ItemsFolded](a), "fires of the outage are not accounted for")
	})
}

func TestOneBadJobStopsNoOther(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		seed := b.start("seed", newWitness(), core.JobConfig{Name: "bad", Cron: "0 0 0 1 1 ? 2099", Shards: 1})
		b.set(seed, b.path(seed, "config"), "not: [a, configuration")
		seed.stop(b)

		reg := b.registry()
		s := core.New(reg, core.WithIP("127.0.0.1"))
		defer func() { require.NoError(b, s.Stop(context.WithoutCancel(b.Context()))) }()
		require.NoError(b, s.Add(w, everySecond))
		require.NoError(b, s.Add(w, core.JobConfig{Name: "bad", Cron: "* * * * * ?", Shards: 1}))
		err := s.Start(b.Context())
		require.ErrorIs(b, err, core.ErrConfig)
		require.Contains(b, err.Error(), "/bad/config")
		require.NotContains(b, err.Error(), "\n")
		b.until("the good one runs", func() bool { return w.count() >= 8 })
		st := s.State()
		require.Equal(b, core.PhaseRunning, st.Jobs[0].Phase)
		require.Equal(b, core.PhaseFailed, st.Jobs[1].Phase)
	})
}

func TestTwoConfigurationsOfOneName(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		other := everySecond
		other.Shards, other.JobParam = 9, "other"
		c := b.start("c", w, other)
		b.until("the registry's won", func() bool { return allOwned(4, a, c) })
		adopted := of[event.ConfigChanged](c)
		require.Len(b, adopted, 1)
		// Finding C 1: by the names of JobConfig, with both values.
		require.Equal(b, []event.Change{{Field: "Shards", Old: "9", New: "4"}, {Field: "JobParam", Old: "other", New: ""}}, adopted[0].Changes)
		require.True(b, adopted[0].Adopted)
		other.Overwrite = true
		d := b.start("d", w, other)
		b.until("unless it overwrites", func() bool { return allOwned(9, a, c, d) })
	})
}

// A running node is no lock among Go members, whoever has made it. Beside an instance of
// ElasticJob it is: that has no other.
func TestAnItemThatRunsInElasticJobIsSkipped(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it runs", func() bool { return w.count() >= 4 })
		java := "127.0.0.9@-@4711"
		b.create(a, b.path(a, "sharding/3/running"), java)
		before := w.count()
		b.until("it runs all the same", func() bool { return w.count() >= before+12 })
		require.Empty(b, skips(a, event.SkipRunningElsewhere))
		b.create(a, b.path(a, "instances/"+java), "")
		b.until("item 3 is skipped", func() bool { return len(skips(a, event.SkipRunningElsewhere)) >= 2 })
		b.remove(a, b.path(a, "sharding/3/running"))
		n := len(skips(a, event.SkipRunningElsewhere))
		before = w.count()
		b.until("it runs again", func() bool { return w.count() >= before+12 })
		require.LessOrEqual(b, len(skips(a, event.SkipRunningElsewhere)), n+1)
		a.stop(b)
		require.Empty(b, w.doubled())
	})
}

func TestFixedDelayCountsFromTheEnd(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		w.hold = func(context.Context, core.Shard) error { pause(700 * time.Millisecond); return nil }
		a := b.start("a", w, core.JobConfig{Name: "delayed", Cron: "@delay 1s", Shards: 2})
		b.until("six runs", func() bool { return w.count() >= 6 })
		a.stop(b)
		require.Empty(b, w.overlap)
		var last [2]time.Time
		for _, e := range of[event.FireBegun](a) {
			for _, n := range e.Items {
				if !last[n].IsZero() {
					require.GreaterOrEqual(b, e.Due.Sub(last[n]), 1690*time.Millisecond)
				}
				last[n] = e.Due
			}
		}
	})
}

func TestMonitoringOffRunsWithoutARecord(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.Monitor = core.MonitorOff
		w := newWitness()
		a := b.start("a", w, cfg)
		b.until("settled", func() bool { return allOwned(4, a) && w.count() >= 4 })
		calls := b.rested(a)
		before := w.count()
		b.until("five fires", func() bool { return w.count() >= before+20 })
		require.Equal(b, calls, a.gate.calls.Load(), "a fire with monitoring off made a request")
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, r := range w.runs {
			require.Zero(b, r[0].Fence)
		}
	})
}

func TestForeignNodesAreReportedAndHarmless(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it runs", func() bool { return w.count() >= 4 })
		own := "/elasticron/" + b.ns + "/hello/"
		b.set(a, own+"ledgers/stranger", "hello")
		b.set(a, own+"lives/stranger", "hello")
		b.set(a, b.path(a, "stranger"), "hello")
		b.set(a, b.path(a, "instances/stranger"), "hello")
		b.set(a, b.path(a, "servers/10.9.9.9"), "PERHAPS")
		b.set(a, b.path(a, "sharding/stranger"), "hello")
		c := b.start("c", w, everySecond)
		b.until("shared all the same", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		before := w.count()
		b.until("both run", func() bool { return w.count() >= before+12 })
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
		told := a.told(math.MaxInt) + c.told(math.MaxInt)
		require.Contains(b, told, "foreign node")
	})
}

func TestALeaderWhoseTermIsDeletedIsFollowedByAnother(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it leads", func() bool { return allOwned(4, a) })
		b.remove(a, "/elasticron/"+b.ns+"/hello/term")
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
		b.until("the new total is assigned all the same", func() bool { return allOwned(6, a) })
		b.until("a term stands again", func() bool {
			n, err := b.store(a).Get(b.Context(), "/elasticron/"+b.ns+"/hello/term")
			return err == nil && n[0].Exists()
		})
	})
}

func TestItemsAboveTheTotalVanish(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("settled", func() bool { return allOwned(4, a) && w.count() >= 4 })
		b.set(a, b.path(a, "sharding/3/disabled"), "")
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 2")
		ses := b.open(a)
		b.until("two are left", func() bool {
			names, err := ses.Children(b.Context(), b.path(a, "sharding"))
			return err == nil && len(names) == 2
		})
		before := w.count()
		b.until("they run", func() bool { return allOwned(2, a) && w.count() >= before+4 })
	})
}

func TestAClockThatJumpsAnHourForwardAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		b := &bed{T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
		var offset atomic.Int64
		w := newWitness()
		a := b.start("a", w, madeUpOnce, core.WithClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }))
		b.until("it runs", func() bool { return w.count() >= 8 })
		before := w.count()
		offset.Store(int64(time.Hour))
		pause(20 * time.Second)
		forward := w.count() - before
		require.GreaterOrEqual(t, forward, 4*(20-5))
		require.LessOrEqual(t, forward, 4*(20+1), "an hour of fires was made up")
		require.GreaterOrEqual(t, of[event.ItemsFolded](a)[0].Count, 3500)
		before = w.count()
		offset.Store(0)
		pause(20 * time.Second)
		require.LessOrEqual(t, w.count()-before, 4*6, "fires before the recorded one ran")
		require.Contains(t, a.told(math.MaxInt), "the clock was set by -1h")
		pause(time.Hour)
		require.Greater(t, w.count()-before, 4*10, "it never ran again")
		a.stop(b)
		require.Empty(t, w.doubled())
	})
}

func TestStateAnswersWithoutARequest(t *testing.T) {
	onEach(t, func(b *bed) {
		a := b.start("a", newWitness(), core.JobConfig{Name: "rare", Cron: "0 0 0 1 1 ? 2099", Shards: 2})
		b.set(a, b.path(a, "config"), "jobName: rare\ncron: 0 0 0 30 2 ?\nshardingTotalCount: 2\nmonitorExecution: true\nmisfire: true\n")
		b.until("settled", func() bool { return allOwned(2, a) && a.job().Never })
		calls := b.rested(a)
		st := a.job()
		require.True(b, st.Never)
		require.Equal(b, core.PhaseRunning, st.Phase)
		require.Equal(b, []string{st.Instance}, st.Instances)
		require.Equal(b, calls, a.gate.calls.Load())
		require.True(b, time.Now().Before(a.State().Deadline))
	})
}

func TestStopIsIdempotentAndLegalBeforeStart(t *testing.T) {
	onEach(t, func(b *bed) {
		s := core.New(b.registry())
		require.NoError(b, s.Stop(b.Context()))
		require.NoError(b, s.Stop(b.Context()))
		require.ErrorIs(b, s.Start(b.Context()), core.ErrStopped)
		require.ErrorIs(b, s.Add(newWitness(), everySecond), core.ErrStopped)
		a := b.start("a", newWitness(), everySecond)
		a.stop(b)
		a.stop(b)
		require.Equal(b, core.PhaseStopped, a.job().Phase)
	})
}
