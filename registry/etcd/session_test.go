package etcd_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// The heart of the matter: nobody else can own what a session owned before its
// own side has said so, whatever is lost on the way.
func TestDoneComesBeforeTheServerDeletes(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	const trials = 30 // two in three let the server delete
	margins := make([]time.Duration, trials)
	stalled := harness.Stalls(t) // by as much a timer may be late
	var wg sync.WaitGroup
	for i := range trials {
		wg.Go(func() {
			s, client := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = time.Second })
			path := fmt.Sprint("/trial-", i)
			commit(t, s, registry.CreateEphemeral(path, nil))
			deleted := bed.Admin().Watch(within(t, 20*time.Second), "/elasticron/1"+path, clientv3.WithFilterPut())
			// Cut at another phase of the heartbeat in every trial.
			phase := time.NewTimer(time.Duration(i) * 25 * time.Millisecond)
			<-phase.C
			heal := client.Blackhole([]testbed.Direction{testbed.Both, testbed.Requests, testbed.Answers}[i%3])
			defer heal()
			if i%3 == 2 {
				// Heartbeats arrive, answers do not: the server keeps the lease.
				deleted = nil
			}
			<-s.Done()
			ended := time.Now()
			deadline := s.Deadline()
			require.False(t, ended.After(deadline.Add(stalled())), "trial %d: Done %v after Deadline", i, ended.Sub(deadline))
			require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
			if deleted == nil {
				return
			}
			<-deleted
			margins[i] = time.Since(deadline)
			require.Positive(t, margins[i], "trial %d: the server deleted before Deadline", i)
		})
	}
	wg.Wait()
	t.Logf("deleted after Deadline by %v", margins)
}

func TestReconnectsWithinTwoSeconds(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 10 * time.Second })
	commit(t, s, registry.CreateEphemeral("/e", nil))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/e", registry.Self))
	f.Until(5*time.Second, "the present state", func() bool { return f.Synced == 1 })

	heal := client.Refuse()
	down := time.NewTimer(4 * time.Second) // long enough for a back-off to grow
	<-down.C
	heal()
	healed := time.Now()
	commit(t, s, registry.Set("/e", []byte("back"), 0))
	f.Until(5*time.Second, "the change", func() bool { return string(f.Nodes["/e"].Value) == "back" })
	require.Less(t, time.Since(healed), 2*time.Second)
	require.NoError(t, s.Err())
	nodes, err := s.Get(within(t, 5*time.Second), "/e")
	require.NoError(t, err)
	require.True(t, nodes[0].Owned, "a blip made the node anew")
	require.Positive(t, client.Hits(), "void: nothing was refused")
}

func TestRevokedLeaseEndsTheSession(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	revoke := func(t *testing.T, s registry.Session) {
		lease, err := strconv.ParseInt(s.ID(), 16, 64)
		require.NoError(t, err)
		require.NoError(t, bed.Revoke(lease))
	}
	t.Run("SeenByHeartbeat", func(t *testing.T) {
		s, _ := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 4 * time.Second })
		revoke(t, s)
		select {
		case <-s.Done():
		case <-time.After(2 * time.Second):
			require.Fail(t, "the next heartbeat should have told")
		}
		require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
		require.NoError(t, s.Close(within(t, 5*time.Second)))
	})
	t.Run("SeenByCommit", func(t *testing.T) {
		s, _ := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 600 * time.Second })
		revoke(t, s)
		_, err := s.Commit(within(t, 5*time.Second), registry.CreateEphemeral("/seen-by-commit", nil))
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.NotErrorIs(t, err, registry.ErrUncertain)
		<-s.Done()
		_, err = s.Get(within(t, 5*time.Second), "/")
		require.ErrorIs(t, err, registry.ErrSessionLost)
	})
}

// A service that answers later than the next heartbeat is due is slow, and not gone; so is one that becomes slow.
func TestSlowHeartbeatsCount(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed)
	lives := func(d time.Duration) {
		before := s.Deadline()
		eventually(t, 5*sessionTimeout+d, "heartbeats for "+d.String(), func() bool {
			require.NoError(t, s.Err())
			return s.Deadline().Sub(before) > d
		})
	}
	defer client.DelayAnswers(sessionTimeout / 5)()
	lives(sessionTimeout)
	slower := client.DelayAnswers(sessionTimeout / 4)
	lives(3 * sessionTimeout)
	require.Positive(t, client.Hits(), "void: nothing was late")
	slower()
	require.NoError(t, s.Close(within(t, 5*time.Second)))
}

func TestCloseOnALostSessionRevokes(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed)
	commit(t, s, registry.CreateEphemeral("/left", nil))
	heal := client.Blackhole(testbed.Answers) // heartbeats arrive: the lease lives
	<-s.Done()
	heal()
	require.NoError(t, s.Close(within(t, 5*time.Second)))
	got, err := bed.Admin().Get(within(t, 5*time.Second), "/elasticron/1/left")
	require.NoError(t, err)
	require.Empty(t, got.Kvs, "the node outlived Close")
}

func TestCloseIsBounded(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 60 * time.Second })
	defer client.Blackhole(testbed.Both)()
	start := time.Now()
	err := s.Close(within(t, 300*time.Millisecond))
	require.ErrorContains(t, err, "vanish only when it expires")
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
	require.Equal(t, err, s.Close(within(t, time.Second)), "Close is idempotent")
}

// A process that is told to end closes its session with a context that has ended.
func TestCloseWithAnEndedContext(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	ended, end := context.WithCancel(context.Background())
	end()
	other, _ := open(t, bed)
	s, _ := open(t, bed)
	commit(t, s, registry.CreateEphemeral("/gone", nil))
	require.NoError(t, s.Close(ended))
	nodes, err := other.Get(within(t, 5*time.Second), "/gone")
	require.NoError(t, err)
	require.False(t, nodes[0].Exists())

	s, client := open(t, bed)
	defer client.Blackhole(testbed.Both)()
	start := time.Now()
	require.ErrorIs(t, s.Close(ended), registry.ErrUnavailable)
	require.Less(t, time.Since(start), sessionTimeout, "one attempt, of a quarter of the timeout")
}

func TestRegistryCloseDoesNotWait(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	reg, client := connect(t, bed)
	s, err := reg.Open(within(t, 5*time.Second))
	require.NoError(t, err)
	defer client.Blackhole(testbed.Both)()
	start := time.Now()
	require.NoError(t, reg.Close())
	require.Less(t, time.Since(start), 2*time.Second)
	require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
	_, err = reg.Open(within(t, time.Second))
	require.ErrorIs(t, err, registry.ErrClosed)
	_, err = s.Commit(within(t, time.Second), registry.Create("/x", nil))
	require.ErrorIs(t, err, registry.ErrSessionLost)
}

func TestSessionTimeoutIsRoundedUp(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, _ := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = 1500 * time.Millisecond })
	left := time.Until(s.Deadline())
	require.Greater(t, left, 1350*time.Millisecond)
	require.LessOrEqual(t, left, 1800*time.Millisecond)
}
