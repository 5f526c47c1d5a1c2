package zkserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		options zkserver.Options
		says    string
	}{
		{zkserver.Options{Members: 2}, "Options.Members is 2"},
		{zkserver.Options{Tick: 1}, "Options.Tick is 1ns"},
		{zkserver.Options{Way: "process", Version: "3.5.10"}, "Options.Version is 3.5.10"},
		{zkserver.Options{Way: "magic"}, `"magic": want address, container, process or maven`},
	} {
		_, err := zkserver.Start(t.Context(), c.options)
		require.ErrorContains(t, err, c.says)
	}
}

// bare is a machine with nothing to run ZooKeeper with.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{zkserver.EnvAddress, zkserver.EnvWay, zkserver.EnvImage} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", t.TempDir())
}

func TestNothingWorks(t *testing.T) {
	bare(t)
	_, err := zkserver.Start(t.Context(), zkserver.Options{})
	unavailable := (*zkserver.UnavailableError)(nil)
	require.ErrorAs(t, err, &unavailable)
	require.True(t, unavailable.Absent())
	require.ErrorIs(t, err, zkserver.ErrAbsent)
	for _, says := range []string{"address: ", "container: ", "process: ", "maven: ", "no docker", "no java", "ELASTICRON_ZOOKEEPER is not set"} {
		require.ErrorContains(t, err, says)
	}

	t.Setenv(zkserver.EnvWay, "container")
	_, err = zkserver.Start(t.Context(), zkserver.Options{})
	require.ErrorAs(t, err, &unavailable)
	require.False(t, unavailable.Absent(), "what is forced must not be absent")
	require.NotContains(t, err.Error(), "process: ")
}

func TestAddress(t *testing.T) {
	served := start(t, zkserver.Options{})
	bare(t)
	t.Setenv(zkserver.EnvAddress, served.Addrs()[0])
	t.Setenv(zkserver.EnvServed, served.Way())
	c, err := zkserver.Start(t.Context(), zkserver.Options{})
	require.NoError(t, err)
	require.Equal(t, served.Addrs(), c.Addrs())
	require.Equal(t, served.Way(), c.Way())
	require.Equal(t, served.Version(), c.Version())
	require.ErrorIs(t, c.Kill(0), zkserver.ErrUnsupported)
	require.NoError(t, c.Close())
	require.True(t, answers(served.Addrs()[0]), "somebody else's server stays")

	_, err = zkserver.Start(t.Context(), zkserver.Options{Own: true})
	require.ErrorContains(t, err, "are shared")
	unavailable := (*zkserver.UnavailableError)(nil)
	require.ErrorAs(t, err, &unavailable)
	require.False(t, unavailable.Absent(), "an address that does not suffice is no reason to skip")

	require.NoError(t, served.Close())
	_, err = zkserver.Start(t.Context(), zkserver.Options{})
	require.ErrorContains(t, err, "does not serve")
	require.NotErrorAs(t, err, &unavailable)
}
