//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
)

func TestMain(m *testing.M) {
	code := testbed.ClosingShared(m).Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// build makes the program that a user would run, once for all tests.
func build(t *testing.T) string {
	t.Helper()
	bin, err := program()
	require.NoError(t, err)
	return bin
}

var (
	programDir string
	program    = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "elasticron-quickstart-")
		if err != nil {
			return "", err
		}
		programDir = dir
		bin := filepath.Join(dir, "quickstart")
		out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("go build: %w: %s", err, out)
		}
		return bin, nil
	})
)

// lines collects what the program prints, and can be read while it runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var pids = regexp.MustCompile(`pid (\d+)`)

// requireNoneLeft fails when a worker that the output names is still alive.
func requireNoneLeft(t *testing.T, out string) {
	t.Helper()
	found := pids.FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, found, out)
	for _, m := range found {
		pid, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "worker %d is left", pid)
	}
}

func TestTheQuickstartPlaysToItsEnd(t *testing.T) {
	var out lines
	cmd := exec.CommandContext(t.Context(), build(t), "-rounds", "6")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	require.NoError(t, err, out.String())
	all := strings.TrimSpace(out.String())
	last := all[strings.LastIndexByte(all, '\n')+1:]
	require.Regexp(t, `^ok: \d+ whole rounds equal to a single pass, [1-9]\d* items that worker\d had begun run again, \d+ rounds not whole, \d+ files indexed, \d+ moves, longest time without an owner [0-9.]+m?s$`, last)
	require.Contains(t, all, "killed with SIGKILL while items")
	require.Contains(t, all, "worker worker4 started")
	requireFinished(t, all)
	requireNoneLeft(t, all)
}

var (
	killed = regexp.MustCompile(`(worker\d) killed with SIGKILL while items \[([\d ]+)\] run`)
	redone = regexp.MustCompile(`(worker\d) runs items \[[\d ]+\] of round (\S+) again, which (worker\d) had begun`)
)

// requireFinished fails unless others ran what the killed worker had begun, and the rounds
// in which it had are whole.
func requireFinished(t *testing.T, out string) {
	t.Helper()
	kill := killed.FindStringSubmatch(out)
	require.NotNil(t, kill, out)
	again := redone.FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, again, out)
	for _, m := range again {
		require.NotEqual(t, kill[1], m[1], m[0])
		require.Equal(t, kill[1], m[3], m[0])
		require.Contains(t, out, "round "+m[2]+"  whole, equal to a single pass: ", out)
	}
}

func TestCtrlCLeavesNoProcessBehind(t *testing.T) {
	var out lines
	cmd := exec.CommandContext(t.Context(), build(t))
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "owns") }, time.Minute, 20*time.Millisecond, out.String())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Equal(t, exitInterrupted, exitStatus(t, cmd.Wait()))
	require.Contains(t, out.String(), "interrupted")
	requireNoneLeft(t, out.String())
}

func TestWorkersDieWithAParentThatIsKilled(t *testing.T) {
	var out lines
	cmd := exec.CommandContext(t.Context(), build(t))
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "worker worker3 started") }, time.Minute, 20*time.Millisecond, out.String())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, m := range pids.FindAllStringSubmatch(out.String(), -1) {
		pid, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 20*time.Millisecond, "worker %d is left", pid)
	}
}

// gone reports whether the process has ended; one that nobody waits for counts.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestAnUnreachableRegistryIsOneLine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), build(t), "-registry", "etcd://127.0.0.1:1/demo").CombinedOutput()
	require.Equal(t, exitFailed, exitStatus(t, err))
	require.Contains(t, string(out), "127.0.0.1:1")
}

func TestAWrongCommandLineIsStatus2(t *testing.T) {
	bin := build(t)
	out, err := exec.CommandContext(t.Context(), bin, "-zookeeper", "-registry", "etcd://127.0.0.1:1/demo").CombinedOutput()
	require.Equal(t, exitUsage, exitStatus(t, err))
	require.Equal(t, "quickstart: -zookeeper starts a registry and -registry names one that runs; leave one\n", string(out))
	out, err = exec.CommandContext(t.Context(), bin, "-help").CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(out), "-zookeeper\n"), string(out))
}

func exitStatus(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}
