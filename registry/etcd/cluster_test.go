package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

func TestLeaderLossKeepsTheSession(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
	s, _ := open(t, bed)
	commit(t, s, registry.CreateEphemeral("/e", nil))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/e", registry.Self))
	f.Until(10*time.Second, "the present state", func() bool { return f.Synced == 1 })
	for round := range 2 {
		require.NoError(t, bed.LoseLeader())
		version := registry.Version(round)
		// The outcome of a write during an election may be unknown.
		for {
			nodes, err := s.Get(within(t, 10*time.Second), "/e")
			require.NoError(t, err)
			if nodes[0].Version > version {
				break
			}
			_, err = s.Commit(within(t, 10*time.Second), registry.Set("/e", []byte{byte(round)}, version))
			if err == nil {
				break
			}
			require.ErrorIs(t, err, registry.ErrUncertain)
		}
		f.Until(10*time.Second, "the change", func() bool { return f.Nodes["/e"].Version == version+1 })
		require.NoError(t, s.Err())
	}
}

// A member that accepts and says nothing costs attempts, not the session, and
// no watch stays with it.
func TestStalledMember(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
	s, client := open(t, bed)
	other, _ := open(t, bed)
	watchers := make([]*harness.Follower, 6) // spread over all members
	for i := range watchers {
		watchers[i] = follow(t, s)
		require.NoError(t, watchers[i].Watcher.Add("/n", registry.Self))
		watchers[i].Until(10*time.Second, "the present state", func() bool { return watchers[i].Synced == 1 })
	}
	heal := client.Proxy(1).Hold()
	defer heal()
	stalled := time.Now()
	commit(t, other, registry.Create("/n", nil))
	for i, f := range watchers {
		f.Until(10*time.Second, fmt.Sprint("the change at watcher ", i), func() bool { return f.Nodes["/n"].Exists() })
	}
	require.Less(t, time.Since(stalled), 5*time.Second)
	for range 6 {
		_, err := s.Get(within(t, 10*time.Second), "/n")
		require.NoError(t, err)
	}
	outlive := time.NewTimer(2*sessionTimeout - time.Since(stalled))
	<-outlive.C
	require.NoError(t, s.Err())
	require.Positive(t, client.Hits(), "void: nothing was held")
}

// A commit whose message has not left was certainly not applied; one whose message
// has left may have been.
func TestOnlyWhatHasLeftIsUncertain(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 60 * time.Second })
	heal := client.Blackhole(testbed.Requests)
	_, err := s.Commit(within(t, 300*time.Millisecond), registry.Create("/left", nil))
	heal()
	require.ErrorIs(t, err, registry.ErrUncertain)
	require.NotErrorIs(t, err, registry.ErrUnavailable)

	heal = client.Refuse()
	client.Drop()
	_, err = s.Get(within(t, 500*time.Millisecond), "/left") // the client notices
	require.ErrorIs(t, err, registry.ErrUnavailable)
	_, err = s.Commit(within(t, 300*time.Millisecond), registry.Create("/stayed", nil))
	heal()
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.NotErrorIs(t, err, registry.ErrUncertain)
	commit(t, s, registry.Create("/stayed", nil))
}
