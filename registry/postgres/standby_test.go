package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

// standby starts one, and waits until it streams.
func standby(t *testing.T, bed *testbed.Postgres, name string) *pgserver.Server {
	t.Helper()
	ctx := within(t, 60*time.Second)
	s, err := bed.Standby(ctx, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	eventually(t, 20*time.Second, "it streams", func() (streams bool) {
		ask(t, bed, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming' AND application_name = '"+name+"'", &streams)
		return streams
	})
	return s
}

// synchronous makes the server wait for a standby.
func synchronous(t *testing.T, bed *testbed.Postgres, name string) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	require.NoError(t, bed.Exec(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'"))
	require.NoError(t, bed.Exec(ctx, "postgres", "SELECT pg_reload_conf()"))
	eventually(t, 20*time.Second, "it is synchronous", func() (sync bool) {
		ask(t, bed, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'", &sync)
		return sync
	})
}

// A session and all that was answered outlive the server: the standby that is promoted has them.
func TestFailoverToASynchronousStandby(t *testing.T) {
	bed := start(t)
	second := standby(t, bed, "second")
	synchronous(t, bed, "second")
	reg, err := postgres.Open(within(t, 20*time.Second), postgres.Config{
		Hosts: []string{bed.Addr(), second.Addr()}, Database: "postgres", Namespace: "test", Username: pgserver.User,
		SessionTimeout: 20 * time.Second, DialTimeout: 2 * time.Second,
	})
	require.NoError(t, err)
	defer reg.Close()
	require.Empty(t, warnings(reg))
	ses, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	f := follow(t, ses)
	require.NoError(t, f.Watcher.Add("/a", registry.Children))
	commit(t, ses, registry.Create("/a", nil), registry.CreateEphemeral("/a/here", nil))
	var last registry.Revision
	for range 200 {
		last = commit(t, ses, registry.Set("/a", []byte("x"), registry.AnyVersion))
	}
	bed.Kill()
	require.NoError(t, second.Promote(within(t, 20*time.Second)))

	nodes, err := ses.Get(within(t, 15*time.Second), "/a", "/a/here")
	require.NoError(t, err)
	require.Equal(t, last, nodes[0].Modified, "every commit that was answered")
	require.True(t, nodes[1].Owned)
	var rev registry.Revision
	eventually(t, 15*time.Second, "commits go on", func() bool {
		rev, err = ses.Commit(t.Context(), registry.CreateEphemeral("/a/there", nil))
		return err == nil
	})
	require.Greater(t, rev, last)
	f.Until(15*time.Second, "the watcher goes on", func() bool { return f.Nodes["/a/there"].Exists() })
	require.NoError(t, ses.Err())
}

func TestAnAsynchronousStandbyIsWarnedOf(t *testing.T) {
	bed := start(t)
	standby(t, bed, "second")
	reg, _ := connect(t, bed)
	require.Len(t, warnings(reg), 1)
	require.Contains(t, warnings(reg)[0], "1 standby servers are asynchronous: promoting one takes back commits that were answered")
	synchronous(t, bed, "second")
	reg, _ = connect(t, bed)
	require.Empty(t, warnings(reg))
}

// A standby itself takes no sessions.
func TestAStandbyAloneIsRefused(t *testing.T) {
	bed := start(t)
	second := standby(t, bed, "second")
	_, err := postgres.Open(within(t, 20*time.Second), postgres.Config{
		Hosts: []string{second.Addr()}, Database: "postgres", Namespace: "test", Username: pgserver.User,
	})
	require.ErrorIs(t, err, registry.ErrUnavailable)
}

// The server says that a commit succeeded whose wait for the standby somebody has cancelled. It may be
// lost yet: nobody knows.
func TestACommitThatNoStandbyConfirmedIsUncertain(t *testing.T) {
	bed := start(t)
	second := standby(t, bed, "second")
	synchronous(t, bed, "second")
	ses, _ := open(t, bed, func(c *postgres.Config) { c.SessionTimeout = 60 * time.Second })
	commit(t, ses, registry.Create("/a", nil))
	second.Kill()
	done := make(chan error, 1)
	go func() {
		_, err := ses.Commit(context.Background(), registry.Create("/b", nil))
		done <- err
	}()
	eventually(t, 20*time.Second, "it waits, and is cancelled", func() (cancelled bool) {
		ask(t, bed, `SELECT coalesce(bool_or(pg_cancel_backend(pid)), false) FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND query LIKE '%elasticron.step(%'`, &cancelled)
		return cancelled
	})
	require.ErrorIs(t, <-done, registry.ErrUncertain)
	require.NoError(t, bed.Exec(within(t, 10*time.Second), "postgres", "ALTER SYSTEM RESET synchronous_standby_names"))
	require.NoError(t, bed.Exec(within(t, 10*time.Second), "postgres", "SELECT pg_reload_conf()"))
}
