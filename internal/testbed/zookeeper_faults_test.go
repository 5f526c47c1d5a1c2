package testbed_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// reads reports whether a read is answered in time.
func reads(client *zk.Conn, patience time.Duration) bool {
	done := make(chan error, 1)
	go func() {
		_, _, err := client.Get("/")
		done <- err
	}()
	select {
	case err := <-done:
		return err == nil
	case <-time.After(patience):
		return false
	}
}

func TestZooKeeperClientFaults(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	for _, c := range []struct {
		name  string
		fault func(*testbed.ZooKeeperClient) (heal func())
		stops bool // reads, until it heals
	}{
		{"Drop", func(c *testbed.ZooKeeperClient) func() { c.Drop(); return func() {} }, false},
		{"BlackholeBoth", func(c *testbed.ZooKeeperClient) func() { return c.Blackhole(testbed.Both) }, true},
		{"BlackholeRequests", func(c *testbed.ZooKeeperClient) func() { return c.Blackhole(testbed.Requests) }, true},
		{"BlackholeAnswers", func(c *testbed.ZooKeeperClient) func() { return c.Blackhole(testbed.Answers) }, true},
		{"Refuse", func(c *testbed.ZooKeeperClient) func() { return c.Refuse() }, true},
		{"Hold", func(c *testbed.ZooKeeperClient) func() { return c.Hold() }, true},
		{"Delay", func(c *testbed.ZooKeeperClient) func() { return c.Delay(time.Second) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			way, other := bed.Client(), bed.Client()
			client, spared := connectZK(t, way.Addrs()), connectZK(t, other.Addrs())
			require.True(t, reads(client, soon))
			require.Zero(t, way.Hits())
			heal := c.fault(way)
			if c.stops {
				require.False(t, reads(client, quiet))
			}
			require.Positive(t, way.Hits(), "the fault has hit nothing: the test is void")
			heal()
			require.Eventually(t, func() bool { return reads(client, soon) }, time.Minute, 10*time.Millisecond)
			require.True(t, reads(spared, soon))
			require.Zero(t, other.Hits())
		})
	}
}

func TestZooKeeperBusyMember(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{Members: 3})
	way := bed.Client()
	client := connectZK(t, way.Addrs())
	ctx := within(t, time.Minute)
	found := make(chan *testbed.Proxy, 1)
	go func() {
		p, err := way.Busy(ctx)
		if err == nil {
			found <- p
		}
		close(found)
	}()
	var busy *testbed.Proxy
	require.Eventually(t, func() bool {
		require.True(t, reads(client, soon))
		select {
		case busy = <-found:
			return true
		default:
			return false
		}
	}, soon, time.Millisecond)
	heal := busy.Blackhole(testbed.Answers)
	require.False(t, reads(client, quiet))
	require.Positive(t, busy.Hits())
	heal()
	require.Eventually(t, func() bool { return reads(client, soon) }, time.Minute, 10*time.Millisecond)
}

func TestZooKeeperPausedMember(t *testing.T) {
	bed := testbed.StartZooKeeper(t, testbed.ZooKeeperOptions{})
	client := connectZK(t, bed.Client().Addrs())
	require.True(t, reads(client, soon))
	require.NoError(t, bed.Servers().Pause(0))
	require.False(t, reads(client, quiet))
	require.NoError(t, bed.Servers().Resume(0))
	require.Eventually(t, func() bool { return reads(client, soon) }, time.Minute, 10*time.Millisecond)
}

func TestZooKeeperLateCommitOfADeadSession(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	way := bed.Client()
	client, admin := connectZK(t, way.Addrs()), connectZK(t, bed.Addrs())
	node := root(t)
	hit := way.NextCommit(testbed.AppliedLate)
	require.Error(t, createZK(client, node))
	require.True(t, hit())
	require.NoError(t, bed.Expire(client.SessionID()))
	require.Eventually(t, func() bool { return client.State() == zk.StateHasSession }, time.Minute, 10*time.Millisecond, "the client is let in again")
	require.False(t, existsZK(t, admin, node))
}

// TestZooKeeperAbsent runs a test of another process where nothing is installed.
func TestZooKeeperAbsent(t *testing.T) {
	const asked = "ELASTICRON_TEST_ABSENT"
	if os.Getenv(asked) != "" {
		testbed.SharedZooKeeper(t)
		return
	}
	run := func(env ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", "^TestZooKeeperAbsent$")
		cmd.Env = append(os.Environ(), asked+"=1", "PATH="+filepath.Join(t.TempDir(), "nothing"), testbed.RequiredEnv+"=",
			zkserver.EnvAddress+"=", zkserver.EnvWay+"=", zkserver.EnvImage+"=")
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	require.NoError(t, err, out)
	for _, says := range []string{"--- SKIP", "SKIPPED", "container: absent: no docker", "process: absent: no java", "maven: absent"} {
		require.Contains(t, out, says)
	}
	for _, env := range []string{testbed.RequiredEnv + "=1", zkserver.EnvWay + "=container"} {
		out, err = run(env)
		exit := (*exec.ExitError)(nil)
		require.ErrorAs(t, err, &exit, out)
		require.Contains(t, out, "ZooKeeper does not run")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers there
	require.NoError(t, err)
	defer l.Close()
	out, err = run(zkserver.EnvAddress + "=" + l.Addr().String())
	require.True(t, err != nil && errors.As(err, new(*exec.ExitError)), out)
	require.Contains(t, out, "does not serve")
}
