package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// What a user creates is hers alone, as Curator and ElasticJob do it.
func TestLoginOwnsWhatItCreates(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	world, _ := open(t, bed) // makes the chroot, for everybody
	eva, _ := open(t, bed, as("eva", "s3cret"))
	ctx := within(t, 30*time.Second)
	commit(t, eva, registry.Create("/hers", []byte("x")), registry.Create("/hers/child", nil), registry.CreateEphemeral("/e", nil))

	raw, _, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer raw.Close()
	require.NoError(t, raw.AddAuth("digest", []byte("eva:s3cret")))
	acl, _, err := raw.GetACL("/" + t.Name() + "/hers")
	require.NoError(t, err)
	require.Equal(t, zk.DigestACL(zk.PermAll, "eva", "s3cret"), acl)
	acl, _, err = raw.GetACL("/" + t.Name())
	require.NoError(t, err)
	require.Equal(t, zk.WorldACL(zk.PermAll), acl)

	require.NoError(t, world.Sync(ctx))
	_, err = world.Get(ctx, "/hers")
	require.ErrorIs(t, err, registry.ErrDenied)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = world.Children(ctx, "/hers")
	require.ErrorIs(t, err, registry.ErrDenied)
	for _, op := range []registry.Op{
		registry.Set("/hers", nil, 9), registry.Create("/hers/x", nil), registry.Delete("/hers/child", 9), registry.Check("/hers", 9),
	} {
		_, err = world.Commit(ctx, registry.Check("/", -1))
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, err = world.Commit(ctx, op)
		require.ErrorIs(t, err, registry.ErrDenied, "%v: permission comes before version", op)
		require.ErrorContains(t, err, "a client without a login")
	}
	_, err = world.Commit(ctx, registry.Set("/hers/none", nil, 9))
	require.ErrorIs(t, err, registry.ErrNotFound)

	// A target that is refused says so once, and the others go on.
	f := follow(t, world)
	require.NoError(t, f.Watcher.Add("/hers", registry.Self))
	_, err = f.Watcher.Next(ctx)
	require.ErrorIs(t, err, registry.ErrDenied)
	require.NoError(t, f.Watcher.Add("/hers", registry.Children))
	_, err = f.Watcher.Next(ctx)
	require.ErrorIs(t, err, registry.ErrDenied)
	commit(t, world, registry.Create("/free", []byte("1")))
	require.NoError(t, f.Watcher.Add("/free", registry.Self))
	f.Until(10*time.Second, "another target", func() bool { return string(f.Nodes["/free"].Value) == "1" })
}

// A root that nobody may read refuses the check of a heartbeat, which is as good.
func TestHeartbeatsOnARootThatIsDenied(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{})
	s, _ := open(t, bed) // makes the chroot
	raw, _, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer raw.Close()
	_, err = raw.SetACL("/", zk.DigestACL(zk.PermAll, "eva", "s3cret"), -1)
	require.NoError(t, err)
	require.NoError(t, raw.AddAuth("digest", []byte("eva:s3cret")))
	opened := s.Deadline()
	eventually(t, 3*sessionTimeout, "heartbeats to move Deadline", func() bool {
		require.NoError(t, s.Err())
		return s.Deadline().Sub(opened) > sessionTimeout
	})
	_, err = raw.SetACL("/", zk.WorldACL(zk.PermAll), -1)
	require.NoError(t, err)
}

// A reconnect shows the password again, before anything else.
func TestLoginSurvivesADrop(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	_, _ = open(t, bed)
	eva, client := open(t, bed, as("eva", "s3cret"))
	commit(t, eva, registry.Create("/hers", []byte("0")))
	f := follow(t, eva)
	require.NoError(t, f.Watcher.Add("/hers", registry.Self))
	f.Until(10*time.Second, "the node", func() bool { return f.Synced == 1 })
	for range 5 {
		client.Drop()
		nodes, err := eva.Get(within(t, 10*time.Second), "/hers")
		require.NoError(t, err)
		commit(t, eva, registry.Set("/hers", []byte("1"), nodes[0].Version))
		f.Until(10*time.Second, "the change", func() bool { return f.Nodes["/hers"].Version == nodes[0].Version+1 })
	}
}

func TestOpenWithAWrongLogin(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	eva, _ := open(t, bed, func(c *zookeeper.Config) { c.Chroot = "" }, as("eva", "s3cret"))
	name := t.Name()
	commit(t, eva, registry.Create("/"+name, nil))
	for user, change := range map[string]func(*zookeeper.Config){
		`user "eva"`: as("eva", "wr0ng"), `user "max"`: as("max", "s3cret"), "a client without a login": func(*zookeeper.Config) {},
	} {
		cfg := zookeeper.Config{Servers: bed.Addrs(), Namespace: name}
		change(&cfg)
		_, err := zookeeper.Open(within(t, 10*time.Second), cfg)
		require.ErrorIs(t, err, registry.ErrDenied)
		require.EqualError(t, err, "zookeeper: open: permission denied: "+user+" may not read /"+name+
			"; ask ZooKeeper for its ACL (getAcl), and give the username and password that it names: zk: not authenticated")
	}
	cfg := zookeeper.Config{Servers: bed.Addrs(), Namespace: "test", Chroot: "/" + name + "/below"}
	_, err := zookeeper.Open(within(t, 10*time.Second), cfg)
	require.ErrorIs(t, err, registry.ErrDenied)
	require.EqualError(t, err, "zookeeper: make the chroot /"+name+"/below: permission denied: a client without a login: zk: not authenticated")
	commit(t, eva, registry.Delete("/"+name, 0))
	require.NoError(t, eva.Close(context.Background()))
}

// Nodes that others made with a time of their own read as persistent ones.
func TestForeignKindsOfNodes(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	s, _ := open(t, bed)
	raw, _, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer raw.Close()
	root := "/" + t.Name()
	_, err = raw.CreateContainer(root+"/container", []byte("x"), zk.FlagContainer, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = raw.Create(root+"/null", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	ctx := within(t, 10*time.Second)
	require.NoError(t, s.Sync(ctx))
	nodes, err := s.Get(ctx, "/container", "/null")
	require.NoError(t, err)
	for _, n := range nodes {
		require.True(t, n.Exists())
		require.False(t, n.Ephemeral)
	}
	require.Empty(t, nodes[1].Value)
	commit(t, s, registry.Create("/container/child", nil), registry.Set("/null", nil, 0))
}
