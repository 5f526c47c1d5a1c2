package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// again are the runs of fires that a dead instance had begun.
func (w *witness) again() []core.Shard { return w.from(core.SourceFailover) }

// from are the runs for a reason, in the order of their items.
func (w *witness) from(source core.Source) (runs []core.Shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		for _, s := range r {
			if s.Source == source {
				runs = append(runs, s)
			}
		}
	}
	slices.SortFunc(runs, func(a, b core.Shard) int { return a.Item - b.Item })
	return runs
}

// stuckOn holds the runs of one instance until their contexts end.
func (w *witness) stuckOn(stuck func(s core.Shard) bool) (held *atomic.Int64) {
	held = new(atomic.Int64)
	w.hold = func(ctx context.Context, s core.Shard) error {
		if !stuck(s) {
			return nil
		}
		held.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	return held
}

// A stuckInstance holds what it begins, from when it is told to.
type stuckInstance struct {
	id   atomic.Pointer[string]
	held *atomic.Int64
}

// stuckAt holds the runs of the instance that is named later, but for those that run again.
func (w *witness) stuckAt() *stuckInstance {
	x := &stuckInstance{}
	x.held = w.stuckOn(func(s core.Shard) bool {
		id := x.id.Load()
		return id != nil && s.Instance == *id && s.Source != core.SourceFailover
	})
	return x
}

// holds waits until an instance is held in so many runs.
func (x *stuckInstance) holds(b *bed, in *instance, n int64) {
	b.Helper()
	id := in.job().Instance
	x.id.Store(&id)
	b.until("it runs them", func() bool { return x.held.Load() == n })
}

// crashRunning kills an instance while it runs so many items.
func (b *bed) crashRunning(in *instance, x *stuckInstance, n int64) {
	b.Helper()
	x.holds(b, in, n)
	b.crash(in)
}

func withFailover(cfg core.JobConfig) core.JobConfig {
	cfg.Failover = true
	return cfg
}

func TestWhatACrashedInstanceRanRunsAgain(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		stuck := w.stuckAt()
		a, c := b.start("a", w, withFailover(everySecond)), b.start("c", w, withFailover(everySecond))
		b.until("shared", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 && w.count() >= 8 })
		id, items := a.job().Instance, a.job().Items
		b.crashRunning(a, stuck, 2)
		b.until("they run again", func() bool { return len(w.again()) == 2 })
		for i, s := range w.again() {
			require.Equal(b, items[i], s.Item)
			require.Equal(b, id, s.Lost)
			require.Equal(b, 2, s.Attempt)
			require.Equal(b, c.job().Instance, s.Instance)
			require.Contains(b, s.TaskID, "@-@FAILOVER@-@")
		}
		ended := func(e event.ItemEnded) bool {
			return slices.ContainsFunc(w.again(), func(s core.Shard) bool { return s.Item == e.Item && s.Due.Equal(e.Due) })
		}
		b.until("their ends are told", func() bool {
			return len(slices.DeleteFunc(of[event.ItemEnded](c), func(e event.ItemEnded) bool { return !ended(e) })) == 2
		})
		require.Empty(b, of[event.ItemCut](c))
		begun := slices.DeleteFunc(of[event.FireBegun](c), func(e event.FireBegun) bool { return !e.Redo })
		require.NotEmpty(b, begun)
		before := w.count()
		b.until("three more fires", func() bool { return w.count() >= before+12 })
		require.Len(b, w.again(), 2)
	})
}

// Each instance that runs it dies: the third one is the last.
func TestAFireThatKillsThreeInstancesIsCut(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		var poison atomic.Pointer[time.Time]
		held := w.stuckOn(func(s core.Shard) bool {
			due := poison.Load()
			return s.Item == 1 && due != nil && s.Due.Equal(*due)
		})
		var ins []*instance
		for i := range 4 {
			ins = append(ins, b.start(fmt.Sprint("i", i), w, withFailover(everySecond)))
		}
		b.until("shared", func() bool { return allOwned(4, ins...) && w.count() >= 8 })
		due := time.Now().Truncate(time.Second).Add(3 * time.Second)
		poison.Store(&due)
		for deaths := range int64(3) {
			b.until("it runs", func() bool { return held.Load() == deaths+1 })
			at := slices.IndexFunc(ins, func(in *instance) bool { return slices.Contains(in.job().Items, 1) })
			require.GreaterOrEqual(b, at, 0)
			b.crash(ins[at])
			ins = slices.Delete(ins, at, at+1)
		}
		b.until("it is cut", func() bool { return len(of[event.ItemCut](ins[0])) == 1 })
		cut := of[event.ItemCut](ins[0])[0]
		require.Equal(b, event.CutTries, cut.Reason)
		require.True(b, cut.Due.Equal(due))
		before := w.count()
		b.until("its next fires run", func() bool { return allOwned(4, ins...) && w.count() >= before+12 })
		require.EqualValues(b, 3, held.Load())
	})
}

