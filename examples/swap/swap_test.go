//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

func TestMain(m *testing.M) { os.Exit(testbed.ClosingShared(m).Run()) }

// build makes the program once, as a user would.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "swap")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// swap runs the program with its YAML file on a registry.
func swap(t *testing.T, bin, registry string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"-config", "swap.yaml"}, args...)...)
	cmd.Env = append(os.Environ(), "SWAP_REGISTRY="+registry)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func sums(t *testing.T, files ...string) [][32]byte {
	t.Helper()
	var all [][32]byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		all = append(all, sha256.Sum256(data))
	}
	return all
}

var row = regexp.MustCompile(`(?m)^(\d) +\w+ +[0-9.]+@-@(one|two)-\w+ +\d+ +\d+$`)

// One program and one file, on etcd, on ZooKeeper and on PostgreSQL, without a rebuild.
func TestSwap(t *testing.T) {
	bin := build(t)
	before := sums(t, bin, "swap.yaml")
	t.Run("etcd", func(t *testing.T) {
		srv, err := embedded.Start(t.Context(), embedded.Config{})
		require.NoError(t, err)
		defer srv.Close()
		requireShared(t, bin, "etcd://"+srv.Endpoint()+"/swap?session-timeout=2s")
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		zk := testbed.SharedZooKeeper(t)
		requireShared(t, bin, "zookeeper://"+strings.Join(zk.Addrs(), ",")+"/swap?session-timeout=2s")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		pg := testbed.StartPostgres(t, pgserver.Options{})
		requireShared(t, bin, "postgres://"+pg.Addr()+"/postgres/swap?session-timeout=2s&username="+pgserver.User)
	})
	require.Equal(t, before, sums(t, bin, "swap.yaml"), "it is the same program and the same file")
}

// requireShared runs the program on a registry: both instances run items.
func requireShared(t *testing.T, bin, registry string) {
	t.Helper()
	out, err := swap(t, bin, registry)
	require.NoError(t, err, out)
	require.Contains(t, out, registry)
	items, instances := map[string]bool{}, map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(out, -1) {
		items[m[1]], instances[m[2]] = true, true
	}
	require.Len(t, items, 6, out)
	require.Len(t, instances, 2, out)
	t.Log("\n" + out)
}

func TestExitStatus(t *testing.T) {
	bin := build(t)
	for _, c := range []struct {
		status   int
		want     string
		registry string
		args     []string
	}{
		{2, `swap: unknown argument "x"`, "", []string{"x"}},
		{2, "flag provided but not defined: -nothing", "", []string{"-nothing"}},
		{1, "swap.yaml:3:3: registry.url: holds a password, which does not belong in a URL", "etcd://jo:hunter2@127.0.0.1/swap", nil},
		{1, `swap.yaml:3:3: registry.url: registry: unknown scheme "consul" (forgotten import?)`, "consul://127.0.0.1/swap", nil},
		{1, "127.0.0.1:1", "etcd://127.0.0.1:1/swap?dial-timeout=500ms", nil},
		{1, "127.0.0.1:1", "zookeeper://127.0.0.1:1/swap?dial-timeout=500ms", nil},
		{1, "127.0.0.1:1", "postgres://127.0.0.1:1/postgres/swap?dial-timeout=500ms", nil},
		{1, "swap: not every item ran twice within 1ms", "etcd://127.0.0.1:1/swap", []string{"-patience", "1ms"}},
	} {
		out, err := swap(t, bin, c.registry, c.args...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, c.status, exit.ExitCode(), out)
		require.Contains(t, out, c.want)
		require.NotContains(t, out, "hunter2")
	}
}

func TestCtrlC(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t), "-config", "swap.yaml")
	cmd.Env = append(os.Environ(), "SWAP_REGISTRY=etcd://127.0.0.1:1/swap?dial-timeout=1m")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n') // its first line: it runs
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 130, exit.ExitCode())
	require.Equal(t, "swap: interrupted\n", stderr.String())
}

// A token that does not rise is an error of the run.
func TestTallyTellsAFenceThatDoesNotRise(t *testing.T) {
	tl := newTally([]core.JobConfig{{Shards: 1}})
	for _, s := range []core.Shard{{Instance: "a", Fence: 3}, {Instance: "b", Fence: 3}} {
		require.NoError(t, tl.Run(context.Background(), s))
	}
	require.EqualError(t, tl.err(), "swap: item 0 ran with fencing token 3 after 3")
	require.Equal(t, "item  parameter  instance  fires  fence\n0                a         1      3\n0                b         1      3\n", tl.table())
	select {
	case <-tl.done:
	case <-time.After(time.Second):
		t.Fatal("two runs of the only item, by two instances, are enough")
	}
}
