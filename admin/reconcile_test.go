package admin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

const goneID = "10.0.0.9@-@gone-aaaaaaaaaa"

// litter leaves something of each kind behind, beside a job that runs, and what looks like
// it and is none.
func (b *bed) litter() {
	b.Helper()
	b.put("/shop/hello/servers/10.0.0.9", "ENABLED")
	b.put("/shop/hello/servers/10.0.0.8", "DISABLED") // an operator's word
	b.put("/shop/hello/sharding/0/running", goneID)
	b.put("/shop/hello/sharding/1/running", "10.0.0.7@-@4711") // a lock of ElasticJob's
	b.put("/shop/hello/trigger/"+goneID, "")
	b.put("/shop/hello/leader/failover/items/2", "")
	b.put("/shop/hello/sharding/2/failovering", goneID)
	b.put("/elasticron/shop/hello/inforce/paused@gone", "") // an operator's word
	// A job that somebody deleted without our state, and a namespace that is no job.
	b.put("/elasticron/shop/deleted/lives", "")
	b.put("/elasticron/shop/deleted/ledgers/"+goneID, `{"epoch":1,"total":1,"groups":[{"items":"0"}]}`)
	b.put("/elasticron/shop/deleted/notices", "")
	b.put("/elasticron/shop/deleted/offsets/0", "{}")
	b.put("/elasticron/shop/deleted/offsets/1", "{}")
	b.put("/elasticron/shop/deleted/runs/7/"+goneID, "{}")
	b.put("/elasticron/shop/deleted/inforce/base", "{}")
	b.put("/elasticron/shop/team/deleted/lives", "")
}

const litter = `records /elasticron/shop/deleted
failover /shop/hello/leader/failover/items/2
failover /shop/hello/sharding/2/failovering
running /shop/hello/sharding/0/running
server /shop/hello/servers/10.0.0.9
trigger /shop/hello/trigger/` + goneID + "\n"

func TestReconcile(t *testing.T) {
	onEach(t, func(b *bed) {
		ctx := b.Context()
		cfg := everySecond
		cfg.Cron = "0 0 3 * * ?"
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it owns all", func() bool { return spread(map[*instance]int{a: 4}) })
		before, err := b.Inspect(ctx, "")
		require.NoError(b, err)
		require.Empty(b, lines(before))
		b.litter()
		found, err := b.Inspect(ctx, "")
		require.NoError(b, err)
		require.Equal(b, litter, lines(found))
		for _, l := range found.Leftovers {
			require.NotEmpty(b, l.Proof)
			require.True(b, b.get(l.Path).Exists(), "Inspect deletes nothing")
		}

		// What the report has not shown is not deleted.
		report, err := b.Reconcile(ctx, "", before)
		require.NoError(b, err)
		require.Equal(b, len(found.Leftovers), strings.Count(lines(report), "kept: it does not stand in the report"))
		// A server is given time.
		report, err = b.Reconcile(ctx, "", found)
		require.NoError(b, err)
		for _, l := range report.Leftovers {
			require.Equal(b, l.Kind != admin.LeftServer, l.Deleted, l)
			require.Equal(b, l.Deleted, !b.get(l.Path).Exists(), l)
		}
		found.At = found.At.Add(-time.Hour)
		report, err = b.Reconcile(ctx, "", found)
		require.NoError(b, err)
		require.Equal(b, "server /shop/hello/servers/10.0.0.9 deleted\n", lines(report))
		for _, kept := range []string{
			"/shop/hello/servers/10.0.0.8", "/shop/hello/servers/127.0.0.1", "/shop/hello/sharding/1/running",
			"/elasticron/shop/hello/inforce/paused@gone", "/elasticron/shop/team/deleted/lives", "/elasticron/shop/hello/ledgers/" + a.id(),
		} {
			require.True(b, b.get(kept).Exists(), kept)
		}
		require.False(b, b.get("/elasticron/shop/deleted").Exists())
	})
}

