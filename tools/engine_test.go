package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// beside runs a script by tools/with-engine, where there is never an image.
func (m machine) beside(script string, environment ...string) *exec.Cmd {
	m.t.Helper()
	m.program("step", `echo "step $*"; [ "$1" = -table ]`)
	cmd := m.bash("with-engine", "sh", "-c", script)
	cmd.Env = append(append(cmd.Env, "STEP="+filepath.Join(m.bin, "step")), environment...)
	return cmd
}

// withEngine says which way the command was told of.
func (m machine) withEngine(environment ...string) (said string, ok bool) {
	m.t.Helper()
	script := `echo "ran, way: $ELASTICRON_ZOOKEEPER_WAY"; [ ! -e "$TMPDIR/up" ] || echo "beside an engine"`
	out, err := m.beside(script, environment...).CombinedOutput()
	return string(out), err == nil
}

// engine makes one that can be started.
func (m machine) engine() {
	m.t.Helper()
	m.real("dirname", "cat", "flock", "setsid", "sleep", "kill", "sh")
	m.program("docker", `[ -e "$TMPDIR/up" ]`)
	m.program("dockerd", `trap 'rm "$TMPDIR/up"; exit' TERM; touch "$TMPDIR/up"; while :; do sleep 0.05; done`)
}

func TestWithoutAnEngine(t *testing.T) {
	m := bare(t, nobody)
	m.real("dirname", "cat", "sh")
	said, ok := m.withEngine()
	require.True(t, ok)
	require.Contains(t, said, "no Docker engine answers\n")
	require.Contains(t, said, "ran, way: process\n")

	said, ok = m.withEngine("ELASTICRON_ZOOKEEPER_WAY=container")
	require.False(t, ok)
	require.NotContains(t, said, "ran")
	require.Contains(t, said, "step -table\n", "the steps that were made before")

	for _, other := range []string{"ELASTICRON_ZOOKEEPER_WAY=maven", "ELASTICRON_ZOOKEEPER=127.0.0.1:2181"} {
		said, ok = m.withEngine(other)
		require.True(t, ok)
		require.Regexp(t, `^ran, way: (maven)?\n$`, said)
	}
}

func TestAnEngineIsStartedAndStopped(t *testing.T) {
	m := bare(t, root)
	m.engine()
	said, ok := m.withEngine()
	require.True(t, ok, said)
	require.Contains(t, said, "starting a Docker engine\nstep -optional image\nwith-engine: there is no image of ZooKeeper\n")
	require.Contains(t, said, "ran, way: process\nbeside an engine\n")
	require.NoFileExists(t, filepath.Join(m.root, "up"), "it is stopped")

	require.NoError(t, os.WriteFile(filepath.Join(m.root, "up"), nil, 0o600))
	said, ok = m.withEngine()
	require.True(t, ok)
	require.NotContains(t, said, "starting")
	require.FileExists(t, filepath.Join(m.root, "up"), "somebody else's stays")

	require.NoError(t, os.Remove(filepath.Join(m.root, "up")))
	m.program("dockerd", `echo "no iptables here"; exit 1`)
	said, ok = m.withEngine("ELASTICRON_ZOOKEEPER_WAY=container")
	require.False(t, ok)
	require.Contains(t, said, "no iptables here\n")
	require.NotContains(t, said, "ran")
}

func TestTheLastOneStopsTheEngine(t *testing.T) {
	m := bare(t, root)
	m.engine()
	first := m.beside(`sleep 10 >/dev/null 2>&1 & touch "$TMPDIR/first"; until [ -e "$TMPDIR/go" ]; do sleep 0.01; done`)
	require.NoError(t, first.Start())
	exists := func(name string) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(m.root, name))
			return err == nil
		}
	}
	require.Eventually(t, exists("first"), 10*time.Second, 10*time.Millisecond)
	said, ok := m.withEngine()
	require.True(t, ok)
	require.Contains(t, said, "beside an engine")
	require.FileExists(t, filepath.Join(m.root, "up"), "the first one still needs it")
	require.NoError(t, os.WriteFile(filepath.Join(m.root, "go"), nil, 0o600))
	require.NoError(t, first.Wait())
	require.NoFileExists(t, filepath.Join(m.root, "up"))

	said, ok = m.withEngine()
	require.True(t, ok)
	require.Contains(t, said, "starting a Docker engine", "what the first one has left behind keeps nobody out")
}
