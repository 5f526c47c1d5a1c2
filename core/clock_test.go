package core_test

import (
	"errors"
	"slices"
	"strings"
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

// withinSeconds is a job whose instances' clocks must agree.
func withinSeconds(cfg core.JobConfig, seconds int) core.JobConfig {
	cfg.MaxTimeDiff = time.Duration(seconds) * time.Second
	return cfg
}

// nodes are those of paths that exist.
func (b *bed) nodes(s registry.Store, paths ...string) []registry.Node {
	b.Helper()
	nodes, err := s.Get(b.Context(), paths...)
	require.NoError(b, err)
	return slices.DeleteFunc(nodes, func(n registry.Node) bool { return !n.Exists() })
}

// clocks are the questions that stand, by id.
func (b *bed) clocks(in *instance, s registry.Store) map[string]layout.Clock {
	b.Helper()
	ids, err := s.Children(b.Context(), b.own(in, "clocks"))
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	require.NoError(b, err)
	all := map[string]layout.Clock{}
	for _, id := range ids {
		for _, n := range b.nodes(s, b.own(in, "clocks/"+id)) {
			c, err := layout.UnmarshalClock(n.Value)
			require.NoError(b, err)
			all[id] = c
		}
	}
	return all
}

// leader starts an instance, which leads.
func (b *bed) leader(work core.Job, cfg core.JobConfig, opts ...core.Option) *instance {
	b.Helper()
	a := b.start("a", work, cfg, opts...)
	b.until("it leads", func() bool { return allOwned(cfg.Shards, a) })
	return a
}

// A clock that is off at the start: the job is refused there, with both times and the fix, and
// starts by itself when the clock is right.
func TestAClockThatIsOffAtTheStart(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := withinSeconds(everySecond, 5)
		w, wc := newWitness(), newWitness()
		a := b.start("a", w, cfg)
		b.until("it runs", func() bool { return allOwned(4, a) && w.count() >= 4 })
		var clock wall
		clock.set(10 * time.Minute)
		c := b.prepare("c", wc, cfg, core.WithClock(clock.now))
		err := c.Start(b.Context())
		require.ErrorIs(b, err, core.ErrConfig)
		for _, word := range []string{
			"MaxTimeDiff", "this host's clock says", "that of the leader " + a.job().Instance + " says", "ahead of the leader's, and at most 5s are allowed",
			"set the clocks right (NTP; it is the leader's that counts), or raise MaxTimeDiff",
		} {
			require.ErrorContains(b, err, word)
		}
		require.Equal(b, core.PhaseFailed, c.job().Phase)
		require.Len(b, a.job().Instances, 1, "it is not registered")
		if b.fake {
			pause(time.Minute) // it is compared again and again
			require.Equal(b, core.PhaseFailed, c.job().Phase)
			require.Len(b, of[event.Stopped](c), 1, "it is told once")
		}
		clock.set(0)
		b.until("it starts", func() bool { return c.job().Phase == core.PhaseRunning && allOwned(4, a, c) && wc.count() > 0 })
		require.Empty(b, c.job().Disabled)
		for _, in := range []*instance{c, a} {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
	})
}

// One that goes off later begins nothing, says so, and goes on when it is right again: what came
// due meanwhile is decided as missed.
func TestAClockThatGoesOffAndComesBack(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		w, wc := newWitness(), newWitness()
		var clock wall
		a := b.leader(w, cfg)
		s := b.store(a)
		c := b.start("c", wc, cfg, core.WithClock(clock.now))
		b.until("both run", func() bool { return len(a.job().Items) == 2 && allOwned(4, a, c) && wc.count() >= 4 })
		clock.set(20 * time.Second)
		b.until("it says so", func() bool { return strings.Contains(c.job().Disabled, "ahead of the leader's") })
		b.until("so do the tools", func() bool { return strings.Contains(b.clocks(a, s)[c.job().Instance].Off, "ahead of the leader's") })
		b.until("nothing runs", func() bool { return len(c.job().Running) == 0 })
		ran, other := wc.count(), w.count()
		b.until("the other goes on", func() bool { return w.count() >= other+8 })
		require.Equal(b, ran, wc.count())
		require.Len(b, c.job().Items, 2, "it keeps its items")
		require.True(b, warned(c, "the clock is off: ", a.job().Instance))
		clock.set(0)
		b.until("it goes on", func() bool { return c.job().Disabled == "" && wc.count() >= ran+6 })
		b.until("it is told", func() bool { return warned(c, "agrees with the leader's again") })
		b.until("and to tools", func() bool { return b.clocks(a, s)[c.job().Instance].Off == "" })
		off := slices.DeleteFunc(of[event.Warning](c), func(e event.Warning) bool { return !strings.Contains(e.Problem, "the clock is off") })
		require.Len(b, off, 1, "it is told once")
		require.Empty(b, a.job().Disabled)
		for _, in := range []*instance{c, a} {
			in.stop(b)
		}
		require.NotEmpty(b, of[event.ItemsFolded](c))
		require.Empty(b, w.doubled())
		require.Empty(b, wc.doubled())
	})
}