// Nodes of items that the total does not have, and empty ledgers of the dead, are the
// leader's to remove. Where it has not, or there is none, they are found.
func TestReconcileWhatALeaderLeaves(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.put("/shop/hello/config", javaConfig("hello", 2))
		b.put("/elasticron/shop/hello/inforce/base", `{"epoch":2,"from":3,"to":2,"through":"2026-11-21T10:00:00Z","assigned":true}`)
		b.put("/elasticron/shop/hello/ledgers/"+goneID, `{"epoch":2,"total":2}`)
		b.put("/elasticron/shop/hello/ledgers/10.0.0.9@-@gone-bbbbbbbbbb", `{"epoch":2,"total":2,"groups":[{"items":"0-1"}]}`)
		b.put("/elasticron/shop/hello/ledgers/10.0.0.9@-@gone-cccccccccc", "not ours")
		b.put("/shop/hello/sharding/1/instance", goneID)
		b.put("/shop/hello/sharding/2/instance", goneID)
		b.put("/shop/hello/sharding/2/disabled", "")
		found, err := b.Inspect(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, "item /shop/hello/sharding/2\nledger /elasticron/shop/hello/ledgers/"+goneID+"\n", lines(found))
		// The proof is in the commit: somebody changes the epoch, or the node, meanwhile.
		b.store.before = func(ops []registry.Op) {
			b.store.before = nil
			b.put("/elasticron/shop/hello/inforce/base", `{"epoch":3,"from":2,"to":3,"through":"2026-11-21T10:00:00Z","assigned":true}`)
		}
		report, err := b.Reconcile(b.Context(), "hello", found)
		require.NoError(b, err)
		require.Contains(b, lines(report), "item /shop/hello/sharding/2 kept: it has changed meanwhile")
		require.True(b, b.get("/shop/hello/sharding/2/instance").Exists())
		b.put("/elasticron/shop/hello/inforce/base", `{"epoch":4,"from":3,"to":2,"through":"2026-11-21T10:00:00Z","assigned":true}`)
		report, err = b.Inspect(b.Context(), "hello")
		require.NoError(b, err)
		require.NotContains(b, lines(report), "item", "a ledger of an epoch before still owes something")
	})
}

// Reconcile takes nothing from a job that comes to life meanwhile.
func TestReconcileMeetsALife(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.litter()
		b.remove("/elasticron/shop/hello/inforce/paused@gone")
		found, err := b.Inspect(b.Context(), "deleted")
		require.NoError(b, err)
		require.Len(b, found.Leftovers, 1)
		var a *instance
		cfg := everySecond
		cfg.Name = "deleted"
		b.store.before = func(ops []registry.Op) {
			b.store.before = nil
			a = b.start("a", "127.0.0.1", cfg)
		}
		report, err := b.Reconcile(b.Context(), "deleted", found)
		require.NoError(b, err)
		require.Contains(b, lines(report), "kept: it has changed meanwhile")
		b.fires(a)
	})
}

// The commit that removes a job proves that nobody is there: one who comes between the
// look and the commit keeps the job.
func TestRemoveJobMeetsALife(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", everySecond)
		a.stop(b)
		var c *instance
		b.store.before = func([]registry.Op) {
			b.store.before = nil
			c = b.start("c", "127.0.0.1", everySecond)
		}
		require.ErrorIs(b, b.RemoveJob(b.Context(), "hello"), admin.ErrInUse)
		b.fires(c)
	})
}

// A server is put back when an instance has registered on it meanwhile.
func TestRemoveServersMeetsALife(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", everySecond)
		a.stop(b)
		var c *instance
		b.store.before = func([]registry.Op) {
			b.store.before = nil
			c = b.start("c", "127.0.0.1", everySecond)
		}
		require.NoError(b, b.RemoveServers(b.Context(), admin.Target{Job: "hello"}))
		require.True(b, b.get("/shop/hello/servers/127.0.0.1").Exists())
		b.fires(c)
	})
}

