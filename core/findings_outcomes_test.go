package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// Finding 14: an instance that joined and left while a long run went on made the fires
// between be lost: what was to leave stayed, and went on behind the gap.
func TestFinding14LeavingThatIsTakenBackLosesNoFire(t *testing.T) {
	inBubble(t, func(b *bed) {
		var long atomic.Bool
		w := newWitness()
		w.hold = func(context.Context, core.Shard) error {
			if long.Load() {
				pause(4200 * time.Millisecond)
			}
			return nil
		}
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 8 })
		from := w.last()
		long.Store(true)
		b.until("all run", func() bool { return len(a.job().Running) == 4 })
		long.Store(false)
		c := b.start("c", w, everySecond)
		pause(1300 * time.Millisecond)
		require.Empty(b, c.job().Items, "nothing moves while it runs")
		c.stop(b)
		pause(8 * time.Second)
		end := w.last().Add(-2 * time.Second)
		a.stop(b)
		h := b.history(w, a, c)
		require.Empty(b, h.open(1, 4, from, end))
		require.Empty(b, h.wrong())
	})
}

// Finding 15: what the leader had to tell of a commit was lost when it died right after it.
func TestFinding15ACutRunIsToldThoughTheLeaderDiesAfterItsCommit(t *testing.T) {
	for name, f := range map[string]fate{"answered": deliver, "answer lost": answerLost} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 6, Concurrency: 6}
				var hang sync.Map // instances whose runs hang
				w := newWitness()
				w.hold = func(ctx context.Context, s core.Shard) error {
					if _, yes := hang.Load(s.Instance); yes {
						<-ctx.Done()
					}
					return nil
				}
				a := b.start("a", w, cfg)
				b.until("a leads", func() bool { return allOwned(6, a) && a.job().Leader == a.job().Instance })
				c := b.start("c", w, cfg)
				d := b.start("d", w, cfg)
				b.until("all share", func() bool { return allOwned(6, a, c, d) && len(d.job().Items) == 2 })
				hang.Store(c.job().Instance, true)
				b.until("c runs", func() bool { return len(c.job().Running) == 2 })
				victims, dead := c.job().Running, c.job().Instance
				due := w.last()
				var died atomic.Bool
				a.gate.decide(func(ops []registry.Op) fate {
					if count(ops, registry.OpSet, "/term") > 0 && count(ops, registry.OpDelete, "/ledgers/"+dead) > 0 && died.CompareAndSwap(false, true) {
						go func() { // once it is applied nothing of a is heard any more
							pause(time.Millisecond)
							b.crash(a)
						}()
						return f
					}
					return deliver
				})
				b.crash(c)
				b.until("the leader has died after its commit", died.Load)
				b.until("d has all", func() bool { return allOwned(6, d) && d.job().Leader == d.job().Instance })
				b.until("what was cut is told", func() bool {
					told := map[int]bool{}
					for _, e := range append(of[event.ItemCut](d), of[event.ItemCut](a)...) {
						if e.Due.Equal(due) && e.Instance == dead {
							told[e.Item] = true
						}
					}
					return told[victims[0]] && told[victims[1]]
				})
				pause(2 * time.Second)
				require.Empty(b, b.history(w, a, c, d).wrong())
			})
		})
	}
}

// Finding 16: what was told as skipped, never to run, ran later.
func TestFinding16WhatIsToldAsSkippedNeverRuns(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				rnd := rand.New(rand.NewPCG(seed, 16))
				var mu sync.Mutex
				draw := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return rnd.IntN(n)
				}
				w := newWitness()
				w.hold = func(ctx context.Context, _ core.Shard) error {
					select {
					case <-time.After(time.Duration(draw(1600)) * time.Millisecond):
					case <-ctx.Done():
					}
					return nil
				}
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 6, Concurrency: 3}
				ins := []*instance{b.start("a", w, cfg), b.start("c", w, cfg), b.start("d", w, cfg)}
				for _, in := range ins {
					in.gate.decide(func([]registry.Op) fate {
						return []fate{deliver, deliver, deliver, deliver, deliver, answerLost, requestLost, appliedLate}[draw(8)]
					})
				}
				b.until("it fires", func() bool { return w.count() >= 6 })
				shows := func() bool { h := b.history(w, ins...); return len(h.cut) > 0 && len(h.skipped) > 0 }
				for n := 0; n < 8 || (n < 64 && !shows()); n++ {
					pause(time.Duration(draw(3000)) * time.Millisecond)
					b.expire(ins[draw(3)].State().Session)
				}
				for _, in := range ins {
					in.gate.decide(nil)
				}
				pause(10 * time.Second)
				b.until("shared", func() bool { return allOwned(6, ins...) })
				for _, in := range ins {
					in.stop(b)
				}
				h := b.history(w, ins...)
				require.NotEmpty(b, h.cut, "nothing was cut: the test shows nothing")
				require.NotEmpty(b, h.skipped)
				require.Empty(b, h.wrong())
			})
		})
	}
}
