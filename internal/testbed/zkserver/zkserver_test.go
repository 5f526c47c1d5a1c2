package zkserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

const (
	long  = 2 * time.Minute
	every = 10 * time.Millisecond
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// start skips the test only where a way is absent that nobody forced.
func start(t *testing.T, o zkserver.Options) *zkserver.Cluster {
	t.Helper()
	at := time.Now()
	o.Own = true
	c, err := zkserver.Start(within(t, 5*time.Minute), o)
	if forced := os.Getenv(zkserver.EnvWay); absent(err) && (forced == "" || o.Version != "" || o.Way != "" && o.Way != forced) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	t.Logf("%s: %d members in %v", c.Way(), c.Members(), time.Since(at))
	return c
}

func absent(err error) bool {
	unavailable := (*zkserver.UnavailableError)(nil)
	return errors.As(err, &unavailable) && !slices.ContainsFunc(unavailable.Reasons, func(r zkserver.Reason) bool {
		return !errors.Is(r.Err, zkserver.ErrAbsent)
	})
}

// answers reports whether a server says that it is well.
func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "ruok"); err != nil {
		return false
	}
	text, err := io.ReadAll(conn)
	return err == nil && string(text) == "imok"
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// client returns when there is a session.
func client(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect(addrs, 20*time.Second, zk.WithLogger(silent{}), zk.WithDialer(net.DialTimeout))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.Eventually(t, func() bool { return conn.State() == zk.StateHasSession }, long, every)
	return conn
}

// ways runs a test by each way that differs; maven is a process too.
func ways(t *testing.T, test func(t *testing.T, way string), more ...string) {
	t.Helper()
	for _, way := range append([]string{"process", "container"}, more...) {
		t.Run(way, func(t *testing.T) { test(t, way) })
	}
}

func TestOneServer(t *testing.T) {
	ways(t, func(t *testing.T, way string) {
		c := start(t, zkserver.Options{Way: way})
		addr := c.Addrs()[0]
		require.True(t, answers(addr))
		require.Contains(t, c.Way(), way)
		require.Contains(t, c.Way(), c.Version())
		_, err := client(t, addr).Create("/kept", []byte("x"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)

		require.NoError(t, c.Pause(0))
		require.False(t, answers(addr), "a stopped server answers")
		require.NoError(t, c.Resume(0))
		require.Eventually(t, func() bool { return answers(addr) }, long, every)

		require.NoError(t, c.Kill(0))
		require.False(t, answers(addr), "a killed server answers")
		require.NoError(t, c.Restart(within(t, long), 0))
		value, _, err := client(t, addr).Get("/kept")
		require.NoError(t, err)
		require.Equal(t, "x", string(value))

		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		require.False(t, answers(addr))
		require.Error(t, c.Kill(0))
	}, "maven")
}

func TestEnsemble(t *testing.T) {
	ways(t, func(t *testing.T, way string) {
		c := start(t, zkserver.Options{Way: way, Members: 3})
		ctx := within(t, long)
		old, err := c.Leader(ctx)
		require.NoError(t, err)
		_, err = client(t, c.Addrs()...).Create("/kept", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)

		require.NoError(t, c.Kill(old))
		leader, err := c.Leader(ctx)
		require.NoError(t, err)
		require.NotEqual(t, old, leader)
		require.NoError(t, c.Restart(ctx, old))
		found, _, err := client(t, c.Addrs()[old]).Exists("/kept")
		require.NoError(t, err)
		require.True(t, found, "the member that came back has the data")

		require.NoError(t, c.RestartAll(ctx))
		found, _, err = client(t, c.Addrs()...).Exists("/kept")
		require.NoError(t, err)
		require.True(t, found)
	})
}

// A member that is killed or restarted while another one's restart waits for all is no failure.
func TestRestartsSideBySide(t *testing.T) {
	ways(t, func(t *testing.T, way string) {
		c := start(t, zkserver.Options{Way: way, Members: 3})
		ctx := within(t, long)
		for _, then := range []func() error{
			func() error { return c.Kill(0) },
			func() error { return c.Restart(ctx, 0) },
		} {
			require.NoError(t, c.Pause(0))
			restarted := make(chan error, 1)
			go func() { restarted <- c.Restart(ctx, 1) }()
			require.Eventually(t, func() bool { return answers(c.Addrs()[1]) }, long, every)
			require.Empty(t, restarted, "it waits for the member that is paused")
			require.NoError(t, then())
			require.NoError(t, <-restarted)
			require.NoError(t, c.Restart(ctx, 0))
		}
	})
}

func TestPartition(t *testing.T) {
	ways(t, func(t *testing.T, way string) {
		c := start(t, zkserver.Options{Way: way, Members: 3})
		ctx := within(t, long)
		old, err := c.Leader(ctx)
		require.NoError(t, err)
		heal, err := c.Partition(old)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			leader, err := c.Leader(ctx)
			return err == nil && leader != old
		}, long, every, "the others go on without the old leader")
		require.True(t, answers(c.Addrs()[old]), "clients still reach it")
		require.NoError(t, heal())
		require.NoError(t, heal())
		client(t, c.Addrs()[old]) // it serves again, as a follower
	})
}

func TestVersions(t *testing.T) {
	for _, version := range []string{"3.5.10", "3.6.4", "3.7.2", "3.9.3"} {
		t.Run(version, func(t *testing.T) {
			c := start(t, zkserver.Options{Version: version})
			require.Equal(t, version, c.Version())
			require.Equal(t, "maven "+version, c.Way())
			_, err := client(t, c.Addrs()...).Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		})
	}
}
