package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// bind switches static sharding on, while items are where they are.
func (b *bed) bind(in *instance) {
	b.Helper()
	b.setConfig(in, "staticSharding: false", "staticSharding: true")
	b.until("it is on", func() bool {
		return slices.ContainsFunc(of[event.ConfigChanged](in), func(e event.ConfigChanged) bool {
			return slices.Contains(e.Changes, event.Change{Field: "StaticSharding", Old: "false", New: "true"})
		})
	})
}

// bound starts the instances a and c that share four items, which are bound to them then.
func (b *bed) bound(w *witness, cfg core.JobConfig) (a, c *instance) {
	b.Helper()
	if cfg.Misfire == core.MisfireAll {
		cfg.MisfireCap = 100 // however long an instance is away
	}
	a, c = b.start("a", w, cfg), b.start("c", w, cfg)
	b.until("shared", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 && w.count() >= 8 })
	b.bind(c)
	return a, c
}

// back starts a again, until it has its own items.
func (b *bed) back(w *witness, cfg core.JobConfig, own []int) *instance {
	b.Helper()
	a := b.start("a", w, cfg)
	b.until("its owner has them again", func() bool { return slices.Equal(own, a.job().Items) })
	return a
}

// by are the runs of some items by an instance, those aside that run again.
func (w *witness) by(id string, items []int) (runs []core.Shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		for _, s := range r {
			if s.Instance == id && s.Source != core.SourceFailover && slices.Contains(items, s.Item) {
				runs = append(runs, s)
			}
		}
	}
	return runs
}

// fires waits until an instance has begun so many fires more.
func (b *bed) fires(in *instance, n int) {
	b.Helper()
	before := len(of[event.FireBegun](in))
	b.until("it fires", func() bool { return len(of[event.FireBegun](in)) >= before+n })
}

func TestBoundItemsWaitForTheirInstance(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.bound(w, everySecond)
		own, others := a.job().Items, c.job().Items
		a.stop(b)
		b.fires(c, 3)
		d := b.start("d", w, everySecond)
		b.fires(c, 2)
		require.Empty(b, d.job().Items, "who joins gets nothing")
		require.Equal(b, others, c.job().Items)
		b.until("it says for whom it waits", func() bool {
			return c.job().WaitingFor+d.job().WaitingFor == fmt.Sprintf("the instances to which items %d-%d are bound (static sharding)", own[0], own[1])
		})
		a = b.start("a", w, everySecond, core.WithIP("127.0.0.9"))
		b.until("it has its own again", func() bool { return slices.Equal(own, a.job().Items) })
		b.fires(a, 3)
		b.until("nothing waits", func() bool { return c.job().WaitingFor+d.job().WaitingFor == "" })
		for _, in := range []*instance{a, c, d} {
			in.stop(b)
		}
		require.Empty(b, w.by(c.job().Instance, own))
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second), "what came due while it was away is made up")
	})
}

// A crash with failover: what ran runs again at another instance, and nothing else of it.
func TestWhatABoundInstanceRanIsLent(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		stuck := w.stuckAt()
		a, c := b.bound(w, withFailover(everySecond))
		own, others := a.job().Items, c.job().Items
		b.crashRunning(a, stuck, 2)
		b.until("they run again", func() bool { return len(w.again()) == 2 })
		b.until("they are lent", func() bool { return slices.Equal(own, c.job().Lent) })
		require.Len(b, c.job().Items, 4)
		b.fires(c, 3)
		require.Empty(b, w.by(c.job().Instance, own), "it begins nothing else of them")
		require.Len(b, w.again(), 2)
		again := b.start("a", w, everySecond)
		b.until("its owner has them again", func() bool {
			return slices.Equal(own, again.job().Items) && slices.Equal(others, c.job().Items) && len(c.job().Lent) == 0
		})
		b.fires(again, 3)
		require.Empty(b, of[event.ItemCut](c))
		again.stop(b)
		c.stop(b)
		require.Empty(b, w.missing(4, time.Second))
	})
}