// A configuration is validated before anything is written, and its secrets stay hidden.
func TestConfigs(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx := b.Context()
		b.put("/shop/hello/config", javaConfig("hello", 2)+"props:\n  password: geheim\njobExtraConfigurations:\n- !!x.Y\n  password: geheim\njobShardingStrategyType: OURS\n")
		text := string(b.get("/shop/hello/config").Value)
		c, err := b.Config(ctx, "hello")
		require.NoError(b, err)
		for field, change := range map[string]func(*admin.Config){
			"Cron":   func(c *admin.Config) { c.Cron = "every now and then" },
			"Shards": func(c *admin.Config) { c.Shards = 0 },
			"Name":   func(c *admin.Config) { c.Name = "other" },
			// A strategy that a program brings is known to nobody here, unless it stands there.
			"Strategy": func(c *admin.Config) { c.Strategy = "MINE" },
		} {
			wrong := c
			change(&wrong)
			err := b.SetConfig(ctx, wrong)
			require.ErrorIs(b, err, core.ErrConfig)
			require.ErrorContains(b, err, field)
			require.Equal(b, 1, strings.Count(err.Error(), "job \""), "%v", err)
		}
		require.Equal(b, text, string(b.get("/shop/hello/config").Value))
		c.Description = "new"
		require.NoError(b, b.SetConfig(ctx, c))
		require.Contains(b, string(b.get("/shop/hello/config").Value), "password: geheim")
		require.Contains(b, string(b.get("/shop/hello/config").Value), "description: new")
		dump, err := b.Dump(ctx, "hello")
		require.NoError(b, err)
		require.NotContains(b, dump, "geheim")
		require.Contains(b, dump, "password: hidden")
		b.put("/shop/hello/config", "password: geheim: [")
		dump, err = b.Dump(ctx, "hello")
		require.NoError(b, err)
		require.NotContains(b, dump, "geheim")
		_, err = b.Config(ctx, "hello")
		require.ErrorIs(b, err, core.ErrConfig)
		job, err := b.Job(ctx, "hello")
		require.NoError(b, err)
		require.ErrorIs(b, job.Err, core.ErrConfig)
		_, err = b.Config(ctx, "nobody")
		require.ErrorIs(b, err, admin.ErrNoJob)
	})
}

// An Admin that cannot be, and a registry that does not answer.
func TestNewAndErrors(t *testing.T) {
	inBubble(t, func(b *bed) {
		_, err := admin.New(b.store, "elasticron")
		require.ErrorIs(b, err, core.ErrConfig)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err = b.Jobs(ctx)
		require.ErrorIs(b, err, context.Canceled)
	})
}

// A server is given time to come back, also where a reconciliation comes once in thousands of years.
func TestReconcileOfAJobThatWantsNone(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.put("/shop/hello/config", strings.Replace(javaConfig("hello", 2), "reconcileIntervalMinutes: 10", "reconcileIntervalMinutes: 2147483647", 1))
		b.put("/shop/hello/servers/10.0.0.9", "ENABLED")
		found, err := b.Inspect(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, "server /shop/hello/servers/10.0.0.9\n", lines(found))
		found.At = found.At.Add(-time.Hour)
		report, err := b.Reconcile(b.Context(), "hello", found)
		require.NoError(b, err)
		require.Contains(b, lines(report), "kept: the report is 1h0m0s old")
	})
}

// A job whose path is a namespace takes no job of that with it.
func TestRemoveJobTakesNoNamespaceWithIt(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.put("/shop/hello/config", javaConfig("hello", 2))
		b.put("/shop/hello/team/config", javaConfig("team", 2))
		b.put("/elasticron/shop/hello/lives", "")
		b.put("/elasticron/shop/hello/team/lives", "")
		require.ErrorContains(b, b.RemoveJob(b.Context(), "hello"), `its path is a namespace with jobs, "team" among them`)
		for _, kept := range []string{"/shop/hello/config", "/shop/hello/team/config", "/elasticron/shop/hello/team/lives"} {
			require.True(b, b.get(kept).Exists(), kept)
		}
		require.NoError(b, b.Readmit(b.Context(), "hello"), "it was not removed")
		b.remove("/shop/hello/team/config")
		require.NoError(b, b.RemoveJob(b.Context(), "hello"))
	})
}
