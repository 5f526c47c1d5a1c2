package testbed_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/elasticron/elasticron/internal/testbed"
)

func TestEtcdProcess(t *testing.T) {
	bed := testbed.StartEtcdProcess(t, testbed.Options{})
	ctx := within(t, time.Minute)
	status, err := bed.Admin().Status(ctx, bed.Endpoints()[0])
	require.NoError(t, err)
	t.Log("etcd", status.Version)
	way := bed.Client()
	client := connect(t, way)
	require.NoError(t, create(ctx, client, "kept"))
	hit := way.NextCommit(testbed.AnswerLost)
	require.Error(t, create(ctx, client, "uncertain"))
	require.True(t, hit())
	require.NoError(t, bed.Restart())
	require.True(t, exists(ctx, t, client, "kept"), "the client finds its way back")
	require.True(t, exists(ctx, t, bed.Admin(), "uncertain"))
	require.NoError(t, bed.Compact())
}

func TestEtcdProcesses(t *testing.T) {
	bed := testbed.StartEtcdProcess(t, testbed.Options{Members: 3})
	require.Equal(t, 3, bed.Members())
	ctx := within(t, time.Minute)
	client := connect(t, bed.Client())
	require.NoError(t, create(ctx, client, "kept"))
	term := func() uint64 {
		status, err := pb.NewMaintenanceClient(bed.Admin().ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		require.NoError(t, err)
		return status.GetRaftTerm()
	}
	before := term()
	require.NoError(t, bed.LoseLeader())
	require.Greater(t, term(), before)
	require.True(t, exists(ctx, t, client, "kept"))
}

// etcdVictim makes this test binary start an older etcd, say where, and wait to be killed.
const etcdVictim = "ELASTICRON_TEST_ETCD_VICTIM"

func TestEtcdVictim(t *testing.T) {
	if os.Getenv(etcdVictim) == "" {
		return // not a test of its own: TestKilledParentLeavesNoEtcd runs it
	}
	fmt.Println("at", testbed.StartEtcdProcess(t, testbed.Options{}).Endpoints()[0]) //nolint:forbidigo // its parent reads this
	select {}
}

func TestKilledParentLeavesNoEtcd(t *testing.T) {
	testbed.StartEtcdProcess(t, testbed.Options{}).Close() // or skip
	cmd := exec.Command(os.Args[0], "-test.run", "^TestEtcdVictim$")
	cmd.Env = append(os.Environ(), etcdVictim+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "at ")
	}
	listens := func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	require.True(t, listens(), "it does not run: the check is void")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return !listens() }, time.Minute, 10*time.Millisecond)
}