// Without failover it is cut, and told though its owner is not back.
func TestWhatABoundInstanceRanIsCut(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		stuck := w.stuckAt()
		a, c := b.bound(w, everySecond)
		id, own := a.job().Instance, a.job().Items
		b.crashRunning(a, stuck, 2)
		b.until("both are told as cut", func() bool { return len(of[event.ItemCut](c)) == 2 })
		for _, cut := range of[event.ItemCut](c) {
			require.Contains(b, own, cut.Item)
			require.Equal(b, id, cut.Instance)
			require.Equal(b, event.CutPlain, cut.Reason)
		}
		b.fires(c, 2)
		require.Len(b, of[event.ItemCut](c), 2, "once")
		require.Len(b, c.job().Items, 2)
		again := b.back(w, everySecond, own)
		b.fires(again, 2)
		require.Empty(b, of[event.ItemCut](again))
		require.Empty(b, w.by(c.job().Instance, own))
	})
}

// The owner is back before what it ran has begun elsewhere: it runs that itself.
func TestTheOwnerIsBackBeforeWhatItRanHasBegun(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		var id, busy atomic.Pointer[string]
		var held atomic.Int64
		let := make(chan struct{})
		w.hold = func(ctx context.Context, s core.Shard) error {
			dead, other := id.Load(), busy.Load()
			if dead != nil && s.Instance == *dead || other != nil && s.Instance == *other {
				held.Add(1)
				select {
				case <-ctx.Done():
				case <-let:
				}
			}
			return nil
		}
		cfg := withFailover(everySecond)
		cfg.Concurrency = 1
		a, c := b.bound(w, cfg)
		dead, other, own := a.job().Instance, c.job().Instance, a.job().Items
		busy.Store(&other)
		b.until("c is busy", func() bool { return held.Load() == 1 })
		id.Store(&dead)
		b.until("a runs one", func() bool { return held.Load() == 2 })
		b.crash(a)
		b.until("it is lent, and waits for a place", func() bool { return len(c.job().Lent) > 0 })
		again := b.start("a", w, cfg)
		b.until("it runs again at its owner", func() bool { return len(w.again()) > 0 && slices.Equal(own, again.job().Items) })
		for _, s := range w.again() {
			require.Equal(b, again.job().Instance, s.Instance)
		}
		b.until("c has nothing lent any more", func() bool { return len(c.job().Lent) == 0 })
		require.Empty(b, w.by(other, own))
		close(let)
	})
}

// Who has borrowed dies: what runs again is lent once more.
func TestABorrowerDies(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		type fire struct {
			item int
			due  time.Time
		}
		var poison atomic.Pointer[fire]
		var deaths atomic.Int64
		held := w.stuckOn(func(s core.Shard) bool {
			p := poison.Load()
			return p != nil && s.Item == p.item && s.Due.Equal(p.due) && deaths.Load() < 2
		})
		cfg := withFailover(everySecond)
		a, c := b.bound(w, cfg)
		own, others := a.job().Items, c.job().Items
		d := b.start("d", w, cfg)
		due := time.Now().Truncate(time.Second).Add(3 * time.Second)
		poison.Store(&fire{own[0], due})
		b.until("it runs", func() bool { return held.Load() == 1 })
		b.crash(a)
		deaths.Add(1)
		b.until("it is lent, to whoever has least", func() bool { return held.Load() == 2 && slices.Contains(d.job().Lent, own[0]) })
		b.crash(d)
		deaths.Add(1)
		b.until("it has run elsewhere", func() bool {
			return slices.ContainsFunc(of[event.ItemEnded](c), func(e event.ItemEnded) bool { return e.Item == own[0] && e.Due.Equal(due) })
		})
		require.Contains(b, c.job().Lent, own[0])
		b.fires(c, 2)
		require.Empty(b, slices.Concat(w.by(d.job().Instance, own), w.by(c.job().Instance, own)))
		again := b.back(w, cfg, own)
		b.fires(again, 3)
		require.Equal(b, others, c.job().Items)
		for _, in := range []*instance{again, c} {
			in.stop(b)
		}
		require.Empty(b, w.missing(4, time.Second))
	})
}

