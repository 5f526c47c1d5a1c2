package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// BenchmarkFire is what adapters are for: how long a recorded fire takes, from its due
// time to the last recorded end, of a thousand jobs that fire together, and of one job
// of a thousand items. One server, without a disk to wait for; the functions do nothing.
func BenchmarkFire(b *testing.B) {
	for name, open := range map[string]func(*testing.B) registry.Registry{"etcd": benchEtcd, "zookeeper": benchZooKeeper} {
		b.Run(name, func(b *testing.B) {
			b.Run("1000jobs", func(b *testing.B) { benchFires(b, open(b), 1000, 1) })
			b.Run("1000items", func(b *testing.B) { benchFires(b, open(b), 1, 1000) })
		})
	}
}

const (
	benchFireCount = 15
	benchTimeout   = 30 * time.Second // a full machine ends no session
)

func benchEtcd(b *testing.B) registry.Registry {
	b.Helper()
	bed := testbed.StartEtcd(b, testbed.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), benchTimeout)
	defer cancel()
	reg, err := etcd.Open(ctx, etcd.Config{Endpoints: bed.Endpoints(), Namespace: "bench", SessionTimeout: benchTimeout})
	require.NoError(b, err)
	return reg
}

func benchZooKeeper(b *testing.B) registry.Registry {
	b.Helper()
	bed := testbed.StartZooKeeper(b, testbed.ZooKeeperOptions{Java: []string{"-XX:TieredStopAtLevel=4", "-Xmx1g"}})
	ctx, cancel := context.WithTimeout(context.Background(), benchTimeout)
	defer cancel()
	reg, err := zookeeper.Open(ctx, zookeeper.Config{Servers: bed.Addrs(), Namespace: "bench", SessionTimeout: benchTimeout})
	require.NoError(b, err)
	return reg
}

// fires notes when the last item of each fire had ended.
type fires struct {
	mu    sync.Mutex
	count map[time.Time]int
	whole map[time.Time]time.Duration
	want  int
}

func (f *fires) hear(e event.Event) {
	ended, ok := e.(event.ItemEnded)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	due := ended.Due.UTC()
	if f.count[due]++; f.count[due] == f.want {
		f.whole[due] = time.Since(due)
	}
}

func (f *fires) took() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []time.Duration
	for _, d := range f.whole {
		all = append(all, d)
	}
	slices.Sort(all)
	return all
}

func benchFires(b *testing.B, reg registry.Registry, jobs, items int) {
	b.Helper()
	defer reg.Close()
	for b.Loop() {
		f := &fires{count: map[time.Time]int{}, whole: map[time.Time]time.Duration{}, want: jobs * items}
		s := core.New(reg, core.WithListener(f.hear), core.WithLogger(slog.New(slog.DiscardHandler)))
		for i := range jobs {
			nothing := core.JobFunc(func(context.Context, core.Shard) error { return nil })
			require.NoError(b, s.Add(nothing, core.JobConfig{
				Name: fmt.Sprint("job", i), Cron: "0/3 * * * * ?", TimeZone: "UTC", Shards: items, Concurrency: 1000,
			}))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		require.NoError(b, s.Start(ctx))
		tick := time.NewTicker(100 * time.Millisecond)
		for len(f.took()) < benchFireCount {
			select {
			case <-tick.C:
			case <-ctx.Done():
				require.NoError(b, ctx.Err(), "%d fires", len(f.took()))
			}
		}
		tick.Stop()
		took := f.took()
		require.NoError(b, s.Stop(ctx))
		cancel()
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(took[len(took)/4].Microseconds())/1000, "ms-p25")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
	}
}
