package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withEngine runs a command that says which way it was told of. There is never an image.
func (m machine) withEngine(environment ...string) (said string, ok bool) {
	m.t.Helper()
	m.program("step", `echo "step $*"; [ "$1" = -table ]`)
	m.program("command", `echo "ran, way: $ELASTICRON_ZOOKEEPER_WAY"; [ ! -e "$TMPDIR/up" ] || echo "beside an engine"`)
	cmd := m.bash("with-engine", filepath.Join(m.bin, "command"))
	cmd.Env = append(append(cmd.Env, "STEP="+filepath.Join(m.bin, "step")), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestWithoutAnEngine(t *testing.T) {
	m := bare(t, nobody)
	m.real("dirname", "cat")
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
	m.real("dirname", "cat", "flock", "setsid", "sleep", "kill")
	m.program("docker", `[ -e "$TMPDIR/up" ]`)
	m.program("dockerd", `trap 'rm "$TMPDIR/up"; exit' TERM; touch "$TMPDIR/up"; while :; do sleep 0.05; done`)
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
