package core_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry/memory"
)

// An idle job has no goroutine. A process has a watcher for each 128 jobs, up to 32, and a goroutine for each watcher;
// the registry in memory has none of its own for it.
func TestIdleJobsCostNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry("shop")
		defer reg.Close()
		goroutines := func(jobs int) int {
			s := core.New(reg)
			for i := range jobs {
				require.NoError(t, s.Add(newWitness(), core.JobConfig{Name: fmt.Sprintf("job-%d-%d", jobs, i), Cron: "0 0 0 1 1 ? 2099", Shards: 3}))
			}
			require.NoError(t, s.Start(t.Context()))
			pause(time.Minute)
			synctest.Wait()
			n := goroutinesHere()
			for _, j := range s.State().Jobs {
				require.Len(t, j.Items, 3, j.Name)
			}
			require.NoError(t, s.Stop(t.Context()))
			return n
		}
		one := goroutines(1)
		for jobs, watchers := range map[int]int{128: 1, 500: 4} {
			require.LessOrEqual(t, goroutines(jobs), one-1+watchers, "%d goroutines for one job; %d jobs", one, jobs)
		}
	})
}

// Jobs of several watchers are shared and move as those of one do.
func TestJobsOfSeveralWatchers(t *testing.T) {
	inBubble(t, func(b *bed) {
		const jobs = 300
		ws, cfgs := make([]*witness, jobs), make([]core.JobConfig, jobs)
		for i := range jobs {
			ws[i] = newWitness()
			cfgs[i] = core.JobConfig{Name: fmt.Sprint("job-", i), Cron: "*/5 * * * * ?", Shards: 4, Failover: true}
		}
		start := func(name string) *instance {
			in := b.prepare(name, ws[0], cfgs[0])
			for i := 1; i < jobs; i++ {
				require.NoError(b, in.Add(ws[i], cfgs[i]))
			}
			require.NoError(b, in.Start(b.Context()))
			return in
		}
		own := func(in *instance, items int) func() bool {
			return func() bool {
				for _, j := range in.State().Jobs {
					if len(j.Items) != items {
						return false
					}
				}
				return true
			}
		}
		ran := func() (least int) {
			least = ws[0].count()
			for _, w := range ws {
				least = min(least, w.count())
			}
			return least
		}
		a, c := start("a"), start("c")
		b.until("all are shared", func() bool { return own(a, 2)() && own(c, 2)() })
		before := ran()
		b.until("all run", func() bool { return ran() >= before+12 })
		b.crash(a)
		b.until("one has all", own(c, 4))
		d := start("d")
		b.until("all are shared again", func() bool { return own(c, 2)() && own(d, 2)() })
		before = ran()
		b.until("all run again", func() bool { return ran() >= before+12 })
		for _, in := range []*instance{a, c, d} {
			in.stop(b)
		}
		for i, w := range ws {
			require.Empty(b, w.doubled(), i)
			require.Empty(b, w.missing(4, 5*time.Second), i)
		}
	})
}

// goroutinesHere counts those of the bubble that this is called in: the process has others, of
// tests that went before.
func goroutinesHere() int {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	own, _, _ := bytes.Cut(stacks, []byte("]:"))
	_, bubble, is := bytes.Cut(own, []byte("synctest bubble "))
	if !is {
		panic("not in a bubble")
	}
	return bytes.Count(stacks, fmt.Appendf(nil, "synctest bubble %s]:", bubble))
}

func TestSeveralSchedulersAndJobsInOneProcess(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		var ins []*instance
		for _, name := range []string{"a", "c", "d"} {
			in := b.prepare(name, w, core.JobConfig{Name: "first", Cron: "* * * * * ?", Shards: 6})
			require.NoError(b, in.Add(newWitness(), core.JobConfig{Name: "second", Cron: "@every 500ms", Shards: 3}))
			require.NoError(b, in.Start(b.Context()))
			ins = append(ins, in)
		}
		late := core.JobConfig{Name: "third", Cron: "* * * * * ?", Shards: 3}
		for _, in := range ins {
			require.NoError(b, in.Add(newWitness(), late), "a job may join after Start")
		}
		b.until("all jobs are shared", func() bool {
			for _, in := range ins {
				for i, want := range []int{2, 1, 1} {
					if len(in.State().Jobs[i].Items) != want {
						return false
					}
				}
			}
			return true
		})
		before := w.count()
		b.until("they run", func() bool { return w.count() >= before+12 })
		for _, in := range ins {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
	})
}

// BenchmarkIdleJobs reports what an idle job costs in one process.
func BenchmarkIdleJobs(b *testing.B) {
	const jobs = 10_000
	for b.Loop() {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry("shop")
		s := core.New(reg)
		for i := range jobs {
			if err := s.Add(newWitness(), core.JobConfig{Name: fmt.Sprintf("job-%d", i), Cron: "0 0 0 1 1 ? 2099", Shards: 1}); err != nil {
				b.Fatal(err)
			}
		}
		before := heap()
		begun := time.Now()
		if err := s.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begun).Seconds()/jobs*1e6, "start-µs/job")
		b.ReportMetric(float64(heap()-before)/jobs, "heap+server-B/job")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
		if err := s.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = reg.Close()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
