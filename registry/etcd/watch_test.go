package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

func patient(c *etcd.Config) { c.SessionTimeout = 60 * time.Second }

// What happened while nobody listened, and was compacted since, is found by
// reading again: changes, creations, deletions, one under an old name.
func TestCompactionWhileAway(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, patient)
	other, _ := open(t, bed, patient)
	commit(t, other, registry.Create("/d", nil), registry.Create("/d/same", nil), registry.Create("/d/changed", nil),
		registry.Create("/d/deleted", nil), registry.Create("/d/again", nil), registry.Create("/self", nil))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/d", registry.Children))
	require.NoError(t, f.Watcher.Add("/self", registry.Self))
	require.NoError(t, f.Watcher.Add("/never", registry.Self))
	f.Until(10*time.Second, "the present state", func() bool { return f.Synced == 3 })
	seen := f.Events

	heal := client.Refuse()
	commit(t, other, registry.Set("/d/changed", []byte("x"), 0), registry.Delete("/d/deleted", 0),
		registry.Delete("/d/again", 0), registry.Delete("/self", 0), registry.Create("/d/new", nil))
	commit(t, other, registry.Create("/d/again", []byte("2")))
	require.NoError(t, bed.Compact())
	heal()

	f.Until(10*time.Second, "the difference", func() bool {
		return string(f.Nodes["/d/changed"].Value) == "x" && !f.Nodes["/d/deleted"].Exists() && !f.Nodes["/self"].Exists() &&
			f.Nodes["/d/new"].Exists() && string(f.Nodes["/d/again"].Value) == "2"
	})
	require.Equal(t, 3, f.Synced, "Synced comes once")
	require.Equal(t, seen+5, f.Events, "what is the same is not repeated")

	// And it goes on from there.
	commit(t, other, registry.Create("/never", nil), registry.Set("/d/new", []byte("y"), 0))
	f.Until(10*time.Second, "changes after it", func() bool {
		return f.Nodes["/never"].Exists() && string(f.Nodes["/d/new"].Value) == "y"
	})
}

// What has changed meanwhile may be more than etcd puts in a message by itself.
func TestALargeBacklog(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, patient)
	other, _ := open(t, bed, patient)
	const n = 16
	ops := []registry.Op{registry.Create("/d", nil)}
	for i := range n {
		ops = append(ops, registry.Create(fmt.Sprint("/d/", i), nil))
	}
	commit(t, other, ops...)
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/d", registry.Children))
	f.Until(10*time.Second, "the present state", func() bool { return f.Synced == 1 })

	heal := client.Refuse()
	big := bytes.Repeat([]byte("x"), 240<<10)
	for i := range n {
		commit(t, other, registry.Set(fmt.Sprint("/d/", i), big, 0))
	}
	commit(t, other, registry.Delete("/d/0", 1))
	heal()
	f.Until(20*time.Second, "all of it", func() bool {
		for i := 1; i < n; i++ {
			if len(f.Nodes[fmt.Sprint("/d/", i)].Value) != len(big) {
				return false
			}
		}
		return !f.Nodes["/d/0"].Exists()
	})
}

// The connection breaks again and again while everything changes: the last
// state arrives, and nothing goes back.
func TestWatchThroughManyDrops(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, patient)
	other, _ := open(t, bed, patient)
	commit(t, other, registry.Create("/d", nil), registry.Create("/d/n", nil))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/d", registry.Children))
	const rounds, perRound = 15, 20
	version := registry.Version(0)
	for round := range rounds {
		for range perRound {
			commit(t, other, registry.Set("/d/n", fmt.Append(nil, version+1), version))
			version++
		}
		commit(t, other, registry.Create(fmt.Sprint("/d/", round), nil))
		if round > 0 {
			commit(t, other, registry.Delete(fmt.Sprint("/d/", round-1), 0))
		}
		client.Drop()
		if round%5 == 4 {
			require.NoError(t, bed.Compact())
		}
	}
	f.Until(20*time.Second, "the last state", func() bool {
		present := 0
		for _, n := range f.Nodes {
			if n.Exists() {
				present++
			}
		}
		return f.Nodes["/d/n"].Version == version && f.Nodes[fmt.Sprint("/d/", rounds-1)].Exists() && present == 2
	})
	require.NoError(t, s.Err())
	require.Positive(t, client.Hits(), "void: nothing was dropped")
}