// What became of what ran when the whole cluster went down.
func TestTheWholeClusterGoesDownAndUp(t *testing.T) {
	for name, test := range map[string]struct {
		down  time.Duration
		while func(b *bed, other *instance, in *instance)
		cut   event.CutReason
		again bool
	}{
		"at once":          {again: true},
		"for an hour":      {down: 50 * time.Minute, again: true},
		"for two hours":    {down: 2 * time.Hour, cut: event.CutLate},
		"item disabled":    {while: func(b *bed, other, in *instance) { b.create(other, b.path(in, "sharding/0/disabled"), "") }, cut: event.CutDisabled},
		"failover was off": {while: func(b *bed, other, in *instance) { b.setConfig(in, "failover: true", "failover: false") }, cut: event.CutPlain},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				var free atomic.Bool
				held := w.stuckOn(func(core.Shard) bool { return !free.Load() })
				cfg := withFailover(everySecond)
				cfg.Shards = 1
				a := b.start("a", w, cfg)
				b.until("it runs", func() bool { return held.Load() == 1 })
				other := b.start("other", newWitness(), core.JobConfig{Name: "another", Cron: "0 0 0 1 1 ? 2099", Shards: 1})
				b.crash(a)
				if test.while != nil {
					test.while(b, other, a)
				}
				pause(test.down + time.Second)
				free.Store(true)
				c := b.start("c", w, cfg)
				if test.again {
					b.until("it runs again", func() bool { return len(w.again()) == 1 })
					require.Empty(b, of[event.ItemCut](c))
					return
				}
				b.until("it is told as cut", func() bool { return len(of[event.ItemCut](c)) == 1 })
				require.Equal(b, test.cut, of[event.ItemCut](c)[0].Reason)
				pause(5 * time.Second)
				require.Empty(b, w.again())
			})
		})
	}
}

// Innocent items that were begun beside one that kills its instance lose nothing by it.
func TestOneThatKillsTakesNoOtherWithIt(t *testing.T) {
	inBubble(t, func(b *bed) {
		const items = 12
		w := newWitness()
		due := time.Now().Truncate(time.Second).Add(3 * time.Second)
		var all []*instance
		var killed atomic.Int64
		w.hold = func(ctx context.Context, s core.Shard) error {
			if s.Item != 5 || !s.Due.Equal(due) {
				pause(10 * time.Millisecond)
				return nil
			}
			killed.Add(1)
			for _, in := range all {
				if in.job().Instance == s.Instance {
					b.crash(in)
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}
		cfg := withFailover(everySecond)
		cfg.Shards, cfg.Concurrency = items, 2
		for i := range 4 {
			all = append(all, b.start(fmt.Sprint("i", i), w, cfg))
		}
		b.until("shared", func() bool { return allOwned(items, all...) })
		pause(40 * time.Second)
		require.EqualValues(b, 3, killed.Load())
		var cuts []event.ItemCut
		for _, in := range all {
			cuts = append(cuts, of[event.ItemCut](in)...)
		}
		for _, cut := range cuts {
			require.Equal(b, 5, cut.Item, "an innocent item was cut")
			require.Equal(b, event.CutTries, cut.Reason)
		}
		require.NotEmpty(b, cuts)
		for n := range items {
			if n != 5 {
				w.mu.Lock()
				runs := w.runs[fmt.Sprintf("%s/%d", due.UTC().Format("15:04:05.000"), n)]
				w.mu.Unlock()
				require.NotEmpty(b, runs, "item %d did not run its fire", n)
			}
		}
	})
}

// A fire does not run again beside its own function, which has not returned though its
// session was lost. What waits to run again when failover is switched off is told.
func TestAFireWaitsForItsFunctionToRunAgain(t *testing.T) {
	for name, off := range map[string]bool{"failover stays on": false, "failover is switched off": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				release := make(chan struct{})
				var began atomic.Int64
				w.hold = func(context.Context, core.Shard) error {
					if began.Add(1) == 1 {
						<-release
					}
					return nil
				}
				cfg := withFailover(everySecond)
				cfg.Shards = 1
				a := b.start("a", w, cfg)
				b.until("it runs", func() bool { return began.Load() == 1 })
				b.expire(a.State().Session)
				b.until("it has a session again, and the item", func() bool { return len(of[event.SessionRegained](a)) == 1 && allOwned(1, a) })
				if off {
					b.setConfig(a, "failover: true", "failover: false")
				}
				pause(5 * time.Second)
				require.EqualValues(b, 1, began.Load(), "it runs beside the function of a session before")
				close(release)
				b.until("it goes on", func() bool { return began.Load() > 2 })
				if !off {
					require.Len(b, w.again(), 1)
					require.Empty(b, of[event.ItemCut](a))
					return
				}
				require.Empty(b, w.again())
				cuts := of[event.ItemCut](a)
				require.Len(b, cuts, 1)
				require.Equal(b, event.CutOff, cuts[0].Reason)
			})
		})
	}
}

func TestFailoverNeedsMonitoring(t *testing.T) {
	cfg := withFailover(everySecond)
	cfg.Monitor = core.MonitorOff
	err := cfg.Validate()
	require.ErrorContains(t, err, "Failover: without monitoring nothing says what a dead instance ran")
}