// Another total is another epoch, whose items the strategy gives to who is there.
func TestAChangedTotalEndsWhatIsBound(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		stuck := w.stuckAt()
		cfg := withFailover(everySecond)
		a, c := b.bound(w, cfg)
		d := b.start("d", w, cfg)
		b.crashRunning(a, stuck, 2)
		b.until("they run again", func() bool { return len(w.again()) == 2 && len(c.job().Lent)+len(d.job().Lent) == 2 })
		b.setConfig(c, "shardingTotalCount: 4", "shardingTotalCount: 6")
		b.until("who is there shares", func() bool { return len(c.job().Items) == 3 && len(d.job().Items) == 3 && allOwned(6, c, d) })
		require.Empty(b, slices.Concat(c.job().Lent, d.job().Lent))
		again := b.start("a", w, cfg)
		b.fires(c, 2)
		require.Empty(b, again.job().Items)
		for _, in := range []*instance{again, c, d} {
			in.stop(b)
		}
		require.Empty(b, w.missing(6, time.Second), "what was bound to the one that is away was made up")
	})
}

// Switched off, items move at once, those that are lent and those of who is away too.
func TestStaticShardingIsSwitchedOff(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		var stuck atomic.Pointer[string]
		var first atomic.Int64
		held := w.stuckOn(func(s core.Shard) bool {
			id := stuck.Load()
			return id != nil && s.Instance == *id && s.Item == int(first.Load()) && s.Source != core.SourceFailover
		})
		a, c := b.bound(w, withFailover(everySecond))
		id := a.job().Instance
		first.Store(int64(a.job().Items[0]))
		stuck.Store(&id)
		b.until("a runs one", func() bool { return held.Load() == 1 })
		b.crash(a)
		b.until("what it ran is lent", func() bool { return slices.Contains(c.job().Lent, int(first.Load())) })
		b.fires(c, 2)
		b.setConfig(c, "staticSharding: true", "staticSharding: false")
		b.until("all are its own", func() bool { return len(c.job().Items) == 4 && len(c.job().Lent) == 0 })
		b.fires(c, 3)
		c.stop(b)
		require.Empty(b, w.missing(4, time.Second))
	})
}

// The whole cluster goes down and up, in another order: each has what it had.
func TestBoundItemsOverTheWholeCluster(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.bound(w, everySecond)
		own, others := a.job().Items, c.job().Items
		a.stop(b)
		b.crash(c)
		d := b.start("d", w, everySecond)
		c = b.start("c", w, everySecond)
		b.until("c has its own", func() bool { return slices.Equal(others, c.job().Items) })
		b.fires(c, 2)
		a = b.start("a", w, everySecond)
		b.until("a has its own", func() bool { return slices.Equal(own, a.job().Items) })
		b.fires(a, 2)
		require.Empty(b, d.job().Items)
		require.Empty(b, w.by(c.job().Instance, own))
	})
}

// A paused instance keeps its items, over its restart too, and nobody begins them.
func TestAPausedInstanceKeepsWhatIsBound(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.bound(w, everySecond)
		own, id := a.job().Items, a.job().Instance
		b.create(c, b.own(c, "inforce/paused@a"), "")
		b.until("it is paused", func() bool { return a.job().Disabled != "" && len(a.job().Running) == 0 })
		ran := len(w.by(id, own))
		b.fires(c, 3)
		require.LessOrEqual(b, len(w.by(id, own)), ran+2, "what had begun")
		require.Equal(b, own, a.job().Items)
		a.stop(b)
		a = b.start("a", w, everySecond)
		b.fires(c, 2)
		require.Empty(b, a.job().Items)
		b.remove(c, b.own(c, "inforce/paused@a"))
		b.until("it has its own", func() bool { return slices.Equal(own, a.job().Items) })
		b.fires(a, 2)
		require.Empty(b, w.by(c.job().Instance, own))
	})
}

