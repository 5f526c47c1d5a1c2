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
	brief bool // none runs for ever
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
		if s.Item%5 == 0 && !m.brief {
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

// inPages runs a test with a job of many items with records of their own, of two instances in a registry with
// short values: their ledgers have pages. written is how many the first instance has written, in commits.
func inPages(t *testing.T, brief bool, test func(b *bed, w *mixed, a, c *instance, written, commits *int)) {
	t.Helper()
	const total = 3_000
	synctest.Test(t, func(t *testing.T) {
		limits := registry.Limits{MaxOps: 40, MaxBytes: 64 << 10, MaxValue: 16 << 10}
		srv := memory.NewServer(memory.Config{SessionTimeout: 2 * time.Second, Limits: limits})
		b := &bed{
			T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) },
			expire: func(id string) { srv.Expire(id) },
		}
		w := &mixed{runs: map[int]string{}, again: map[int]int{}, brief: brief}
		cfg := core.JobConfig{Name: "many", Cron: "@delay 30s", Shards: total, Concurrency: total, Failover: true}
		a := b.start("a", w.job("a"), cfg, core.WithLogger(nil))
		c := b.start("c", w.job("c"), cfg, core.WithLogger(nil))
		b.until("all items are owned", func() bool { return allOwned(total, a, c) && len(a.job().Items) == total/2 })
		written, commits := 0, 0
		a.gate.hold(func(ops []registry.Op) {
			commits++
			for _, op := range ops {
				if path.Base(path.Dir(path.Dir(op.Path))) == "ledgers" {
					written++
				}
			}
		})
		pause(40 * time.Second)
		require.Greater(b, written, total/2/32/2, "the ledger of a has pages")
		test(b, w, a, c, &written, &commits)
		require.Empty(b, w.twice, "no item runs twice at an instance")
		ses := b.open(c)
		b.until("what is left behind is gone with its pages", func() bool {
			names, err := ses.Children(b.Context(), "/elasticron/shop/many/ledgers")
			require.NoError(b, err)
			return len(names) <= 2
		})
	})
}

// Of two instances one crashes: each item goes on at the other one, and what ran runs again.
func TestItemsInMixedStatesHavePages(t *testing.T) {
	inPages(t, false, func(b *bed, w *mixed, a, c *instance, written, commits *int) {
		require.Less(b, *commits, 100, "changes share commits")
		ran := w.at("a")
		require.Greater(b, len(ran), 100)
		b.crash(a)
		b.until("all items are owned by c", func() bool { return len(c.job().Items) == 3_000 })
		b.until("what a ran runs again", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !slices.ContainsFunc(ran, func(n int) bool { return w.again[n] == 0 })
		})
		pause(40 * time.Second)
		require.Empty(b, of[event.ItemCut](c))
		b.Logf("%d items ran at a, and run again; %d commits with %d writes of pages", len(ran), *commits, *written)
	})
}

// A registration is removed from outside whose ledger has more pages than fit the commit of another. While
// something runs the session is ended, as if it were lost, and others take over.
func TestALedgerThatCannotBeTakenAlongEndsTheSession(t *testing.T) {
	inPages(t, false, func(b *bed, w *mixed, a, c *instance, _, _ *int) {
		ran := w.at("a")
		require.NotEmpty(b, ran)
		before := a.State().Session
		b.remove(c, "/elasticron/shop/many/lives/"+a.job().Instance)
		b.until("a has another session", func() bool { return a.State().Session != before && a.State().Session != "" })
		b.until("what a ran runs again", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !slices.ContainsFunc(ran, func(n int) bool { return w.again[n] == 0 })
		})
		b.until("all items are owned", func() bool { return allOwned(3_000, a, c) })
		require.Len(b, of[event.SessionLost](a), 1)
		require.ErrorContains(b, of[event.SessionLost](a)[0].Err, "does not fit the commit of another registration")
	})
}

// While nothing runs the registration goes on without its ledger, which the leader gives to others, as that of an
// instance which is gone.
func TestALedgerThatCannotBeTakenAlongIsLeft(t *testing.T) {
	inPages(t, true, func(b *bed, w *mixed, a, c *instance, _, _ *int) {
		require.Empty(b, w.at("a"))
		session, id := a.State().Session, a.job().Instance
		b.remove(c, "/elasticron/shop/many/lives/"+id)
		b.until("a is registered again", func() bool { return a.job().Instance != id && a.job().Instance != "" })
		b.until("all items are owned", func() bool { return allOwned(3_000, a, c) && len(a.job().Items) == 1_500 })
		require.Equal(b, session, a.State().Session)
		require.Empty(b, of[event.SessionLost](a))
		before := c.State().Session
		pause(40 * time.Second)
		require.Equal(b, before, c.State().Session)
	})
}