// It is the leader's clock that counts, right or not; who comes while nobody leads is compared
// with nobody.
func TestTheLeadersClockCounts(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		w, wc := newWitness(), newWitness()
		var clock wall
		clock.set(-10 * time.Minute)
		a := b.start("a", w, cfg, core.WithClock(clock.now))
		b.until("it runs", func() bool { return allOwned(4, a) && w.count() >= 4 })
		c := b.prepare("c", wc, cfg)
		require.ErrorContains(b, c.Start(b.Context()), "ahead of the leader's")
		require.Empty(b, a.job().Disabled)
		a.stop(b)
		b.until("it starts alone", func() bool { return c.job().Phase == core.PhaseRunning && allOwned(4, c) && wc.count() >= 4 })
		require.Empty(b, c.job().Disabled)
		c.stop(b)
	})
}

// The bound is put in force, and taken back, while the job runs.
func TestMaxTimeDiffIsSwitchedOnAndOff(t *testing.T) {
	onEach(t, func(b *bed) {
		w, wc := newWitness(), newWitness()
		var clock wall
		clock.set(-20 * time.Second)
		a := b.leader(w, madeUpOnce)
		s := b.store(a)
		c := b.start("c", wc, madeUpOnce, core.WithClock(clock.now))
		b.until("both run", func() bool { return len(a.job().Items) == 2 && allOwned(4, a, c) && w.count() >= 4 })
		require.Nil(b, b.clocks(a, s), "nothing is written where nothing is compared")
		b.setConfig(a, "maxTimeDiffSeconds: -1", "maxTimeDiffSeconds: 5")
		b.until("it is off", func() bool { return strings.Contains(c.job().Disabled, "behind the leader's, and at most 5s") })
		b.setConfig(a, "maxTimeDiffSeconds: 5", "maxTimeDiffSeconds: 3600")
		b.until("it is not", func() bool { return c.job().Disabled == "" })
		b.setConfig(a, "maxTimeDiffSeconds: 3600", "maxTimeDiffSeconds: 5")
		b.until("it is off again", func() bool { return c.job().Disabled != "" })
		b.setConfig(a, "maxTimeDiffSeconds: 5", "maxTimeDiffSeconds: -1")
		ran := wc.count()
		b.until("it runs, and asks no more", func() bool { return c.job().Disabled == "" && wc.count() > ran && len(b.clocks(a, s)) == 0 })
		for _, in := range []*instance{c, a} {
			in.stop(b)
		}
	})
}

// When the leader's own clock is set, it is the others that are off; they hear of it within a
// minute, and of its being right again.
func TestTheLeadersClockIsSet(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		w, wc := newWitness(), newWitness()
		var clock wall
		a := b.leader(w, cfg, core.WithClock(clock.now))
		c := b.start("c", wc, cfg)
		b.until("both run", func() bool { return len(a.job().Items) == 2 && allOwned(4, a, c) && wc.count() >= 4 })
		clock.set(time.Minute)
		pause(61 * time.Second)
		require.Contains(b, c.job().Disabled, "behind the leader's")
		require.Empty(b, a.job().Disabled)
		ran, led := wc.count(), w.count()
		pause(5 * time.Second)
		require.Equal(b, ran, wc.count())
		require.Greater(b, w.count(), led)
		clock.set(0)
		pause(11 * time.Second)
		require.Empty(b, c.job().Disabled)
		require.Greater(b, wc.count(), ran)
	})
}