// No round waits for who is away, but for what it ran.
func TestRoundsGoOnWithoutWhatIsBound(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		stuck := w.stuckAt()
		cfg := withFailover(everySecond)
		a, c := b.heard(w, x, cfg)
		b.bind(c)
		own := a.job().Items
		b.crashRunning(a, stuck, 2)
		b.until("they run again", func() bool { return len(w.again()) == 2 && len(c.job().Lent) == 2 })
		n := len(x.all())
		b.until("rounds go on", func() bool { return len(x.all()) >= n+4 })
		require.Empty(b, w.by(c.job().Instance, own))
		again := b.start("a", w, cfg)
		b.until("it has its own", func() bool { return slices.Equal(own, again.job().Items) })
		n = len(x.all())
		b.until("and on", func() bool { return len(x.all()) >= n+3 })
		x.ordered(b)
	})
}

// Without monitoring items are bound as well.
func TestBoundItemsWithoutMonitoring(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Monitor = core.MonitorOff
		a, c := b.bound(w, cfg)
		own := a.job().Items
		b.crash(a)
		b.fires(c, 3)
		require.Len(b, c.job().Items, 2)
		again := b.back(w, cfg, own)
		b.fires(again, 2)
		require.Empty(b, w.by(c.job().Instance, own))
	})
}

// A fixed delay goes on where its item is, once that is back.
func TestABoundItemOfAFixedDelay(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		stuck := w.stuckAt()
		cfg := withFailover(core.JobConfig{Name: "hello", Cron: "@delay 1s", Shards: 4})
		a, c := b.bound(w, cfg)
		own := a.job().Items
		b.crashRunning(a, stuck, 2)
		b.until("they run again", func() bool { return len(w.again()) == 2 })
		pause(20 * time.Second)
		require.Empty(b, w.by(c.job().Instance, own))
		again := b.start("a", w, cfg)
		b.until("they go on", func() bool { return len(w.by(again.job().Instance, own)) >= 6 })
	})
}

// An instance that registers anew in its session has its own, whatever runs.
func TestABoundInstanceRegistersAnew(t *testing.T) {
	for _, nodes := range [][]string{{"lives"}, {"ledgers"}, {"lives", "notices"}} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				var long atomic.Bool
				w.holds(func(ctx context.Context, _ core.Shard) error {
					if long.Load() {
						pause(3 * time.Second)
					}
					return nil
				})
				a, c := b.bound(w, withFailover(everySecond))
				id, own, others := a.job().Instance, a.job().Items, c.job().Items
				long.Store(true)
				b.until("all run", func() bool { return len(a.job().Running) == 2 })
				var paths []string
				for _, dir := range nodes {
					paths = append(paths, b.own(c, dir+"/"+id))
				}
				b.remove(c, paths...) // at once: it registers anew as soon as one is gone
				long.Store(false)
				b.until("it has its own", func() bool { return a.job().Instance != id && slices.Equal(own, a.job().Items) })
				b.fires(a, 3)
				require.Equal(b, others, c.job().Items)
				require.Empty(b, w.by(c.job().Instance, own))
				require.Empty(b, w.overlap)
			})
		})
	}
}

// Items bound to a name that the next start does not have would never run again; whoever did not choose the name is told.
func TestStaticShardingByTheHostsNameIsWarnedOf(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.StaticSharding = true
		byHost := func(in *instance) int {
			n := 0
			for _, w := range of[event.Warning](in) {
				if strings.Contains(w.Problem, "core.WithInstanceName") {
					n++
				}
			}
			return n
		}
		a := b.start("a", newWitness(), cfg)
		c := b.start("c", newWitness(), cfg, core.WithInstanceName(""))
		synctest.Wait() // listeners are told beside Start
		require.Zero(b, byHost(a), "it has a name")
		require.Equal(b, 1, byHost(c))
	})
}
