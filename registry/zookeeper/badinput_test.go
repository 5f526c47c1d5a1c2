package zookeeper_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

func TestOpenOfAServerTooOld(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Version: "3.4.14"})
	_, err := zookeeper.Open(within(t, 20*time.Second), zookeeper.Config{Servers: bed.Addrs(), Namespace: "test"})
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.EqualError(t, err, "zookeeper: invalid request: the server "+bed.Addrs()[0]+" is older than ZooKeeper 3.5; use 3.5 to 3.9")
}

// A login on one member and none on another is an error at once, and no member
// waits for a lock whose queue it may not read.
func TestALoginOnOneMemberOnly(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	world, _ := open(t, bed)
	eva, _ := open(t, bed, as("eva", "s3cret"))
	ctx := within(t, 30*time.Second)

	t.Run("her directory", func(t *testing.T) {
		lock, err := eva.Lock(ctx, "/hers", nil)
		require.NoError(t, err)
		require.NoError(t, world.Sync(ctx))
		_, err = world.Lock(ctx, "/hers", nil)
		require.ErrorIs(t, err, registry.ErrDenied)
		require.ErrorContains(t, err, "lock /hers")
		require.ErrorContains(t, err, "a client without a login")
		require.NoError(t, lock.Release(ctx))
	})
	t.Run("a directory of everybody's", func(t *testing.T) {
		require.NoError(t, registry.EnsurePath(ctx, world, "/all"))
		lock, err := eva.Lock(ctx, "/all", nil)
		require.NoError(t, err)
		require.NoError(t, world.Sync(ctx))
		_, err = world.Lock(ctx, "/all", nil)
		require.ErrorIs(t, err, registry.ErrDenied)
		require.NoError(t, lock.Release(ctx))
		// Who was refused leaves nothing in the queue: it goes in the background (latch).
		require.Eventually(t, func() bool {
			names, err := eva.Children(ctx, "/all")
			return err == nil && len(names) == 0
		}, 20*time.Second, 2*time.Millisecond)
		lock, err = world.Lock(ctx, "/all", nil)
		require.NoError(t, err)
		require.NoError(t, lock.Release(ctx))
	})
}

// fakeTime is Debian's library that shifts a process's clock, on any architecture.
const fakeTime = "/usr/lib/*/faketime/libfaketime.so.1"

// The service's clock is not ours: nothing is computed with it.
func TestAServerWhoseClockIsAnHourOff(t *testing.T) {
	found, err := filepath.Glob(fakeTime)
	require.NoError(t, err)
	if len(found) == 0 {
		if os.Getenv(testbed.RequiredEnv) == "1" {
			t.Fatal("Debian's package faketime is missing")
		}
		t.Skip("Debian's package faketime is missing: a server with a wrong clock cannot be started")
	}
	for _, shift := range []string{"+3600", "-3600"} {
		t.Run(shift, func(t *testing.T) {
			t.Setenv("LD_PRELOAD", found[0])
			t.Setenv("FAKETIME", shift)
			t.Setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
			bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Way: "process"})
			raw, _, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogger(silent{}))
			require.NoError(t, err)
			defer raw.Close()
			_, err = raw.Create("/when", nil, 0, worldACL)
			require.NoError(t, err)
			_, stat, err := raw.Get("/when")
			require.NoError(t, err)
			off := time.Until(time.UnixMilli(stat.Ctime))
			require.InDelta(t, time.Hour.Seconds(), off.Abs().Seconds(), 60, "the fault met nothing")

			s, client := open(t, bed)
			other, _ := open(t, bed)
			ctx := within(t, 30*time.Second)
			commit(t, s, registry.CreateEphemeral("/e", nil))
			f := follow(t, other)
			require.NoError(t, f.Watcher.Add("/e", registry.Self))
			f.Until(10*time.Second, "the node", func() bool { return f.Synced == 1 && f.Nodes["/e"].Exists() })
			left := time.Until(s.Deadline())
			require.Positive(t, left)
			require.LessOrEqual(t, left, sessionTimeout)
			heal := client.Blackhole(testbed.Both)
			defer heal()
			<-s.Done()
			require.True(t, f.Nodes["/e"].Exists(), "Done comes first")
			f.Until(10*time.Second, "expiry", func() bool { return !f.Nodes["/e"].Exists() })
			require.NoError(t, other.Sync(ctx))
		})
	}
}

// Somebody else's node may be larger than what can be written here: it is read and
// watched, and disturbs nothing.
func TestANodeOverAMebibyte(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Java: []string{"-Djute.maxbuffer=8388608"}})
	s, _ := open(t, bed)
	raw, _, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogger(silent{}), zk.WithMaxConnBufferSize(8<<20))
	require.NoError(t, err)
	defer raw.Close()
	big := make([]byte, 3<<20)
	_, err = raw.Create("/"+t.Name()+"/big", big, 0, worldACL)
	require.NoError(t, err)
	ctx := within(t, 20*time.Second)
	require.NoError(t, s.Sync(ctx))
	nodes, err := s.Get(ctx, "/big")
	require.NoError(t, err)
	require.Len(t, nodes[0].Value, len(big))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/", registry.Children))
	f.Until(10*time.Second, "the node", func() bool { return f.Synced == 1 && len(f.Nodes["/big"].Value) == len(big) })
	_, err = s.Commit(ctx, registry.Set("/big", make([]byte, 1<<20), registry.AnyVersion))
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.ErrorContains(t, err, "at most 262144 fit")
	commit(t, s, registry.Set("/big", []byte("small"), 0))
	require.NoError(t, s.Close(context.Background()))
}