// An instance whose clock is off lets others be elected first; left alone it leads, and its
// clock counts.
func TestAClockThatIsOffLeadsLast(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		var clock wall
		a := b.leader(newWitness(), cfg)
		wc := newWitness()
		c := b.start("c", wc, cfg, core.WithClock(clock.now))
		d := b.start("d", newWitness(), cfg)
		b.until("all have items", func() bool { return allOwned(4, a, c, d) && len(c.job().Items) > 0 && len(d.job().Items) > 0 })
		clock.set(time.Minute)
		b.until("it is off", func() bool { return c.job().Disabled != "" })
		a.stop(b)
		b.until("the other leads", func() bool { return d.job().Leader == d.job().Instance && c.job().Leader == d.job().Instance })
		pause(3 * time.Second)
		require.Contains(b, c.job().Disabled, "ahead of the leader's")
		d.stop(b)
		gone := time.Now()
		b.until("it leads", func() bool { return c.job().Leader == c.job().Instance })
		require.GreaterOrEqual(b, time.Since(gone), 2*time.Second)
		ran := wc.count()
		b.until("it runs everything", func() bool { return c.job().Disabled == "" && allOwned(4, c) && wc.count() >= ran+4 })
	})
}

// A leader that gives no answer, as one of a version before does, hinders nobody.
func TestALeaderThatDoesNotSayWhatItsClockSays(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		a := b.leader(newWitness(), cfg)
		a.gate.decide(func(ops []registry.Op) fate {
			if slices.ContainsFunc(ops, func(op registry.Op) bool { return strings.Contains(op.Path, "/clocks/") }) {
				return requestLost
			}
			return deliver
		})
		begun := time.Now()
		c := b.start("c", newWitness(), cfg)
		require.GreaterOrEqual(b, time.Since(begun), 5*time.Second)
		require.Less(b, time.Since(begun), 6*time.Second)
		b.until("it has items", func() bool { return len(c.job().Items) == 2 && c.job().Disabled == "" })
		pause(3 * time.Minute)
		silent := slices.DeleteFunc(of[event.Warning](c), func(e event.Warning) bool {
			return !strings.Contains(e.Problem, "has not said within 5s what its clock says")
		})
		require.Len(b, silent, 1)
		require.Empty(b, c.job().Disabled)
	})
}

// A registration that is made anew asks under its own id, and nothing is left of one that has left.
func TestWhatAsksForTheClockGoesWithItsRegistration(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := withinSeconds(madeUpOnce, 5)
		a := b.leader(newWitness(), cfg)
		s := b.store(a)
		c := b.start("c", newWitness(), cfg)
		b.until("both have items", func() bool { return len(a.job().Items) == 2 && allOwned(4, a, c) })
		id := c.job().Instance
		require.Len(b, b.clocks(a, s), 1)
		require.Contains(b, b.clocks(a, s), id)
		b.remove(a, b.own(a, "lives/"+id))
		b.until("it registers anew", func() bool { return c.job().Instance != id && c.job().Phase == core.PhaseRunning })
		b.until("and asks so", func() bool {
			asks := b.clocks(a, s)
			return len(asks) == 1 && asks[c.job().Instance].Leader == a.job().Instance
		})
		b.remove(a, b.path(a, "instances/"+c.job().Instance))
		b.until("it has left", func() bool { return c.job().Phase == core.PhaseStopped })
		require.Empty(b, b.clocks(a, s))
	})
}

// Two commits a minute and instance, and none where nothing is compared: nobody watches, reads or
// writes a node for it.
func TestWhatComparingClocksCosts(t *testing.T) {
	for _, seconds := range []int{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			srv := memory.NewServer(memory.Config{})
			b := &bed{T: t, ns: "shop", fake: true, client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
			cfg := withinSeconds(core.JobConfig{Name: "idle", Cron: "0 0 0 1 1 ? 2099", Shards: 4, ReconcileInterval: -1}, seconds)
			a, c := b.leader(newWitness(), cfg), b.start("c", newWitness(), cfg)
			s := b.store(a)
			b.until("settled", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
			pause(time.Minute)
			synctest.Wait()
			srv.ResetRequests()
			pause(10 * time.Minute)
			synctest.Wait()
			got := srv.Requests()
			got.Heartbeat = 0
			if seconds == 0 {
				require.Equal(t, memory.Counts{}, got)
				require.Nil(t, b.clocks(a, s))
				return
			}
			require.Equal(t, memory.Counts{Commit: 10 * 2}, got)
			require.Len(t, b.clocks(a, s), 1)
		})
	}
}
