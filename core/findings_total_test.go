package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// slowly makes each commit of an instance take 2 to 60 ms.
func slowly(in *instance, seed uint64) {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 2))
	in.gate.hold(func([]registry.Op) {
		mu.Lock()
		d := time.Duration(2+rnd.IntN(59)) * time.Millisecond
		mu.Unlock()
		pause(d)
	})
}

// atSecond waits until the next whole second and somewhat longer, or less.
func atSecond(offset time.Duration) {
	pause(time.Until(time.Now().Truncate(time.Second).Add(time.Second + offset)))
}

// Finding 2: a changed total lost fires of some items silently, when one instance had begun
// a fire that another, held already, had not.
func TestFinding2AChangedTotalLosesNoFire(t *testing.T) {
	for _, totals := range [][]int{{200, 300}, {8, 4, 8}} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%v seed %d", totals, seed), func(t *testing.T) {
				inBubble(t, func(b *bed) {
					cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: totals[0], Concurrency: 1000}
					w := newWitness()
					a := b.start("a", w, cfg)
					epochs := b.epochs(a)
					c := b.start("c", w, cfg)
					slowly(a, seed)
					slowly(c, seed+100)
					b.until("shared", func() bool { return allOwned(totals[0], a, c) && len(c.job().Items) > 0 })
					from := time.Now()
					for i, total := range totals[1:] {
						pause(2 * time.Second)
						atSecond(time.Duration(seed)*40*time.Millisecond - 80*time.Millisecond)
						b.setConfig(a, fmt.Sprintf("shardingTotalCount: %d", totals[i]), fmt.Sprintf("shardingTotalCount: %d", total))
						b.until("the new total is shared", func() bool { return allOwned(total, a, c) })
					}
					pause(4 * time.Second)
					end := time.Now().Add(-2 * time.Second)
					a.stop(b)
					c.stop(b)
					h, bases := b.history(w, a, c), epochs()
					require.Len(b, bases, len(totals))
					require.Empty(b, h.lost(bases, from, end))
					require.Empty(b, h.wrong())
					require.Empty(b, w.doubled())
				})
			})
		}
	}
}

// Finding 23: a total that is changed and changed back while the owners are held lost the
// fire that was refused meanwhile.
func TestFinding23ATotalChangedBackDuringAHoldLosesNoFire(t *testing.T) {
	for seed := range 6 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				var hold atomic.Bool
				w.hold = func(_ context.Context, s core.Shard) error {
					if s.Item == 1 && hold.CompareAndSwap(true, false) {
						pause(4300 * time.Millisecond)
					}
					return nil
				}
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 8, Concurrency: 100}
				a := b.start("a", w, cfg)
				epochs := b.epochs(a)
				c := b.start("c", w, cfg)
				slowly(a, uint64(seed))
				slowly(c, uint64(seed)+100)
				b.until("shared", func() bool { return allOwned(8, a, c) && len(c.job().Items) > 0 })
				from := time.Now()
				pause(2 * time.Second)
				hold.Store(true)
				b.until("item 1 runs", func() bool { return !hold.Load() })
				// The begins of a fire are on their way when the hold comes.
				atSecond(time.Duration(15*seed-40) * time.Millisecond)
				b.setConfig(a, "shardingTotalCount: 8", "shardingTotalCount: 4")
				pause(time.Duration(300*seed+20) * time.Millisecond)
				b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 8")
				pause(8 * time.Second)
				b.until("shared again", func() bool { return allOwned(8, a, c) })
				pause(3 * time.Second)
				end := time.Now().Add(-2 * time.Second)
				a.stop(b)
				c.stop(b)
				h := b.history(w, a, c)
				require.Empty(b, h.lost(epochs(), from, end))
				require.Empty(b, h.wrong())
			})
		})
	}
}

// Finding 13: a configuration that was written while a member prepared was lost on it, and as
// the leader it forced the old total on everybody.
func TestFinding13AConfigurationWrittenWhileAMemberPreparesIsInForce(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.prepare("a", w, everySecond)
		seed := b.prepare("seed", newWitness(), core.JobConfig{Name: "other", Cron: "@daily", Shards: 1})
		// What it read is old when it goes on: at each of its commits until it has registered.
		var written atomic.Int32
		a.gate.hold(func(ops []registry.Op) {
			if last := ops[len(ops)-1]; last.Kind == registry.OpCreate && strings.Contains(last.Path, "/ledgers/") { // it registers
				if written.Add(1) == 1 {
					b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
				}
			}
		})
		require.NoError(b, seed.Start(b.Context()))
		require.NoError(b, a.Start(b.Context()))
		b.until("the new total is in force", func() bool { return allOwned(6, a) })
		require.Positive(b, written.Load())
		before := w.count()
		b.until("it fires", func() bool { return w.count() >= before+12 })
	})
}

