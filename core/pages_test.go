package core_test

import (
	"context"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// mixed runs items each for a time of its own, a fifth of them for ever, so that hardly two records are
// equal. It knows what runs where.
type mixed struct {
	mu    sync.Mutex
	runs  map[int]string // by which instance each item is run
	again map[int]int
	twice []int
}

func (m *mixed) job(instance string) core.Job {
	return core.JobFunc(func(ctx context.Context, s core.Shard) error {
		m.mu.Lock()
		if s.Source == core.SourceFailover {
			m.again[s.Item]++
		}
		if m.runs[s.Item] == instance {
			m.twice = append(m.twice, s.Item)
		}
		m.runs[s.Item] = instance
		m.mu.Unlock()
		lasts := time.Second + time.Duration(s.Item)*50*time.Microsecond
		if s.Item%5 == 0 {
			lasts = 24 * time.Hour
		}
		select {
		case <-time.After(lasts):
		case <-ctx.Done():
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.runs[s.Item] == instance {
			delete(m.runs, s.Item)
		}
		return nil
	})
}

// at returns what an instance runs.
func (m *mixed) at(instance string) (items []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, by := range m.runs {
		if by == instance {
			items = append(items, n)
		}
	}
	return items
}

// Items with records of their own, on two instances of which one crashes, in a registry with short values: the
// ledgers have pages, each item goes on at the other instance, and what ran runs again.
func TestItemsInMixedStatesHavePages(t *testing.T) {
	const total = 3_000
	synctest.Test(t, func(t *testing.T) {
		limits := registry.Limits{MaxOps: 40, MaxBytes: 64 << 10, MaxValue: 16 << 10}
		srv := memory.NewServer(memory.Config{SessionTimeout: 2 * time.Second, Limits: limits})
		b := &bed{
			T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) },
			expire: func(id string) { srv.Expire(id) },
		}
		w := &mixed{runs: map[int]string{}, again: map[int]int{}}
		cfg := core.JobConfig{Name: "many", Cron: "@delay 30s", Shards: total, Concurrency: total, Failover: true}
		a := b.start("a", w.job("a"), cfg, core.WithLogger(nil))
		c := b.start("c", w.job("c"), cfg, core.WithLogger(nil))
		b.until("all items are owned", func() bool { return allOwned(total, a, c) && len(a.job().Items) == total/2 })
		written, commits, below := 0, 0, ""
		a.gate.hold(func(ops []registry.Op) {
			commits++
			for _, op := range ops {
				if path.Base(path.Dir(path.Dir(op.Path))) == "ledgers" {
					written, below = written+1, path.Dir(op.Path)
				}
			}
		})
		pause(40 * time.Second)
		require.Greater(b, written, total/2/32/2, "the ledger of a has pages")
		require.Less(b, commits, 100, "and they share commits")
		ran := w.at("a")
		require.Greater(b, len(ran), total/20)
		b.crash(a)
		b.until("all items are owned by c", func() bool { return len(c.job().Items) == total })
		b.until("what a ran runs again", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !slices.ContainsFunc(ran, func(n int) bool { return w.again[n] == 0 })
		})
		pause(40 * time.Second)
		require.Empty(b, w.twice, "no item runs twice at an instance")
		require.Empty(b, of[event.ItemCut](c))
		names, err := b.open(c).Children(b.Context(), path.Dir(below))
		require.NoError(b, err)
		require.Len(b, names, 1, "the ledger of a is gone with its pages")
		b.Logf("%d items ran at a, and run again; %d commits with %d writes of pages", len(ran), commits, written)
	})
}
