package core_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// BenchmarkFailover is how long it takes from the registry's expiry of a process that was
// killed, as another client sees it, to the first instruction of what the process ran: of
// the first of its items and of the last. The leader was the survivor, or the one killed.
func BenchmarkFailover(b *testing.B) {
	const few, many = 4, 2000 // half of them is the victim's
	for name, open := range map[string]func(*testing.B) string{"etcd": urlOfEtcd, "zookeeper": urlOfZooKeeper} {
		b.Run(name, func(b *testing.B) {
			url := open(b)
			for _, c := range []struct {
				name         string
				items, kills int
				leads        bool
			}{
				{"2 items of a follower", few, 25, false},
				{"2 items of the leader", few, 25, true},
				{"1000 items of a follower", many, 5, false},
				{"1000 items of the leader", many, 5, true},
			} {
				b.Run(c.name, func(b *testing.B) {
					var first, last []time.Duration
					for b.Loop() {
						for range c.kills {
							began := killOne(b, url, c.items, c.leads)
							first, last = append(first, began[0]), append(last, began[len(began)-1])
						}
					}
					b.Log("| what | kills | min, ms | p50 | p99 | max |")
					b.Log(row("the first of "+c.name+", "+name, first))
					b.Log(row("the last of "+c.name+", "+name, last))
					b.ReportMetric(first[len(first)/2].Seconds()*1000, "first-p50-ms")
					b.ReportMetric(last[len(last)/2].Seconds()*1000, "last-p50-ms")
				})
			}
		})
	}
}

func urlOfEtcd(b *testing.B) string {
	b.Helper()
	srv, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir()})
	require.NoError(b, err)
	b.Cleanup(func() { _ = srv.Close() })
	return "etcd://" + srv.Endpoint() + "/shop?session-timeout=2s"
}

func urlOfZooKeeper(b *testing.B) string {
	b.Helper()
	zk := testbed.SharedZooKeeper(b)
	return fmt.Sprintf("zookeeper://%s/shop?session-timeout=2s&chroot=/failover-%d", strings.Join(zk.Addrs(), ","), os.Getpid())
}

// row is a row of the table: the least, the median, the 99th percentile (of fewer than a
// hundred the greatest) and the greatest, in milliseconds.
func row(what string, took []time.Duration) string {
	slices.Sort(took)
	text := fmt.Sprintf("| %s | %d |", what, len(took))
	for _, at := range []int{0, len(took) / 2, (len(took)*99+99)/100 - 1, len(took) - 1} {
		text += fmt.Sprintf(" %.1f |", took[at].Seconds()*1000)
	}
	return text
}

// benchJob is the job of one kill: each has its own.
func benchJob(name string, items int) core.JobConfig {
	return core.JobConfig{Name: name, Cron: "* * * * * ?", Shards: items, Concurrency: items, Failover: true, Strategy: "STICKY"}
}

var kills int

// killOne kills a process while half of the items run in it, and returns when each began
// again, after the end of its session, the first at first.
func killOne(b *testing.B, url string, items int, leads bool) []time.Duration {
	b.Helper()
	kills++
	job := fmt.Sprintf("job-%d", kills)
	reg, err := registry.Open(b.Context(), url)
	require.NoError(b, err)
	defer reg.Close()
	var mu sync.Mutex
	var again []time.Time
	s := core.New(reg, core.WithLogger(nil), core.WithInstanceName("survivor"))
	require.NoError(b, s.Add(core.JobFunc(func(_ context.Context, s core.Shard) error {
		if s.Source == core.SourceFailover {
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			again = append(again, now)
		}
		return nil
	}), benchJob(job, items)))
	start := func() {
		require.NoError(b, s.Start(b.Context()))
		waitFor(b, func() bool { return len(s.State().Jobs[0].Items) > 0 })
	}
	if !leads {
		start()
	}
	v := startVictim(b, url, job, items)
	if leads {
		waitFor(b, func() bool { return v.runs(items) })
		start()
	}
	defer func() { require.NoError(b, s.Stop(context.WithoutCancel(b.Context()))) }()
	waitFor(b, func() bool { return v.runs(items/2) && len(s.State().Jobs[0].Items) == items/2 })
	st := s.State().Jobs[0]
	id := st.Instances[slices.IndexFunc(st.Instances, func(id string) bool { return id != st.Instance })]
	require.Equal(b, leads, st.Leader == id)
	expired := whenGone(b, reg, "/shop/"+job+"/instances/"+id)
	require.NoError(b, v.cmd.Process.Kill())
	at := <-expired
	waitFor(b, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(again) == items/2
	})
	mu.Lock()
	defer mu.Unlock()
	took := make([]time.Duration, len(again))
	for i, t := range again {
		took[i] = t.Sub(at)
	}
	slices.Sort(took)
	return took
}

