package postgres_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

func errorAs[E error](err error) (E, bool) { return errors.AsType[E](err) }

// fewest is how many round trips f makes, at the fewest of three times: the session asks
// for itself, too.
func fewest(client interface{ RoundTrips() int }, f func()) int {
	least := math.MaxInt
	for range 3 {
		client.RoundTrips() // those before do not count
		f()
		least = min(least, client.RoundTrips())
	}
	return least
}

func TestACommitIsOneRoundTrip(t *testing.T) {
	bed := start(t)
	ses, client := open(t, bed, func(c *postgres.Config) { c.SessionTimeout = 10 * time.Minute })
	commit(t, ses, registry.Create("/a", nil))
	require.Equal(t, 10, fewest(client, func() {
		for range 10 {
			commit(t, ses, registry.Set("/a", []byte("x"), registry.AnyVersion))
		}
	}))
	require.Equal(t, 1, fewest(client, func() {
		_, err := ses.Commit(t.Context(), registry.Create("/a", nil))
		require.ErrorIs(t, err, registry.ErrExists)
	}), "one that is refused, too")
	require.Equal(t, 1, fewest(client, func() {
		_, err := ses.Get(t.Context(), "/a", "/b", "/c")
		require.NoError(t, err)
	}))
}

func TestWhatOthersWriteIsHeard(t *testing.T) {
	bed := start(t)
	reg, _ := connect(t, bed, func(c *postgres.Config) { c.SessionTimeout = time.Minute })
	require.Empty(t, warnings(reg))
	requireBell(t, reg, bed)
}

// A commit that writes more names than a notification holds is heard as well.
func TestAStepThatNoNotificationHolds(t *testing.T) {
	bed := start(t)
	ses, _ := open(t, bed, func(c *postgres.Config) { c.SessionTimeout = time.Minute })
	other, _ := open(t, bed)
	commit(t, other, registry.Create("/a", nil))
	f := follow(t, ses)
	require.NoError(t, f.Watcher.Add("/a", registry.Children))
	f.Until(10*time.Second, "the present", func() bool { return f.Synced == 1 })
	var ops []registry.Op
	for i := range 40 {
		ops = append(ops, registry.Create("/a/"+strings.Repeat(string(rune('A'+i)), 250), nil))
	}
	commit(t, other, ops...)
	f.Until(10*time.Second, "all of it", func() bool { return len(f.Nodes) == len(ops) })
}

// All hear of a release, but only the next in line asks.
func TestAReleaseWakesOne(t *testing.T) {
	bed := start(t)
	long := func(c *postgres.Config) { c.SessionTimeout = 10 * time.Minute }
	holder, _ := open(t, bed, long)
	lock, err := holder.Lock(t.Context(), "/lock", nil)
	require.NoError(t, err)
	first, _ := open(t, bed, long)
	got := make(chan error, 2)
	queue := func(s registry.Session, behind int) {
		go func() {
			_, err := s.Lock(t.Context(), "/lock", nil)
			got <- err
		}()
		eventually(t, 10*time.Second, "it waits", func() bool {
			names, err := holder.Children(t.Context(), "/lock")
			return err == nil && len(names) == behind
		})
	}
	queue(first, 2)
	second, client := open(t, bed, long)
	queue(second, 3)
	f := follow(t, second)
	require.NoError(t, f.Watcher.Add("/mark", registry.Self))
	f.Until(10*time.Second, "the present", func() bool { return f.Synced == 1 })
	settled(t, client)
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, <-got)
	commit(t, first, registry.Create("/mark", nil))
	f.Until(10*time.Second, "what was written later", func() bool { return f.Nodes["/mark"].Exists() })
	require.Equal(t, 1, client.RoundTrips(), "who stands behind the next has asked for the mark alone")
	require.NoError(t, first.Close(t.Context()))
	require.NoError(t, <-got)
}

// settled waits until a client has asked nothing for a while, and forgets what it has asked.
func settled(t *testing.T, client interface{ RoundTrips() int }) {
	t.Helper()
	quiet := time.Now()
	eventually(t, 20*time.Second, "it asks nothing more", func() bool {
		if client.RoundTrips() > 0 {
			quiet = time.Now()
		}
		return time.Since(quiet) > 500*time.Millisecond
	})
}

// Whatever a role's default is, what is answered waits for the disk.
func TestCommitsAreDurable(t *testing.T) {
	bed := start(t)
	connect(t, bed)
	ctx := within(t, 10*time.Second)
	conn, err := bed.Connect(ctx, "postgres")
	require.NoError(t, err)
	defer conn.Close(ctx)
	for given, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_apply": "remote_apply"} {
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "SET LOCAL synchronous_commit = "+given)
		require.NoError(t, err)
		var now string
		_, err = tx.Exec(ctx, "SELECT elasticron.rise()")
		require.NoError(t, err)
		require.NoError(t, tx.QueryRow(ctx, "SHOW synchronous_commit").Scan(&now))
		require.Equal(t, want, now)
		require.NoError(t, tx.Rollback(ctx))
	}
}

// What the server's log says of a refused commit is nothing.
func TestRefusalsAreNoErrorsOfTheServer(t *testing.T) {
	bed := start(t)
	ses, _ := open(t, bed)
	commit(t, ses, registry.Create("/a", nil))
	for range 5 {
		_, err := ses.Commit(t.Context(), registry.Set("/a", nil, 77))
		require.ErrorIs(t, err, registry.ErrVersion)
	}
	require.NotContains(t, bed.Log(), "ERROR")
}
