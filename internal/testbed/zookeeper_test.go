package testbed_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

const longSession = 20 * time.Second

type silent struct{}

func (silent) Printf(string, ...any) {}

// connectZK returns when there is a session.
func connectZK(t *testing.T, addrs []string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(addrs, longSession, zk.WithLogger(silent{}), zk.WithDialer(net.DialTimeout))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn // further events are dropped: nobody reads them
			}
		case <-deadline:
			require.FailNow(t, "no session")
		}
	}
}

func createZK(c *zk.Conn, path string) error {
	_, err := c.Multi(
		&zk.CheckVersionRequest{Path: "/", Version: -1},
		&zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)},
	)
	return err
}

func existsZK(t *testing.T, c *zk.Conn, path string) bool {
	t.Helper()
	found, _, err := c.Exists(path)
	require.NoError(t, err)
	return found
}

// root is a path that no other test uses.
func root(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("/%s-%d", t.Name(), time.Now().UnixNano())
}

func TestZooKeeperFates(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	t.Log(bed.Way())
	way := bed.Client()
	client, admin := connectZK(t, way.Addrs()), connectZK(t, bed.Addrs())
	path := root(t)
	require.NoError(t, createZK(client, path))

	for _, c := range []struct {
		name    string
		fate    testbed.Fate
		applied bool
		late    bool
	}{
		{"AnswerLost", testbed.AnswerLost, true, false},
		{"RequestLost", testbed.RequestLost, false, false},
		{"AppliedLate", testbed.AppliedLate, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := path + "/" + c.name
			hit := way.NextCommit(c.fate)
			require.False(t, hit())
			_, err := client.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1}) // a heartbeat, not a commit
			require.NoError(t, err)
			require.False(t, existsZK(t, client, node))
			require.False(t, hit())
			before, started := way.Hits(), time.Now()
			require.Error(t, createZK(client, node))
			require.True(t, hit())
			require.Greater(t, way.Hits(), before)
			require.Equal(t, c.applied, existsZK(t, admin, node))
			if c.late {
				_, _, created, err := admin.ExistsW(node)
				require.NoError(t, err)
				require.Equal(t, zk.EventNodeCreated, (<-created).Type)
				require.GreaterOrEqual(t, time.Since(started), testbed.LateBy)
			}
			require.Eventually(t, func() bool { return client.State() == zk.StateHasSession }, 20*time.Second, 10*time.Millisecond)
			require.NoError(t, createZK(client, node+" again"), "the next commit is spared")
		})
	}
}

func TestZooKeeperExpire(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	client, admin := connectZK(t, bed.Client().Addrs()), connectZK(t, bed.Addrs())
	node := root(t)
	_, err := client.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.NoError(t, bed.Expire(client.SessionID()))
	require.False(t, existsZK(t, admin, node))
	require.Error(t, bed.Expire(4711), "no client of the bed has it")
}

func TestZooKeeperCountsRequests(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	way := bed.Client()
	client := connectZK(t, way.Addrs())
	require.Equal(t, 1, way.Requests()["connect"])
	node := root(t)
	require.NoError(t, createZK(client, node))
	_, _, err := client.Get(node)
	require.NoError(t, err)
	got := way.Requests()
	delete(got, "ping")
	require.Equal(t, map[string]int{"connect": 1, "multi": 1, "getData": 1}, got)
	way.ResetRequests()
	_, _, err = client.Children(node)
	require.NoError(t, err)
	require.Equal(t, 1, way.Requests()["getChildren2"])
	require.Zero(t, way.Requests()["multi"])
}

// What is denied may lose a node meanwhile: a lock's, or a directory that vanishes by itself.
func TestZooKeeperAllowsWhatIsLeft(t *testing.T) {
	z := testbed.SharedZooKeeper(t)
	c, dir := connectZK(t, z.Addrs()), root(t)
	for _, path := range []string{dir, dir + "/locks", dir + "/locks/1"} {
		require.NoError(t, createZK(c, path))
	}
	allow, err := z.Deny(dir + "/locks")
	require.NoError(t, err)
	_, _, err = c.Get(dir + "/locks")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	warden := connectZK(t, z.Addrs())
	require.NoError(t, warden.AddAuth("digest", []byte("warden:warden")))
	require.NoError(t, warden.Delete(dir+"/locks/1", -1))
	allow()
	require.NoError(t, c.Delete(dir+"/locks", -1))
}

func TestZooKeeperPauseLosesNothing(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	way := bed.Client()
	client, admin := connectZK(t, way.Addrs()), connectZK(t, bed.Addrs())
	node := root(t)
	resume := bed.Pause()
	written := make(chan error, 1)
	go func() { written <- createZK(client, node) }()
	require.Eventually(t, func() bool { return way.Hits() > 0 }, 5*time.Second, 10*time.Millisecond)
	require.False(t, existsZK(t, admin, node))
	resume()
	resume()
	require.NoError(t, <-written)
	require.True(t, existsZK(t, admin, node))
}

func TestZooKeeperSharedIsSpared(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	require.ErrorIs(t, bed.Restart(), zkserver.ErrUnsupported)
	require.ErrorIs(t, bed.LoseLeader(), zkserver.ErrUnsupported)
}

func TestZooKeeperRestartKeepsData(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{})
	client := connectZK(t, bed.Client().Addrs())
	node := root(t)
	require.NoError(t, createZK(client, node))
	require.NoError(t, bed.Restart())
	require.True(t, existsZK(t, connectZK(t, bed.Addrs()), node))
}

func TestZooKeeperLoseLeader(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Members: 3})
	require.Equal(t, 3, bed.Members())
	ctx := within(t, time.Minute)
	client := connectZK(t, bed.Client().Addrs())
	node := root(t)
	require.NoError(t, createZK(client, node))
	before, err := bed.Servers().Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, bed.LoseLeader())
	after, err := bed.Servers().Leader(ctx)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.True(t, existsZK(t, connectZK(t, bed.Addrs()), node))
}
