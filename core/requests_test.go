package core_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// onMemory starts one instance in a bubble and returns its server.
func onMemory(t *testing.T, cfg core.JobConfig, test func(b *bed, srv *memory.Server, in *instance, w *witness)) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		b := &bed{T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
		w := newWitness()
		in := b.start("a", w, cfg)
		b.until("settled", func() bool { return allOwned(cfg.Shards, in) })
		synctest.Wait()
		test(b, srv, in, w)
	})
}

func TestAFireIsTwoCommitsAndNoRead(t *testing.T) {
	for _, shards := range []int{1, 8, 40, 1000} {
		cfg := core.JobConfig{Name: "hello", Cron: "0/10 * * * * ?", Shards: shards, Concurrency: 1000}
		onMemory(t, cfg, func(b *bed, srv *memory.Server, in *instance, w *witness) {
			var more atomic.Int32
			in.gate.decide(func(ops []registry.Op) fate {
				if len(ops) != 2 { // the life and the ledger
					more.Add(1)
				}
				return deliver
			})
			srv.ResetRequests()
			pause(time.Minute)
			synctest.Wait()
			got := srv.Requests()
			require.Zero(b, more.Load(), "%d items", shards)
			got.Heartbeat = 0
			require.Equal(b, 6*shards, w.count())
			require.Equal(b, memory.Counts{Commit: 6 * 2}, got, "%d items", shards)
		})
	}
}

// Runs that last are shown, in a commit of their own, which costs their end nothing.
func TestAFireThatLastsIsThreeCommits(t *testing.T) {
	for _, c := range []struct {
		show    time.Duration
		commits int
	}{{0, 3}, {-1, 2}, {10 * time.Second, 2}} {
		cfg := core.JobConfig{Name: "hello", Cron: "0/10 * * * * ?", Shards: 30, Concurrency: 1000, ShowRunningAfter: c.show}
		onMemory(t, cfg, func(b *bed, srv *memory.Server, _ *instance, w *witness) {
			w.holds(func(context.Context, core.Shard) error {
				pause(3 * time.Second)
				return nil
			})
			srv.ResetRequests()
			pause(time.Minute + 5*time.Second)
			synctest.Wait()
			got := srv.Requests()
			got.Heartbeat = 0
			require.Equal(b, 6*30, w.count())
			require.Equal(b, memory.Counts{Commit: 6 * c.commits}, got, "shown after %v", c.show)
		})
	}
}

func TestAnIdleJobCostsNothingButTheHeartbeat(t *testing.T) {
	cfg := core.JobConfig{Name: "idle", Cron: "0 0 0 1 1 ? 2099", Shards: 8, ReconcileInterval: -1}
	onMemory(t, cfg, func(b *bed, srv *memory.Server, _ *instance, _ *witness) {
		srv.ResetRequests()
		pause(24 * time.Hour)
		got := srv.Requests()
		heartbeats := got.Heartbeat
		got.Heartbeat = 0
		require.Equal(b, memory.Counts{}, got)
		require.InDelta(b, float64(24*time.Hour/(1500*time.Millisecond)), heartbeats, 2)
	})
}

func TestMonitoringOffCostsNothing(t *testing.T) {
	cfg := core.JobConfig{Name: "loose", Cron: "* * * * * ?", Shards: 8, Monitor: core.MonitorOff, ReconcileInterval: -1}
	onMemory(t, cfg, func(b *bed, srv *memory.Server, _ *instance, w *witness) {
		srv.ResetRequests()
		pause(time.Hour)
		got := srv.Requests()
		got.Heartbeat = 0
		require.Equal(b, memory.Counts{}, got)
		require.GreaterOrEqual(b, w.count(), 8*3599)
	})
}

func TestReconciliationIsFourReads(t *testing.T) {
	cfg := core.JobConfig{Name: "idle", Cron: "0 0 0 1 1 ? 2099", Shards: 8}
	onMemory(t, cfg, func(b *bed, srv *memory.Server, _ *instance, _ *witness) {
		srv.ResetRequests()
		pause(time.Hour + time.Second)
		got := srv.Requests()
		got.Heartbeat = 0
		require.Equal(b, memory.Counts{Get: 12, Children: 12}, got, "six reconciliations: ledgers, their values, the items' nodes, their instances")
	})
}

// What registering and leading one of many jobs costs until its only instance owns its items: of a job that is known, a
// commit each for the registration, the election and the assignment. What the watches show may come in another order
// once in a hundred times, and is looked at once more then: so it is the middle of several starts.
func TestWhatAStartCosts(t *testing.T) {
	cfg := core.JobConfig{Cron: "0 0 0 1 1 ? 2099", Shards: 8}
	const starts = 9
	var made, known []memory.Counts
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		b := &bed{T: t, ns: "shop", fake: true,
			client: func(_ *testing.T, ns string) registry.Registry { return srv.Registry(ns) }}
		started := func(name string) memory.Counts {
			srv.ResetRequests()
			in := b.start(name, newWitness(), cfg)
			b.until("settled", func() bool { return allOwned(cfg.Shards, in) })
			synctest.Wait()
			got := srv.Requests()
			got.Heartbeat = 0
			in.stop(b)
			return got
		}
		cfg.Name = "other"
		started("first") // now the namespace stands
		for n := range starts {
			cfg.Name = fmt.Sprint("idle-", n)
			made = append(made, started("a"))
			known = append(known, started("b"))
		}
	})
	middle := func(all []memory.Counts) memory.Counts {
		slices.SortFunc(all, func(a, b memory.Counts) int {
			return cmp.Compare(a.Get+a.Children+a.Commit+a.WatchAdd, b.Get+b.Children+b.Commit+b.WatchAdd)
		})
		return all[len(all)/2]
	}
	require.Equal(t, memory.Counts{Open: 1, Commit: 5, Get: 7, Children: 4, WatchAdd: 18}, middle(made), "a new job")
	require.Equal(t, memory.Counts{Open: 1, Commit: 3, Get: 3, Children: 2, WatchAdd: 18}, middle(known), "a job that is known")
}

