package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

// through makes a registry go through pgbouncer.
func through(addr string) func(*postgres.Config) {
	return func(c *postgres.Config) { c.Hosts = []string{addr} }
}

func TestBehindATransactionPooler(t *testing.T) {
	bed := start(t)
	bouncer := bed.StartBouncer(t, "transaction")
	reg, _ := connect(t, bed, through(bouncer.Addr()))
	require.Len(t, warnings(reg), 1)
	require.Contains(t, warnings(reg)[0], "notifications do not come through")
	ses, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	other, _ := open(t, bed)
	f := follow(t, ses)
	require.NoError(t, f.Watcher.Add("/a", registry.Self))
	f.Until(10*time.Second, "the present", func() bool { return f.Synced == 1 })
	commit(t, other, registry.Create("/a", nil))
	f.Until(10*time.Second, "what others wrote, by a poll", func() bool { return f.Nodes["/a"].Exists() })
	for range 100 {
		commit(t, ses, registry.Set("/a", nil, registry.AnyVersion))
	}
	require.NoError(t, ses.Err())
}

func TestBehindASessionPooler(t *testing.T) {
	bed := start(t)
	bouncer := bed.StartBouncer(t, "session")
	reg, _ := connect(t, bed, through(bouncer.Addr()), func(c *postgres.Config) { c.SessionTimeout = time.Minute })
	require.Empty(t, warnings(reg))
	requireBell(t, reg, bed)
}

// requireBell shows that a registry hears what others write, long before a heartbeat.
func requireBell(t *testing.T, reg registry.Registry, bed *testbed.Postgres) {
	t.Helper()
	ses, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	other, _ := open(t, bed)
	f := follow(t, ses)
	require.NoError(t, f.Watcher.Add("/heard", registry.Self))
	f.Until(10*time.Second, "the present", func() bool { return f.Synced == 1 })
	commit(t, other, registry.Create("/heard", nil))
	f.Until(20*time.Second, "what others wrote", func() bool { return f.Nodes["/heard"].Exists() })
	for i := range 20 { // the first may have come before the bell began
		want := commit(t, other, registry.Set("/heard", []byte{byte(i)}, registry.AnyVersion))
		began := time.Now()
		f.Until(20*time.Second, "what others wrote", func() bool { return f.Nodes["/heard"].Modified == want })
		if time.Since(began) > 5*time.Second {
			t.Errorf("seen after %v, as if nothing were heard: heartbeats come every 15 seconds", time.Since(began))
		}
	}
}
