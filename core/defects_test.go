package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// What users of ElasticJob and of others complained of, where no other test holds it
// (docs/defects.md).

// ElasticJob 21: two instances of one address and one name, as two containers have, are two.
func TestInstancesOfOneNameAndAddressAreTwo(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("worker", w, everySecond), b.start("worker", w, everySecond)
		b.until("they share", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 })
		require.NotEqual(b, a.job().Instance, c.job().Instance)
		before := w.count()
		b.until("both run", func() bool { return w.count() >= before+12 })
		a.stop(b)
		b.until("the other goes on", func() bool { return allOwned(4, c) })
		c.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// ElasticJob 22: what an operator has disabled stays so when its process starts again.
func TestADisabledServerStaysSoOverARestart(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		at := b.path(a, "servers/127.0.0.1")
		b.set(a, at, "DISABLED")
		a.stop(b)
		ran := w.count()
		c := b.start("a", w, everySecond)
		b.until("it says so", func() bool { return c.job().Disabled == "the server 127.0.0.1 is disabled" })
		pause(2 * time.Second)
		require.Equal(b, ran, w.count())
		require.Equal(b, "DISABLED", b.value(b.store(c), at))
	})
}

// Nor does a job that is enabled again find servers disabled that no operator has disabled: not by a session that was
// lost meanwhile, and not by a program that was started meanwhile.
func TestADisabledJobLeavesNoServerDisabled(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		known, added := b.path(a, "servers/127.0.0.1"), b.path(a, "servers/127.0.0.2")
		b.setConfig(a, "disabled: false", "disabled: true")
		b.until("it says so", func() bool { return strings.Contains(a.job().Disabled, "configuration") })
		was := a.job().Instance
		b.expire(a.State().Session)
		b.until("it is back", func() bool { return a.job().Phase == core.PhaseRunning && a.job().Instance != was })
		require.Equal(b, "ENABLED", b.value(b.store(a), known))

		c := b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("it says so", func() bool { return strings.Contains(c.job().Disabled, "configuration") })
		require.Equal(b, "DISABLED", b.value(b.store(c), added), "as ElasticJob does it")
		c.stop(b)
		b.setConfig(a, "disabled: true", "disabled: false")
		b.until("it fires again", func() bool { return allOwned(4, a) && a.job().Disabled == "" })
		c = b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both share", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		require.Equal(b, "ENABLED", b.value(b.store(c), added))
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
	})
}

// Nor by one that registers while the job is enabled. Where the configuration is deleted meanwhile, it is made anew.
func TestNoServerIsDisabledByAnOldConfiguration(t *testing.T) {
	onEach(t, func(b *bed) {
		w, off := newWitness(), everySecond
		off.Disabled = true
		a := b.start("a", w, off)
		join := func(ip string, meanwhile func()) string {
			c := b.prepare("c", w, off, core.WithIP(ip))
			server := b.path(a, "servers/"+ip)
			var once sync.Once
			c.gate.hold(func(ops []registry.Op) {
				if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == server }) {
					once.Do(meanwhile)
				}
			})
			require.NoError(b, c.Start(b.Context()))
			b.until("it has joined", func() bool { return c.job().Phase == core.PhaseRunning })
			return b.value(b.store(c), server)
		}
		require.Equal(b, "ENABLED", join("127.0.0.2", func() { b.setConfig(a, "disabled: true", "disabled: false") }))
		b.setConfig(a, "disabled: false", "disabled: true")
		require.Equal(b, "DISABLED", join("127.0.0.3", func() { b.remove(a, b.path(a, "config")) }))
		require.Contains(b, b.value(b.store(a), b.path(a, "config")), "disabled: true")
	})
}

// ElasticJob 26: who joins has its items at once, not when the job fires next.
func TestWhoJoinsHasItsItemsBeforeTheNextFire(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := core.JobConfig{Name: "rare", Cron: "0 0 0 1 1 ? 2099", Shards: 4}
		a := b.start("a", newWitness(), cfg)
		b.until("it owns all", func() bool { return allOwned(4, a) })
		c := b.start("c", newWitness(), cfg)
		joined := time.Now()
		b.until("they share", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		require.Less(b, time.Since(joined), 3*time.Second)
	})
}