func TestWatcherIsStoppedEverywhere(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, _ := open(t, bed)
	idle, err := s.Watch(within(t, time.Second))
	require.NoError(t, err)
	require.NoError(t, idle.Close())
	require.NoError(t, idle.Close())
	require.ErrorIs(t, idle.Add("/x", registry.Self), registry.ErrClosed)
	_, err = idle.Next(within(t, time.Second))
	require.ErrorIs(t, err, registry.ErrClosed)

	w, err := s.Watch(within(t, time.Second))
	require.NoError(t, err)
	require.NoError(t, w.Add("/x", registry.Self))
	waits := make(chan error)
	go func() {
		for {
			if _, err := w.Next(context.Background()); err != nil {
				waits <- err
				return
			}
		}
	}()
	require.NoError(t, s.Close(within(t, 5*time.Second)))
	require.ErrorIs(t, <-waits, registry.ErrSessionLost)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Add("relative", registry.Self), registry.ErrInvalid)
	require.ErrorIs(t, w.Add("/x", 7), registry.ErrInvalid)
}

// The cost of a target, which doc.go states.
func TestTargetCost(t *testing.T) {
	const n = 10_000
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, _ := open(t, bed, patient)
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/first", registry.Self))
	f.Until(10*time.Second, "the first target", func() bool { return f.Synced == 1 })
	goroutines, heap := runtime.NumGoroutine(), heapInUse()
	start := time.Now()
	for i := range n {
		require.NoError(t, f.Watcher.Add(fmt.Sprintf("/job/%d/leader/election", i), registry.Self))
	}
	f.Until(60*time.Second, "all targets", func() bool { return f.Synced == n+1 })
	took := time.Since(start)
	// The last watch in order is live: so are all.
	last := fmt.Sprintf("/elasticron/4/job/%d/leader/election", n-1)
	_, err := bed.Admin().Put(within(t, 10*time.Second), last, "x")
	require.NoError(t, err)
	f.Until(30*time.Second, "a change", func() bool { return f.Nodes[fmt.Sprintf("/job/%d/leader/election", n-1)].Exists() })
	f.Nodes = nil
	t.Logf("%d targets in %v: %d goroutines more, %d bytes each, client and server together",
		n, took, runtime.NumGoroutine()-goroutines, (heapInUse()-heap)/n)
	require.Less(t, runtime.NumGoroutine()-goroutines, 20)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// A watch is asked for from now on, and the state is read once it stands: one from a revision that has passed
// waits at the server for its turn. Few that have a state go on from it.
func TestAWatchBeginsNow(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	var asked, past atomic.Int64
	spy := grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, d, cc, m, o...)
		return &createSpy{ClientStream: stream, asked: &asked, past: &past}, err
	})
	s, client := open(t, bed, patient, func(c *etcd.Config) { c.DialOptions = append(c.DialOptions, spy) })
	other, _ := open(t, bed, patient)
	commit(t, other, registry.Create("/d", nil))
	f := follow(t, s)
	const n = 50
	for i := range n {
		require.NoError(t, f.Watcher.Add(fmt.Sprint("/d/", i), registry.Self))
		commit(t, other, registry.Create(fmt.Sprint("/d/", i), nil))
	}
	f.Until(10*time.Second, "all are shown", func() bool { return f.Synced == n && len(f.Nodes) == n && f.Nodes["/d/49"].Exists() })
	require.GreaterOrEqual(t, asked.Load(), int64(n))
	require.Zero(t, past.Load())
	heal := client.Refuse()
	commit(t, other, registry.Delete("/d/7", 0))
	heal()
	f.Until(10*time.Second, "what has changed meanwhile", func() bool { return !f.Nodes["/d/7"].Exists() })
	require.Positive(t, past.Load(), "a few go on from the state that is known")
}

type createSpy struct {
	grpc.ClientStream
	asked, past *atomic.Int64
}

func (s *createSpy) SendMsg(m any) error {
	if r, ok := m.(*pb.WatchRequest); ok && r.GetCreateRequest() != nil {
		s.asked.Add(1)
		if r.GetCreateRequest().StartRevision != 0 {
			s.past.Add(1)
		}
	}
	return s.ClientStream.SendMsg(m)
}

// A store has no lease, and watches all the same.
func TestAStoreWatches(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	reg, _ := connect(t, bed)
	s, _ := open(t, bed)
	ctx := within(t, 20*time.Second)
	store, err := reg.OpenStore(ctx)
	require.NoError(t, err)
	w, err := store.Watch(ctx)
	require.NoError(t, err)
	require.NoError(t, w.Add("/a", registry.Self))
	commit(t, s, registry.Create("/a", nil))
	for seen := false; !seen; {
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			seen = seen || ev.Node.Exists()
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, store.Close(ctx))
}