// Finding 13, the same with a member that waits before it has seen its configuration at all.
func TestFinding13AConfigurationChangedBetweenReadAndWatch(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("a has all", func() bool { return allOwned(4, a) })
		c := b.prepare("c", w, everySecond)
		c.gate.denyWatch(b.path(a, "config"), true)
		require.NoError(b, c.Start(b.Context()))
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
		c.gate.denyWatch(b.path(a, "config"), false)
		b.until("shared", func() bool { return allOwned(6, a, c) && len(c.job().Items) == 3 })
		a.stop(b)
		b.until("c leads, with the new total", func() bool { return allOwned(6, c) && c.job().Leader == c.job().Instance })
		before := w.count()
		b.until("it fires", func() bool { return w.count() >= before+12 })
		require.True(b, allOwned(6, c))
	})
}

// Finding 13, the same with one that was shown before it was read as it had been. Who went on without it forced the
// old total on all once it led: with static sharding it began what was bound to others.
func TestFinding13AConfigurationShownWhileTheOneBeforeIsPrepared(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.StaticSharding = true
		a, c := b.start("a", w, cfg), b.start("c", w, cfg)
		b.until("a and c fire", func() bool { return w.count() >= 4 })
		d := b.prepare("d", w, cfg)
		var once sync.Once
		d.gate.answered = func(paths []string) {
			if slices.Contains(paths, b.path(a, "config")) {
				once.Do(func() {
					b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
					pause(100 * time.Millisecond) // the watch shows it
				})
			}
		}
		require.NoError(b, d.Start(b.Context()))
		b.until("the new total is in force", func() bool { return allOwned(6, a, c) })
		before := w.count()
		b.until("it fires", func() bool { return w.count() >= before+12 })
		c.stop(b)
		a.stop(b)
		b.until("d leads", func() bool { return d.job().Leader == d.job().Instance })
		pause(5 * time.Second)
		require.Empty(b, w.by(d.job().Instance, []int{0, 1, 2, 3, 4, 5}), "they are bound to a and c")
	})
}

// Finding E 5: a job that is removed and made again with another count accounts for the
// fires between.
func TestFindingE5AJobMadeAgainWithAnotherCountTellsTheGap(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, madeUpOnce)
		epochs := b.epochs(a)
		b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 8 })
		from := time.Now()
		pause(1500 * time.Millisecond)
		a.stop(b)
		pause(20 * time.Second)
		// An operator deletes ElasticJob's side of the job, as its console does.
		require.NoError(b, registry.DeleteTree(b.Context(), b.store(a), "/"+b.ns+"/hello"))
		cfg := madeUpOnce
		cfg.Shards = 6
		c := b.start("c", w, cfg)
		b.until("it fires", func() bool { return allOwned(6, c) && len(c.job().Items) == 6 })
		pause(4 * time.Second)
		end := time.Now().Add(-2 * time.Second)
		c.stop(b)
		h := b.history(w, a, c)
		require.NotEmpty(b, of[event.ItemsFolded](c))
		require.Empty(b, h.lost(epochs(), from, end))
		require.Empty(b, h.wrong())
	})
}

// Finding 13, the same where who comes to lead is shown the configuration late: no epoch ends by the one before.
func TestFinding13WhoLeadsHasNotHeardOfTheConfiguration(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.StaticSharding = true
		a := b.start("a", w, cfg)
		b.until("a leads", func() bool { return a.job().Leader == a.job().Instance && a.job().Leader != "" })
		c, d := b.start("c", w, cfg), b.start("d", w, cfg)
		b.until("it fires", func() bool { return w.count() >= 4 && len(d.job().Instances) == 3 })
		d.gate.lag(b.path(a, "config"))
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6")
		b.until("the new total is in force", func() bool { return allOwned(6, a, c, d) })
		before := w.count()
		b.until("all fire", func() bool { return w.count() >= before+12 })
		own := c.job().Items
		ofFour := w.by(d.job().Instance, own) // it may have had some of the items of the old total
		c.stop(b)
		pause(2500 * time.Millisecond) // fires come due that c owes
		a.stop(b)
		b.until("d leads", func() bool { return d.job().Leader == d.job().Instance })
		pause(5 * time.Second)
		require.Len(b, w.by(d.job().Instance, own), len(ofFour), "they are bound to c")
		require.Equal(b, 6, d.job().Total)
	})
}
