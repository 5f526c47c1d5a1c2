package core_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
	"github.com/elasticron/elasticron/registry/memory"
)

// benchmarked are the registries that benchmarks run on: in the process, and an etcd in
// the process with its data in a temporary folder.
var benchmarked = []struct {
	name string
	open func(b *testing.B) registry.Registry
}{
	{"memory", func(b *testing.B) registry.Registry {
		b.Helper()
		reg := memory.NewServer(memory.Config{}).Registry("shop")
		b.Cleanup(func() { _ = reg.Close() })
		return reg
	}},
	{"etcd", func(b *testing.B) registry.Registry {
		b.Helper()
		srv, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir()})
		require.NoError(b, err)
		b.Cleanup(func() { _ = srv.Close() })
		reg, err := srv.Registry(b.Context(), etcd.Config{Namespace: "shop"})
		require.NoError(b, err)
		b.Cleanup(func() { _ = reg.Close() })
		return reg
	}},
}

// startJobs starts jobs of one item each, and returns once all have run.
func startJobs(b *testing.B, reg registry.Registry, jobs int, cron string, run func(core.Shard)) {
	b.Helper()
	first := sync.WaitGroup{}
	first.Add(jobs)
	s := core.New(reg)
	for i := range jobs {
		var ran atomic.Bool
		work := core.JobFunc(func(_ context.Context, s core.Shard) error {
			if !ran.Swap(true) {
				first.Done()
			}
			run(s)
			return nil
		})
		require.NoError(b, s.Add(work, core.JobConfig{Name: fmt.Sprintf("job-%d", i), Cron: cron, Shards: 1, ReconcileInterval: -1}))
	}
	require.NoError(b, s.Start(b.Context()))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b, s.Stop(ctx))
	})
	first.Wait()
}

// BenchmarkRecordedRuns reports how many runs a second are recorded where a thousand jobs
// of one item are due again as soon as they can: how much the record lets through.
func BenchmarkRecordedRuns(b *testing.B) {
	const jobs, window = 1000, 5 * time.Second
	for _, r := range benchmarked {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				var runs atomic.Int64
				startJobs(b, r.open(b), jobs, "@delay 10ms", func(core.Shard) { runs.Add(1) })
				before, begun, used := runs.Load(), time.Now(), processorTime(b)
				<-time.After(window)
				n := float64(runs.Load() - before)
				b.ReportMetric(n/time.Since(begun).Seconds(), "runs/s")
				b.ReportMetric(float64((processorTime(b)-used).Microseconds())/n, "µs-CPU/run")
			}
		})
	}
}

// BenchmarkJobsDueAtOnce reports how late the functions of many jobs begin that are due at
// one instant.
func BenchmarkJobsDueAtOnce(b *testing.B) {
	const jobs, fires = 2000, 3
	for _, r := range benchmarked {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				var mu sync.Mutex
				var late []time.Duration
				measured := false
				startJobs(b, r.open(b), jobs, "0/3 * * * * ?", func(s core.Shard) {
					by := time.Since(s.Due)
					mu.Lock()
					defer mu.Unlock()
					if measured {
						late = append(late, by)
					}
				})
				runtime.GC()
				mu.Lock()
				measured = true
				mu.Unlock()
				for n := 0; n < jobs*fires; {
					<-time.After(50 * time.Millisecond)
					mu.Lock()
					n = len(late)
					mu.Unlock()
				}
				mu.Lock()
				slices.Sort(late)
				b.ReportMetric(late[len(late)/2].Seconds()*1000, "p50-ms")
				b.ReportMetric(late[len(late)*99/100].Seconds()*1000, "p99-ms")
				mu.Unlock()
			}
		})
	}
}

// BenchmarkStart reports how long it takes until new jobs, and jobs that the registry
// knows, own their items, and the processor time for each, the registry's included.
func BenchmarkStart(b *testing.B) {
	const jobs = 2000
	for _, r := range benchmarked {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				reg := r.open(b)
				for _, of := range []string{"new", "known"} {
					s := core.New(reg)
					for i := range jobs {
						require.NoError(b, s.Add(core.JobFunc(func(context.Context, core.Shard) error { return nil }),
							core.JobConfig{Name: fmt.Sprintf("job-%d", i), Cron: "0 0 0 1 1 ? 2099", Shards: 1, ReconcileInterval: -1}))
					}
					begun, used := time.Now(), processorTime(b)
					ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
					require.NoError(b, s.Start(ctx))
					b.ReportMetric(time.Since(begun).Seconds(), of+"-s")
					for slices.ContainsFunc(s.State().Jobs, func(j core.JobState) bool { return len(j.Items) == 0 }) {
						<-time.After(50 * time.Millisecond)
					}
					b.ReportMetric(time.Since(begun).Seconds(), of+"-owned-s")
					b.ReportMetric(float64((processorTime(b)-used).Microseconds())/jobs, of+"-µs-CPU/job")
					require.NoError(b, s.Stop(ctx))
					cancel()
				}
			}
		})
	}
}