func TestAFireOnARealServiceIsTwoCommitsAndNothingElse(t *testing.T) {
	onServices(t, func(t *testing.T, s service) { requestsOfFires(t, s, false, 2) })
}

// Begun ahead, the begin of a fire is part of the commit of the end before, where that is near.
func TestAFireThatIsBegunWithTheEndBeforeIsOneCommit(t *testing.T) {
	onServices(t, func(t *testing.T, s service) { requestsOfFires(t, s, true, 1) })
}

func requestsOfFires(t *testing.T, s service, failover bool, each int) {
	t.Helper()
	var sent func() (commits, others int)
	b := &bed{T: t, ns: freshNamespace(), client: func(t *testing.T, ns string) registry.Registry {
		reg, way := s.client(t, ns, 6*time.Second)
		sent = way.Sent
		return reg
	}}
	w := newWitness()
	cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 8, Concurrency: 8, ReconcileInterval: -1, Failover: failover}
	in := b.start("a", w, cfg)
	b.until("it runs", func() bool { return allOwned(8, in) && w.count() >= 8 })
	// A commit after which every item runs finds all ends recorded: from one such commit
	// to another there are whole fires and nothing else.
	const fires = 3
	var begun, asked, commits, others int // guarded by the gate until counted
	counted := make(chan struct{})
	in.gate.decide(func(ops []registry.Op) fate {
		if running(ops) == cfg.Shards {
			switch begun++; begun {
			case 1:
				sent()
				asked = 0
			case fires + 1:
				commits, others = sent()
				in.gate.fate = nil // the gate is locked meanwhile
				close(counted)
				return deliver
			}
		}
		asked++
		return deliver
	})
	select {
	case <-counted:
	case <-time.After(30 * time.Second):
		require.FailNow(t, "still not: four fires begun")
	}
	t.Logf("%d fires: %d commits, %d other requests", fires, commits, others)
	require.Equal(t, asked, commits, "of the requests that core made")
	// A stalled machine may record the ends of a fire in two.
	require.GreaterOrEqual(t, commits, each*fires)
	require.LessOrEqual(t, commits, each*fires+2)
	require.Zero(t, others)
}

// Where the count of runs that were asked for is deleted, or written over, or with it all that the registry knows of
// them, the numbers go on: one that was given again would be taken for the run that began under it.
func TestNumbersOfRunsGoOnWithoutTheirCount(t *testing.T) {
	deleted := func(what func(job layout.Job) string) func(b *bed, job layout.Job, ses registry.Session) {
		return func(b *bed, job layout.Job, ses registry.Session) {
			require.NoError(b, registry.DeleteTree(b.Context(), ses, what(job)))
		}
	}
	for name, spoil := range map[string]func(b *bed, job layout.Job, ses registry.Session){
		"deleted": deleted(layout.Job.Runs), "deleted with all of the job's own nodes": deleted(layout.Job.OwnRoot),
		"nonsense": func(b *bed, job layout.Job, ses registry.Session) {
			_, err := ses.Commit(b.Context(), registry.Set(job.Runs(), []byte("x"), registry.AnyVersion))
			require.NoError(b, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				ran := func() int { return len(w.from(core.SourceRequest)) }
				a, other := b.start("a", w, everySecond), b.start("other", w, everySecond)
				b.until("both have items", func() bool { return allOwned(4, a, other) && len(other.job().Items) == 2 })
				job, err := layout.New("shop", "hello")
				require.NoError(b, err)
				ask := func(id string) {
					before := ran()
					b.create(a, job.Request(id), string(layout.MarshalRequest(layout.Request{Expires: time.Now().Add(time.Hour)})))
					b.until("each item runs", func() bool { return ran() == before+4 })
				}
				for _, id := range []string{"1", "2", "3"} {
					ask(id)
				}
				pause(5 * time.Second) // no record names them any more
				for n := range int64(3) {
					b.remove(a, job.Run(n+1)) // as ten minutes after their end
				}
				spoil(b, job, b.open(a))
				pause(10 * time.Second)
				b.until("the items have owners", func() bool { return allOwned(4, a, other) })
				ask("4")
				a.stop(b)
				b.until("the other has all", func() bool { return allOwned(4, other) })
				ask("5")
				pause(time.Minute)
				require.Equal(b, 5*4, ran())
			})
		})
	}
}
