//go:build linux

package main

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

var started = regexp.MustCompile(`ZooKeeper \d\S+ at (\S+), by .+`)

func TestTheQuickstartPlaysOnAZooKeeperThatRuns(t *testing.T) {
	zk := testbed.SharedZooKeeper(t)
	url := "zookeeper://" + strings.Join(zk.Addrs(), ",") + "/quickstart-registry?session-timeout=2s"
	out, err := exec.CommandContext(t.Context(), build(t), "-rounds", "2", "-items", "4", "-registry", url).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "\nok: ")
	requireNoneLeft(t, string(out))
}

func TestTheQuickstartStartsAZooKeeper(t *testing.T) {
	testbed.SharedZooKeeper(t) // says so where none can run
	cmd := exec.CommandContext(t.Context(), build(t), "-rounds", "6", "-zookeeper")
	cmd.Env = append(os.Environ(), zkserver.EnvAddress+"=") // a server of its own
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, started, string(out))
	requireFinished(t, string(out))
	require.Contains(t, string(out), "\nok: ")
	requireNoneLeft(t, string(out))
}

func TestCtrlCLeavesNoZooKeeperBehind(t *testing.T) {
	testbed.SharedZooKeeper(t)
	var out lines
	cmd := exec.CommandContext(t.Context(), build(t), "-zookeeper")
	cmd.Env = append(os.Environ(), zkserver.EnvAddress+"=") // a server of its own
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "owns") }, time.Minute, 20*time.Millisecond, out.String())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitInterrupted, exitStatus(t, cmd.Wait()))
	requireNoneLeft(t, out.String())
	found := started.FindStringSubmatch(out.String())
	require.NotNil(t, found, out.String())
	addr := found[1]
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 20*time.Second, 50*time.Millisecond, "the server at %s is left", addr)
}
