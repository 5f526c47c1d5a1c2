package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// everySecond runs every fire, however late: tests count them all.
// What runs at once does not depend on the processors of the machine.
var everySecond = core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4, Concurrency: 4, Misfire: core.MisfireAll}

// madeUpOnce makes up what was missed by one run, as jobs do by default.
var madeUpOnce = core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4}

// isBegin reports whether ops record the begin of items, where all that an instance has
// fire at once.
func isBegin(ops []registry.Op) bool { return running(ops) > 0 }

// isEnd reports whether ops record that nothing runs any more.
func isEnd(ops []registry.Op) bool { return running(ops) == 0 }

// running is how many items run by the ledger that its owner sets with ops, -1 when it
// sets none.
func running(ops []registry.Op) int {
	if len(ops) < 2 || ops[1].Kind != registry.OpSet || !strings.Contains(ops[1].Path, "/ledgers/") {
		return -1
	}
	l, err := ledger.Decode(ops[1].Value)
	if err != nil {
		return -1
	}
	return l.Running()
}

// count returns how many of ops are of a kind and of paths with a suffix.
func count(ops []registry.Op, kind registry.OpKind, suffix string) int {
	n := 0
	for _, op := range ops {
		if op.Kind == kind && strings.HasSuffix(op.Path, suffix) {
			n++
		}
	}
	return n
}

func TestAnUncertainCommitNeitherDoublesNorBlocks(t *testing.T) {
	for name, which := range map[string]func([]registry.Op) bool{"begin": isBegin, "end": isEnd} {
		for how, f := range map[string]fate{"applied": answerLost, "lost": requestLost, "applied late": appliedLate} {
			t.Run(name+" "+how, func(t *testing.T) {
				onEach(t, func(b *bed) {
					w := newWitness()
					in := b.start("a", w, everySecond)
					b.until("items run", func() bool { return w.count() >= 4 })
					var hit atomic.Bool
					in.gate.decide(func(ops []registry.Op) fate {
						if which(ops) && hit.CompareAndSwap(false, true) {
							return f
						}
						return deliver
					})
					before := w.count()
					b.until("six more fires", func() bool { return w.count() >= before+24 })
					require.True(b, hit.Load(), "the fault met no commit")
					in.stop(b)
					require.Empty(b, w.doubled())
					require.Empty(b, w.missing(4, time.Second))
				})
			})
		}
	}
}

// What the leader has moved is told once, also when the answer to its commit is lost,
// and an attempt that may still be applied never is behind its back.
func TestAnUncertainCommitOfTheLeaderIsSettledAndToldOnce(t *testing.T) {
	for how, f := range map[string]fate{"applied": answerLost, "lost": requestLost, "applied late": appliedLate} {
		t.Run(how, func(t *testing.T) {
			onEach(t, func(b *bed) {
				w := newWitness()
				a := b.start("a", w, everySecond)
				b.until("a has all", func() bool { return allOwned(4, a) && w.count() >= 4 })
				told := len(of[event.Resharded](a))
				var hit atomic.Bool
				a.gate.decide(func(ops []registry.Op) fate {
					if len(ops) > 2 && strings.Contains(ops[len(ops)-1].Path, "/sharding/") && strings.HasSuffix(ops[1].Path, "/term") && hit.CompareAndSwap(false, true) {
						return f
					}
					return deliver
				})
				c := b.start("c", w, everySecond)
				b.until("both have some", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
				a.gate.late.Wait()
				before := w.count()
				b.until("three more fires", func() bool { return w.count() >= before+12 })
				require.True(b, hit.Load(), "the fault met no commit")
				moved := map[int]int{}
				for _, e := range of[event.Resharded](a)[told:] {
					for _, mv := range e.Moves {
						moved[mv.Item]++
					}
				}
				want := map[int]int{}
				for _, n := range c.job().Items {
					want[n] = 1
				}
				require.Equal(b, want, moved)
				a.stop(b)
				c.stop(b)
				require.Empty(b, w.doubled())
				require.Empty(b, w.missing(4, time.Second))
			})
		})
	}
}

func TestItemsThatMoveBetweenClocksRunEveryFireOnce(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		ahead := func() time.Time { return time.Now().Add(2 * time.Second) }
		a := b.start("a", w, everySecond, core.WithClock(ahead))
		b.until("a runs", func() bool { return w.count() >= 8 })
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
		before := w.count()
		b.until("both run", func() bool { return w.count() >= before+16 })
		a.stop(b) // its items go to the one whose clock is behind
		b.until("c has all", func() bool { return allOwned(4, c) })
		before = w.count()
		b.until("c runs all", func() bool { return w.count() >= before+12 })
		d := b.start("d", w, everySecond, core.WithClock(ahead))
		b.until("shared again", func() bool { return len(d.job().Items) == 2 && len(c.job().Items) == 2 })
		before = w.count()
		b.until("both run again", func() bool { return w.count() >= before+16 })
		c.stop(b)
		d.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

func TestAStaleMemberRunsNothing(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("a runs", func() bool { return w.count() >= 4 })
		// Its life ends at the service; its own commits still reach it.
		stale := a.job().Instance
		b.expire(a.State().Session)
		other := b.registry()
		ses, err := other.Open(b.Context())
		require.NoError(b, err)
		defer ses.Close(context.WithoutCancel(b.Context()))
		b.until("life is gone", func() bool {
			n, err := ses.Get(b.Context(), "/elasticron/"+b.ns+"/hello/lives/"+stale)
			return err == nil && !n[0].Exists()
		})
		gone := time.Now()
		b.until("a comes back with a new life", func() bool {
			st := a.job()
			return st.Phase == core.PhaseRunning && st.Instance != stale
		})
		b.until("it runs again", func() bool { return allOwned(4, a) && w.count() >= 12 })
		a.stop(b)
		w.mu.Lock()
		defer w.mu.Unlock()
		for key, runs := range w.runs {
			for _, s := range runs {
				require.False(b, s.Instance == stale && s.Due.After(gone), "%s ran under a dead life", key)
			}
		}
		require.NotEmpty(b, of[event.SessionLost](a))
		require.NotEmpty(b, of[event.SessionRegained](a))
	})
}

