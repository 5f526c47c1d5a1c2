package zookeeper_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// deaf are two servers that will not do: one accepts and is silent, one is not there.
func deaf(t *testing.T) (silent, closed string) {
	t.Helper()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	return mute.Addr().String(), gone.Addr().String()
}

func TestOpenUnreachable(t *testing.T) {
	silent, closed := deaf(t)
	start := time.Now()
	_, err := zookeeper.Open(context.Background(), zookeeper.Config{
		Servers: []string{closed, silent}, Namespace: "shop", DialTimeout: 2 * time.Second, Username: "eva", Password: "s3cret",
	})
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 3*time.Second)
	text := err.Error()
	require.Contains(t, text, closed+": dial tcp "+closed+": connect: connection refused")
	require.Contains(t, text, silent+": it accepts connections and does not answer within ")
	require.NotContains(t, text, "\n")
	require.NotContains(t, text, "s3cret")

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	start = time.Now()
	_, err = zookeeper.Open(ctx, zookeeper.Config{Servers: []string{silent}, Namespace: "shop", DialTimeout: time.Minute})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(start), 5*time.Second)
}

// tooSlow is of use to nobody: it confirms a session in time, and answers no heartbeat before the end.
const tooSlow = sessionTimeout * 9 / 20

// openSlow opens a registry through client, and closes it.
func openSlow(ctx context.Context, client *testbed.ZooKeeperClient) error {
	reg, err := zookeeper.Open(ctx, zookeeper.Config{
		Servers: client.Addrs(), Namespace: "shop", SessionTimeout: sessionTimeout, DialTimeout: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	return reg.Close()
}

// A service that is so slow that it ends each session before that is of use is waited for.
func TestOpenWaitsForASlowService(t *testing.T) {
	client := testbed.SharedZooKeeper(t).Client()
	slow := client.DelayAnswers(tooSlow)
	defer slow()
	opened := make(chan error, 1)
	go func() { opened <- openSlow(within(t, 30*time.Second), client) }()
	select {
	case err := <-opened:
		require.Fail(t, "void, or it gave up", "Open: %v", err)
	case <-time.After(2 * sessionTimeout):
	}
	slow()
	require.NoError(t, <-opened)
}

// Whatever Open is at when its context ends, it says that the service is not available.
func TestOpenOfASlowServiceEndsWithItsContext(t *testing.T) {
	client := testbed.SharedZooKeeper(t).Client()
	defer client.DelayAnswers(tooSlow)()
	opens := map[time.Duration]chan error{}
	for after := sessionTimeout / 2; after < 2*sessionTimeout; after += 20 * time.Millisecond {
		opened := make(chan error, 1)
		opens[after] = opened
		go func() { opened <- openSlow(within(t, after), client) }()
	}
	for after, opened := range opens {
		err := <-opened
		require.ErrorIs(t, err, registry.ErrUnavailable, "%v", after)
		require.ErrorIs(t, err, context.DeadlineExceeded, "%v", after)
		require.NotErrorIs(t, err, registry.ErrSessionLost, "%v", after)
	}
}

func TestOpenOneOfSeveral(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	silent, closed := deaf(t)
	reg, err := registry.Open(within(t, 10*time.Second), "zookeeper://"+closed+","+silent+","+strings.Join(bed.Addrs(), ",")+"/team/shop")
	require.NoError(t, err)
	defer reg.Close()
	require.Equal(t, "team/shop", reg.Namespace())
}

func TestOpenSessionWaits(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	reg, client := connect(t, bed)
	heal := client.Refuse()
	_, err := reg.Open(within(t, 300*time.Millisecond))
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	time.AfterFunc(300*time.Millisecond, heal)
	s, err := reg.Open(within(t, 10*time.Second))
	require.NoError(t, err)
	require.NoError(t, s.Err())
}

// A process that is told to end closes its session with a context that has ended.
func TestCloseWithAnEndedContext(t *testing.T) {
	reg, client := connect(t, testbed.SharedZooKeeper(t))
	other, s := session(t, reg), session(t, reg)
	commit(t, s, registry.CreateEphemeral("/"+t.Name(), nil))
	ended, end := context.WithCancel(context.Background())
	end()
	require.NoError(t, s.Close(ended))
	ctx := within(t, 10*time.Second)
	require.NoError(t, other.Sync(ctx))
	nodes, err := other.Get(ctx, "/"+t.Name())
	require.NoError(t, err)
	require.False(t, nodes[0].Exists())

	s = session(t, reg)
	defer client.Hold()()
	start := time.Now()
	require.ErrorIs(t, s.Close(ended), registry.ErrUnavailable)
	require.Less(t, time.Since(start), sessionTimeout, "one attempt, of a quarter of the timeout")
}

// Close does not wait for a service that is gone.
func TestRegistryCloseIsQuick(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	reg, client := connect(t, bed)
	s := session(t, reg)
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/x", registry.Self))
	heal := client.Hold()
	defer heal()
	start := time.Now()
	require.NoError(t, reg.Close())
	require.NoError(t, reg.Close())
	require.Less(t, time.Since(start), time.Second)
	require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
	_, err := reg.Open(within(t, time.Second))
	require.ErrorIs(t, err, registry.ErrClosed)
}

// A chroot is made, is not seen, and is the root of everything.
func TestChroot(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	base := "/" + t.Name() + "/deep/er"
	in, _ := open(t, bed, func(c *zookeeper.Config) { c.Chroot = base })
	out, _ := open(t, bed, func(c *zookeeper.Config) { c.Chroot = "" })
	ctx := within(t, 30*time.Second)

	f := follow(t, in)
	require.NoError(t, f.Watcher.Add("/", registry.Children))
	require.NoError(t, f.Watcher.Add("/zookeeper", registry.Self))
	f.Until(10*time.Second, "an empty root", func() bool { return f.Synced == 2 })
	commit(t, in, registry.Create("/a", []byte("1")), registry.Create("/a/b", []byte("2")), registry.Create("/zookeeper", []byte("3")))
	f.Until(10*time.Second, "what was created", func() bool {
		return string(f.Nodes["/a"].Value) == "1" && string(f.Nodes["/zookeeper"].Value) == "3"
	})
	require.Len(t, f.Nodes, 2)

	names, err := in.Children(ctx, "/")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "zookeeper"}, names)
	nodes, err := in.Get(ctx, "/a/b", "/deep")
	require.NoError(t, err)
	require.Equal(t, "/a/b", nodes[0].Path)
	require.Equal(t, "2", string(nodes[0].Value))
	require.False(t, nodes[1].Exists())
	_, err = in.Commit(ctx, registry.Create("/none/x", nil))
	require.ErrorIs(t, err, registry.ErrNoParent)
	require.NotContains(t, err.Error(), base)

	require.NoError(t, out.Sync(ctx))
	nodes, err = out.Get(ctx, base+"/a/b")
	require.NoError(t, err)
	require.Equal(t, "2", string(nodes[0].Value))

	again, _ := open(t, bed, func(c *zookeeper.Config) { c.Chroot = base })
	names, err = again.Children(ctx, "/a")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
}

