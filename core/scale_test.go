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
		one, many := goroutines(1), goroutines(500)
		require.LessOrEqual(t, many, one, "%d goroutines for one job, %d for 500", one, many)
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
