package zookeeper_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// sessionTimeout is short, since many tests wait for it, and not the shortest, so
// that a busy machine ends no session.
const sessionTimeout = 2 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbed.ClosingShared(m)) }

// within bounds every wait of a test.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a registry on a client of its own, below a chroot of the test's,
// which is empty at first.
func connect(t testing.TB, bed *testbed.ZooKeeper, change ...func(*zookeeper.Config)) (*zookeeper.Registry, *testbed.ZooKeeperClient) {
	t.Helper()
	if _, known := wiped.LoadOrStore(t, true); !known {
		wipe(t, bed)
	}
	client := bed.Client()
	cfg := zookeeper.Config{
		Servers: client.Addrs(), Namespace: "test", SessionTimeout: sessionTimeout,
		Chroot: "/" + t.Name(),
	}
	for _, c := range change {
		c(&cfg)
	}
	reg, err := zookeeper.Open(within(t, 20*time.Second), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	return reg, client
}

// wiped are the tests whose chroot has been emptied.
var wiped sync.Map

// wipe removes what an earlier run of the test has left on a server that lives on.
func wipe(t testing.TB, bed *testbed.ZooKeeper) {
	t.Helper()
	cfg := zookeeper.Config{Servers: bed.Addrs(), Namespace: "test"}
	as("eva", "s3cret")(&cfg)
	ctx := within(t, 20*time.Second)
	reg, err := zookeeper.Open(ctx, cfg)
	require.NoError(t, err)
	defer reg.Close()
	s, err := reg.Open(ctx)
	require.NoError(t, err)
	require.NoError(t, registry.DeleteTree(ctx, s, "/"+t.Name()))
}

// as logs in.
func as(user, password string) func(*zookeeper.Config) {
	return func(c *zookeeper.Config) { c.Username, c.Password = user, password }
}

// open opens a session on a client of its own.
func open(t testing.TB, bed *testbed.ZooKeeper, change ...func(*zookeeper.Config)) (registry.Session, *testbed.ZooKeeperClient) {
	t.Helper()
	reg, client := connect(t, bed, change...)
	return session(t, reg), client
}

func session(t testing.TB, reg *zookeeper.Registry) registry.Session {
	t.Helper()
	s, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	return s
}

// commit must succeed.
func commit(t testing.TB, s registry.Session, ops ...registry.Op) registry.Revision {
	t.Helper()
	rev, err := s.Commit(within(t, 20*time.Second), ops...)
	require.NoError(t, err)
	return rev
}

// eventually polls until ok, or fails.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(d)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(t, "not within "+d.String(), what)
		}
	}
}

// follower keeps what a watcher delivers.
type follower struct {
	t      testing.TB
	w      registry.Watcher
	nodes  map[string]registry.Node
	synced int
	events int
}

func follow(t testing.TB, s registry.Session) *follower {
	t.Helper()
	w, err := s.Watch(within(t, 10*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return &follower{t: t, w: w, nodes: map[string]registry.Node{}}
}

// until takes events until ok, and checks that no path goes back.
func (f *follower) until(d time.Duration, what string, ok func() bool) {
	f.t.Helper()
	ctx := within(f.t, d)
	for !ok() {
		events, err := f.w.Next(ctx)
		require.NoError(f.t, err, "waiting for %s", what)
		for _, ev := range events {
			f.events++
			if ev.Synced {
				f.synced++
				continue
			}
			old := f.nodes[ev.Node.Path]
			require.False(f.t, ev.Node.Exists() && ev.Node.Modified < old.Modified, "%s went back", ev.Node.Path)
			f.nodes[ev.Node.Path] = ev.Node
		}
	}
}