// ElasticJob 28: instances that start a new job at the same time, each with its class, agree.
func TestManyFirstStartsAtOnceAgree(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		cfg.Class = "com.acme.Hello"
		w := newWitness()
		var ins []*instance
		for n := range 5 {
			ins = append(ins, b.prepare(fmt.Sprint("w", n), w, cfg))
		}
		errs := make([]error, len(ins))
		var all sync.WaitGroup
		for n, in := range ins {
			all.Go(func() { errs[n] = in.Start(b.Context()) })
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(b, err)
		}
		b.until("they share", func() bool { return allOwned(4, ins...) })
		before := w.count()
		b.until("they run", func() bool { return w.count() >= before+8 })
		for _, in := range ins {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// An instance that comes back under another address gets items again, and its old address
// keeps nobody from anything.
func TestAnInstanceComesBackUnderAnotherAddress(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond, core.WithIP("10.0.0.1")), b.start("c", w, everySecond, core.WithIP("10.0.0.2"))
		b.until("they share", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 })
		a.stop(b)
		a = b.start("a", w, everySecond, core.WithIP("10.0.0.3"))
		b.until("they share again", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 })
		before := w.count()
		b.until("they run", func() bool { return w.count() >= before+8 })
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// One job whose functions never return holds no other up, nor the other items of its own.
func TestAFunctionThatNeverReturnsHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(b *bed) {
		release := make(chan struct{})
		stuck := core.JobFunc(func(_ context.Context, s core.Shard) error {
			if s.Item%2 == 0 { // one on each instance
				<-release
			}
			return nil
		})
		w := newWitness()
		ins := []*instance{b.prepare("a", stuck, everySecond), b.prepare("c", stuck, everySecond)}
		other := everySecond
		other.Name = "other"
		for _, in := range ins {
			require.NoError(b, in.Add(w, other))
			require.NoError(b, in.Start(b.Context()))
		}
		pause(5 * time.Second)
		before := w.count()
		pause(time.Minute)
		require.GreaterOrEqual(b, w.count()-before, 4*59)
		ended := 0
		for _, in := range ins {
			for _, e := range of[event.ItemEnded](in) {
				if e.Job == "hello" {
					ended++
				}
			}
		}
		require.GreaterOrEqual(b, ended, 2*59, "the other items of the job")
		close(release)
		for _, in := range ins {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
	})
}

// What State says comes next is what comes: it is asked of the schedule that fires.
func TestTheNextFireIsTheOneThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on 1 January 2000
		srv := memory.NewServer(memory.Config{SessionTimeout: 12 * time.Hour}) // months without many heartbeats
		b := &bed{T: t, ns: "shop", fake: true, client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
		w := newWitness()
		a := b.start("a", w, core.JobConfig{
			Name: "zoned", Cron: "0 30 2 ? * SUN", TimeZone: "America/New_York", Shards: 2, ReconcileInterval: -1,
		})
		b.until("it owns all", func() bool { return allOwned(2, a) })
		for range 16 { // over a change of the clocks
			next := a.job().Next
			require.True(b, next.After(time.Now()))
			ran := w.count()
			pause(time.Until(next) + time.Second)
			require.Equal(b, ran+2, w.count())
			require.True(b, w.last().Equal(next), "%v came, and not %v", w.last(), next)
		}
	})
}

// However long a job fires, it needs no more memory.
func TestAJobThatFiresForLongNeedsNoMoreMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memory.NewServer(memory.Config{}).Registry("shop")
		s := core.New(reg, core.WithLogger(nil))
		var ran atomic.Int64
		require.NoError(t, s.Add(core.JobFunc(func(context.Context, core.Shard) error {
			ran.Add(1)
			return nil
		}), core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 1}))
		require.NoError(t, s.Start(t.Context()))
		pause(time.Hour)
		before := heap()
		pause(6 * time.Hour)
		require.Less(t, heap()-before, int64(1<<20), "bytes more after six hours")
		require.Greater(t, ran.Load(), int64(7*3600-10))
		require.NoError(t, s.Stop(t.Context()))
		require.NoError(t, reg.Close())
	})
}

// The leader's commit that assigns items fails again and again: that is told, the flags of
// ElasticJob do not stay, and it is done as soon as it can be.
func TestAnAssignmentThatFailsIsTriedUntilItIsDone(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		a.gate.decide(func(ops []registry.Op) fate {
			if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == b.own(a, "term") && op.Kind == registry.OpSet }) {
				return requestLost
			}
			return deliver
		})
		c := b.start("c", w, everySecond)
		pause(10 * time.Second)
		require.True(b, warned(a, "the leader's request failed"))
		require.Empty(b, c.job().Items)
		a.gate.decide(nil)
		b.until("they share", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		names, err := b.store(a).Children(b.Context(), b.path(a, "leader/sharding"))
		require.NoError(b, err)
		require.Empty(b, names)
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}