// Without a chroot the service's own nodes are out of the way.
func TestOwnNodesOfTheService(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	s, _ := open(t, bed, func(c *zookeeper.Config) { c.Chroot = "" })
	ctx := within(t, 30*time.Second)
	names, err := s.Children(ctx, "/")
	require.NoError(t, err)
	require.NotContains(t, names, "zookeeper")
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/", registry.Children))
	f.Until(10*time.Second, "the root", func() bool { return f.Synced == 1 })
	require.NotContains(t, f.Nodes, "/zookeeper")
	_, err = s.Commit(ctx, registry.Delete("/zookeeper/quota", registry.AnyVersion))
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.EqualError(t, err, "zookeeper: invalid request: operation 0: /zookeeper/quota belongs to ZooKeeper itself")
}

func TestVersionBeyondTheServices(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	s, _ := open(t, bed)
	ctx := within(t, 30*time.Second)
	commit(t, s, registry.Create("/a", nil), registry.Create("/a/b", nil))
	for _, v := range []registry.Version{1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1} {
		for _, op := range []registry.Op{registry.Check("/a", v), registry.Set("/a", nil, v), registry.Delete("/a", v)} {
			_, err := s.Commit(ctx, op)
			require.ErrorIs(t, err, registry.ErrVersion, "%v", op)
		}
		_, err := s.Commit(ctx, registry.Set("/none", nil, v))
		require.ErrorIs(t, err, registry.ErrNotFound)
	}
}