func TestTheLeaderKilledBetweenTwoChunksOfAReshard(t *testing.T) {
	onEach(t, func(b *bed) {
		const total = 1000
		cfg := core.JobConfig{Name: "big", Cron: "0 0 0 1 1 ? 2099", Shards: total}
		w := newWitness()
		a := b.prepare("a", w, cfg)
		var chunks atomic.Int32
		killed := make(chan struct{})
		a.gate.decide(func(ops []registry.Op) fate {
			if count(ops, registry.OpCreate, "/instance") == 0 {
				return deliver
			}
			if chunks.Add(1) == 3 {
				a.gate.cut.Store(true)
				close(killed)
			}
			return deliver
		})
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		require.NoError(b, a.Start(ctx))
		<-killed
		c := b.start("c", w, cfg)
		b.expire(a.State().Session)
		b.until("the next leader has finished", func() bool { return allOwned(total, c) })
		require.Equal(b, c.job().Instance, c.job().Leader)
		ses, err := c.gate.Registry.Open(b.Context())
		require.NoError(b, err)
		defer ses.Close(context.WithoutCancel(b.Context()))
		b.until("no flag is left", func() bool {
			names, err := ses.Children(b.Context(), "/"+b.ns+"/big/leader/sharding")
			return err == nil && len(names) == 0
		})
		for n := range total {
			nodes, err := ses.Get(b.Context(), fmt.Sprintf("/%s/big/sharding/%d/instance", b.ns, n))
			require.NoError(b, err)
			require.Equal(b, c.job().Instance, string(nodes[0].Value), "item %d", n)
		}
	})
}

func TestACrashedInstancesItemsAreOwnedAgain(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Shards = 6
		a, c, d := b.start("a", w, cfg), b.start("c", w, cfg), b.start("d", w, cfg)
		b.until("shared", func() bool {
			return len(a.job().Items) == 2 && len(c.job().Items) == 2 && len(d.job().Items) == 2
		})
		b.until("all run", func() bool { return w.count() >= 12 })
		b.crashBetweenFires(a)
		gone := time.Now()
		b.until("two own all", func() bool { return allOwned(6, c, d) })
		require.Less(b, time.Since(gone), time.Second)
		before := w.count()
		b.until("they run", func() bool { return w.count() >= before+12 })
		c.stop(b)
		d.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(6, time.Second))
	})
}

func TestTheLeadersDeathLosesNothing(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return len(a.job().Items) == 2 && allOwned(4, a, c) })
		if c.job().Leader == c.job().Instance {
			a, c = c, a
		}
		before := w.count()
		b.until("both run", func() bool { return w.count() >= before+8 })
		b.crashBetweenFires(a)
		b.until("c leads and owns all", func() bool { return allOwned(4, c) && c.job().Leader == c.job().Instance })
		before = w.count()
		b.until("c runs", func() bool { return w.count() >= before+8 })
		c.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

func TestALostSessionCancelsRunningItems(t *testing.T) {
	onEach(t, func(b *bed) {
		cause := make(chan error, 16)
		w := newWitness()
		w.hold = func(ctx context.Context, _ core.Shard) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		}
		cfg := everySecond
		cfg.Shards = 1
		a := b.start("a", w, cfg)
		b.until("it runs", func() bool { return w.count() == 1 })
		deadline := a.State().Deadline
		b.crash(a)
		err := <-cause
		require.ErrorIs(b, err, core.ErrSessionLost)
		require.False(b, time.Now().After(deadline.Add(2*time.Second)), "cancelled %v after the deadline", time.Since(deadline))
		w.mu.Lock()
		w.hold = nil
		w.mu.Unlock()
		a.gate.cut.Store(false)
		b.until("it runs in a new life", func() bool { return w.count() >= 3 })
	})
}

func TestAChangedTotalWaitsForRunningItems(t *testing.T) {
	onEach(t, func(b *bed) {
		release := make(chan struct{})
		var held atomic.Bool
		w := newWitness()
		w.hold = func(ctx context.Context, s core.Shard) error {
			if s.Total == 4 && s.Item == 1 && held.CompareAndSwap(false, true) {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return nil
		}
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond)
		b.until("shared and held", func() bool { return allOwned(4, a, c) && held.Load() })
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 7")
		b.until("said so", func() bool { return strings.Contains(a.job().WaitingFor+c.job().WaitingFor, "items 1 ") })
		w.mu.Lock()
		for _, r := range w.runs {
			require.Equal(b, 4, r[0].Total)
		}
		w.mu.Unlock()
		close(release)
		b.until("the new total is shared", func() bool { return allOwned(7, a, c) && len(a.job().Items) >= 3 })
		b.until("the wait is over", func() bool { return a.job().WaitingFor+c.job().WaitingFor == "" })
		b.until("item 6 runs", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, r := range w.runs {
				if r[0].Item == 6 {
					return true
				}
			}
			return false
		})
		a.stop(b)
		c.stop(b)
		require.Empty(b, w.overlap)
	})
}
