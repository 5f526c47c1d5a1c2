package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

var yearly = core.JobConfig{Name: "hello", Cron: "0 0 0 1 1 ?", TimeZone: "UTC", Shards: 4, ReconcileInterval: time.Minute}

func misfireOf(b *bed, in *instance, n int) string {
	return b.path(in, fmt.Sprintf("sharding/%d/misfire", n))
}

// made are the runs that are made up.
func (w *witness) made() []core.Shard { return w.from(core.SourceMisfire) }

// A misfire node that ElasticJob has left, or that somebody makes, is one run of its item, and is
// removed in the commit that says so.
func TestAMisfireNodeOfElasticJobIsHonouredOnce(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		seed := b.start("seed", w, yearly)
		b.until("assigned", func() bool { return allOwned(4, seed) })
		seed.stop(b)
		for _, n := range []int{1, 3} {
			b.create(seed, misfireOf(b, seed, n), "")
		}
		a := b.start("a", w, yearly)
		b.until("they run", func() bool { return w.count() == 2 })
		for i, s := range w.made() {
			require.Equal(b, []int{1, 3}[i], s.Item)
			require.Positive(b, s.Request)
			require.NotZero(b, s.Fence)
		}
		require.Len(b, w.made(), 2)
		ses := b.open(a)
		for n := range 4 {
			nodes, err := ses.Get(b.Context(), misfireOf(b, a, n))
			require.NoError(b, err)
			require.False(b, nodes[0].Exists())
		}
		a.stop(b)
		a = b.start("a", w, yearly)
		b.until("assigned again", func() bool { return allOwned(4, a) })
		if !b.fake {
			return // a reconciliation is a minute away
		}
		pause(2 * time.Second)
		require.Equal(b, 2, w.count(), "once")
		b.create(a, misfireOf(b, a, 2), "")
		pause(61 * time.Second)
		require.Len(b, w.made(), 3)
		pause(10 * time.Minute)
		require.Equal(b, 3, w.count())
		require.Empty(b, w.doubled())
	})
}

// Where nothing is made up they are removed, and that is told; a disabled item does not run, and
// those of a disabled job stand until it is enabled.
func TestMisfireNodesWhereNothingIsMadeUp(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.JobConfig)
		says   string
	}{
		"skip":        {func(c *core.JobConfig) { c.Misfire = core.MisfireSkip }, "nothing is made up, as Misfire says"},
		"unmonitored": {func(c *core.JobConfig) { c.Monitor = core.MonitorOff }, "since the job is not monitored"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w, cfg := newWitness(), yearly
				c.change(&cfg)
				a := b.start("a", w, cfg)
				b.until("assigned", func() bool { return allOwned(4, a) })
				b.create(a, misfireOf(b, a, 1), "")
				pause(2 * time.Minute)
				require.Empty(b, b.nodes(b.store(a), misfireOf(b, a, 1)))
				require.True(b, warned(a, "ElasticJob left misfire nodes of items 1: they are removed", c.says))
				require.Zero(b, w.count())
			})
		})
	}
	t.Run("disabled", func(t *testing.T) {
		inBubble(t, func(b *bed) {
			w := newWitness()
			a := b.start("a", w, yearly)
			b.until("assigned", func() bool { return allOwned(4, a) })
			b.create(a, b.path(a, "sharding/1/disabled"), "")
			b.setConfig(a, "disabled: false", "disabled: true")
			for n := range 2 {
				b.create(a, misfireOf(b, a, n), "")
			}
			pause(2 * time.Minute)
			require.Len(b, b.nodes(b.store(a), misfireOf(b, a, 0), misfireOf(b, a, 1)), 2)
			b.setConfig(a, "disabled: true", "disabled: false")
			pause(2 * time.Minute)
			require.Empty(b, b.nodes(b.store(a), misfireOf(b, a, 0), misfireOf(b, a, 1)))
			require.Len(b, w.made(), 1)
			require.Zero(b, w.made()[0].Item)
		})
	})
}

