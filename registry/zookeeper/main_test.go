package zookeeper_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

const sessionTimeout = harness.SessionTimeout

func TestMain(m *testing.M) { goleak.VerifyTestMain(testbed.ClosingShared(m)) }

// What the tests of both services use.
var (
	within     = harness.Within
	commit     = harness.Commit
	eventually = harness.Eventually
	follow     = harness.Follow
)

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