// waitFor polls for at most a minute.
func waitFor(b *testing.B, cond func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); {
		require.True(b, time.Now().Before(deadline), "nothing got on for a minute")
		<-time.After(5 * time.Millisecond)
	}
}

// whenGone sends when a node is seen to be gone, by a session of its own.
func whenGone(b *testing.B, reg registry.Registry, path string) <-chan time.Time {
	b.Helper()
	ses, err := reg.Open(b.Context())
	require.NoError(b, err)
	w, err := ses.Watch(b.Context())
	require.NoError(b, err)
	require.NoError(b, w.Add(path, registry.Self))
	events, err := w.Next(b.Context())
	require.NoError(b, err)
	require.True(b, events[0].Node.Exists(), path)
	gone := make(chan time.Time, 1)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		for {
			events, err := w.Next(b.Context())
			if err != nil {
				return
			}
			for _, e := range events {
				if !e.Synced && !e.Node.Exists() {
					gone <- time.Now()
					return
				}
			}
		}
	}()
	b.Cleanup(func() {
		_ = w.Close()
		<-joined
		_ = ses.Close(context.WithoutCancel(b.Context()))
	})
	return gone
}

// failoverVictim makes this test binary an instance that runs what it owns until it is wanted
// elsewhere, or the process is killed.
const failoverVictim = "ELASTICRON_TEST_FAILOVER_VICTIM"

func TestFailoverVictim(t *testing.T) {
	task := os.Getenv(failoverVictim)
	if task == "" {
		return // not a test of its own: BenchmarkFailover runs it
	}
	var url, job string
	var items int
	_, err := fmt.Sscan(task, &url, &job, &items)
	require.NoError(t, err)
	reg, err := registry.Open(t.Context(), url)
	require.NoError(t, err)
	s := core.New(reg, core.WithInstanceName("victim"))
	require.NoError(t, s.Add(core.JobFunc(func(ctx context.Context, s core.Shard) error {
		fmt.Printf("+%d\n", s.Item) //nolint:forbidigo // its parent reads this
		select {
		case <-ctx.Done():
		case <-s.Yield:
		}
		fmt.Printf("-%d\n", s.Item) //nolint:forbidigo // its parent reads this
		return nil
	}), benchJob(job, items)))
	require.NoError(t, s.Start(t.Context()))
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with its parent
}

// A victim is a process that is to be killed.
type victim struct {
	cmd     *exec.Cmd
	mu      sync.Mutex
	running map[string]bool
}

func startVictim(b *testing.B, url, job string, items int) *victim {
	b.Helper()
	v := &victim{cmd: exec.Command(os.Args[0], "-test.run", "^TestFailoverVictim$"), running: map[string]bool{}}
	v.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", failoverVictim, url, job, items))
	v.cmd.Stderr = os.Stderr
	in, err := v.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := v.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, v.cmd.Start())
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			v.hear(lines.Text())
		}
	}()
	b.Cleanup(func() {
		_ = in.Close()
		_ = v.cmd.Process.Kill()
		<-joined
		_ = v.cmd.Wait()
	})
	return v
}

func (v *victim) hear(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if item, begun := strings.CutPrefix(line, "+"); begun {
		v.running[item] = true
	} else {
		delete(v.running, strings.TrimPrefix(line, "-"))
	}
}

// runs reports whether so many items run in it.
func (v *victim) runs(items int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.running) == items
}