// An answer that is lost runs nothing twice: the node is gone, or it is not.
func TestAMisfireNodeIsHonouredOnceWhateverIsLost(t *testing.T) {
	for name, spoilt := range map[string]fate{"the answer": answerLost, "the request": requestLost, "in time": appliedLate} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				a := b.start("a", w, yearly)
				b.until("assigned", func() bool { return allOwned(4, a) })
				lost := 0
				a.gate.decide(func(ops []registry.Op) fate {
					of := slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == misfireOf(b, a, 2) })
					if of && lost == 0 {
						lost++
						return spoilt
					}
					return deliver
				})
				b.create(a, misfireOf(b, a, 2), "")
				pause(5 * time.Minute)
				require.Equal(b, 1, lost)
				require.Len(b, w.made(), 1)
				require.Equal(b, 1, w.count())
				require.Empty(b, b.nodes(b.store(a), misfireOf(b, a, 2)))
			})
		})
	}
}

// What an instance of ElasticJob leaves when it goes is seen to at once.
func TestElasticJobGoesAndLeavesAMisfireNode(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, cfg := newWitness(), yearly
		cfg.ReconcileInterval = -1
		a := b.start("a", w, cfg)
		b.until("assigned", func() bool { return allOwned(4, a) })
		j := b.java(a).joins()
		b.until("it is told", func() bool { return warned(a, java1) })
		j.commit(registry.Create(misfireOf(b, a, 0), nil))
		j.dies()
		b.until("it runs", func() bool { return len(w.made()) == 1 })
	})
}

// Ours is shown where a run lasts more than a second beyond the next fire, goes with its end, and
// is never taken for one of ElasticJob's, though its owner dies.
func TestAFireThatIsOwedIsShownAndNeverHonoured(t *testing.T) {
	onEach(t, func(b *bed) {
		release := make(chan struct{})
		w := newWitness()
		w.holds(func(ctx context.Context, s core.Shard) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		})
		cfg := core.JobConfig{Name: "hello", Cron: "0/2 * * * * ?", Shards: 2, Concurrency: 2}
		a := b.start("a", w, cfg)
		both, s := []string{misfireOf(b, a, 0), misfireOf(b, a, 1)}, b.store(a)
		b.until("they are shown", func() bool { return len(b.nodes(s, both...)) == 2 })
		for _, n := range b.nodes(s, both...) {
			require.True(b, n.Ephemeral)
			require.Equal(b, a.job().Instance, string(n.Value))
		}
		c := b.start("c", w, cfg, core.WithIP("127.0.0.2"))
		b.crash(a)
		b.until("the other runs them", func() bool { return len(c.job().Running) == 2 })
		a.gate.cut.Store(false)
		close(release)
		b.until("nothing is shown", func() bool { return len(b.nodes(s, both...)) == 0 })
		c.stop(b)
		for _, s := range w.made() {
			require.Zero(b, s.Request)
		}
	})
}

// It costs a commit for each run that is late enough, and its end nothing; a run that is over
// within a second of the next fire costs what it did.
func TestWhatShowingAFireThatIsOwedCosts(t *testing.T) {
	for lasts, commits := range map[time.Duration]int{10*time.Second + 500*time.Millisecond: 2, 12 * time.Second: 3} {
		cfg := core.JobConfig{Name: "hello", Cron: "0,10 * * * * ?", Shards: 30, Concurrency: 1000, ShowRunningAfter: time.Hour}
		onMemory(t, cfg, func(b *bed, srv *memory.Server, _ *instance, w *witness) {
			w.holds(func(_ context.Context, s core.Shard) error {
				if s.Due.Second() == 0 {
					pause(lasts)
				}
				return nil
			})
			pause(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - time.Second)))
			srv.ResetRequests()
			pause(time.Minute)
			got := srv.Requests()
			got.Heartbeat = 0
			// And the one that is made up after it, which begins with the end of the one that lasts.
			require.Equal(b, memory.Counts{Commit: commits + 1}, got, "lasts %v", lasts)
		})
	}
}
