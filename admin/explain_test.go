package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
)

// Why did item 3 not run at 10:00? One case for each outcome, on a job that others run.
func TestExplain(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx := b.Context()
		cfg := everySecond
		cfg.Cron = "0/10 * * * * ?"
		a := b.start("a", "127.0.0.1", cfg)
		ask := func(at time.Time) admin.Answer {
			b.Helper()
			ans, err := b.Explain(ctx, "hello", 3, at)
			require.NoError(b, err)
			require.Equal(b, 3, ans.Item)
			require.NotEmpty(b, ans.Facts)
			return ans
		}
		next := func() time.Time {
			it, err := b.Item(ctx, "hello", 3)
			require.NoError(b, err)
			return it.Next
		}
		due := next()
		require.Equal(b, admin.ToCome, ask(due).Outcome)
		none := ask(due.Add(-3 * time.Second))
		require.Equal(b, admin.NotDue, none.Outcome)
		require.Contains(b, none.Why, due.Format(time.RFC3339))

		b.until("the item has run", func() bool {
			it, err := b.Item(ctx, "hello", 3)
			return err == nil && it.Ended.After(it.Began.Add(-1)) && !it.Ended.IsZero()
		})
		ended := ask(due)
		require.Equal(b, admin.Ended, ended.Outcome, ended)
		require.Contains(b, ended.String(), a.id())

		a.onRun(func(_ context.Context, s core.Shard) error { return errors.New("boom") })
		due = next()
		b.until("the item has failed", func() bool { it, err := b.Item(ctx, "hello", 3); return err == nil && it.Failed })
		require.Equal(b, admin.Failed, ask(due).Outcome)

		release := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-release; return nil })
		due = next()
		b.until("the item runs", func() bool { it, err := b.Item(ctx, "hello", 3); return err == nil && !it.Run.IsZero() })
		require.Equal(b, admin.Runs, ask(due).Outcome)
		owed := next()
		b.until("the next is due", func() bool { return next().After(owed) })
		ans := ask(owed)
		require.Equal(b, admin.Owed, ans.Outcome)
		require.Contains(b, ans.Why, "still runs the fire due at "+due.UTC().Format(time.RFC3339))
		a.onRun(nil)
		close(release)

		b.until("nothing runs", func() bool { it, err := b.Item(ctx, "hello", 3); return err == nil && it.Run.IsZero() })
		require.Equal(b, admin.Settled, ask(due).Outcome, "nobody keeps every fire")

		require.NoError(b, b.DisableItem(ctx, "hello", 3))
		owed = next()
		b.until("the next is due", func() bool { return next().After(owed) })
		ans = ask(owed)
		require.Contains(b, ans.String(), "the item is disabled (/shop/hello/sharding/3/disabled)")
		require.NoError(b, b.EnableItem(ctx, "hello", 3))

		_, err := b.Explain(ctx, "hello", 4, owed)
		require.ErrorIs(b, err, admin.ErrNoItem)
		_, err = b.Explain(ctx, "nobody", 0, owed)
		require.ErrorIs(b, err, admin.ErrNoJob)
	})
}

// What the leader, or the owner, decided against a fire stands in the record until it is
// told.
func TestExplainByTheRecord(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	const id, lost = "10.0.0.1@-@w-abcdefghij", "10.0.0.9@-@x-aaaaaaaaaa"
	for name, c := range map[string]struct {
		group    string
		at       time.Time
		want     admin.Outcome
		why      string
		gone     bool // the owner
		failover bool
	}{
		"cut": {group: `"told":[{"due":"2026-11-21T10:00:00Z","instance":"` + lost + `"}]`, at: at, want: admin.Cut,
			why: "it began on " + lost + ", whose life ended before its end was recorded; it may have finished, and does not run again"},
		"cut for a reason": {group: `"told":[{"due":"2026-11-21T10:00:00Z","instance":"` + lost + `","reason":"too late to run again"}]`, at: at,
			want: admin.Cut, why: "does not run again: too late to run again", failover: true},
		"to run again": {group: `"redo":"2026-11-21T10:00:00Z","lost":"` + lost + `","tries":1`, at: at, want: admin.ToRunAgain, failover: true,
			why: "the fire due at 2026-11-21T10:00:00Z is to run again, before anything else of the item: " + lost + " died while it ran"},
		"to run again, of two": {group: `"redo":"2026-11-21T10:00:00Z","lost":"` + lost + `","tries":2`, at: at, want: admin.ToRunAgain, failover: true,
			why: "2 instances died while it ran, " + lost + " the last; it begins when " + id + " has a free place, and runs no other such fire"},
		"behind one that is to run again": {group: `"redo":"2026-11-21T10:00:00Z","lost":"` + lost + `","tries":1`, at: at.Add(time.Minute),
			want: admin.Owed, why: "the fire due at 2026-11-21T10:00:00Z is to run again, before anything else of the item", failover: true},
		"runs again": {group: `"run":"2026-11-21T10:00:00Z","lost":"` + lost + `","tries":2`, at: at, want: admin.Runs, failover: true,
			why: "it runs again on " + id + ": 2 instances died while it ran, " + lost + " the last"},
		"its owner is gone": {group: `"run":"2026-11-21T10:00:00Z"`, at: at, want: admin.ToRunAgain, gone: true, failover: true,
			why: id + " died while it ran; now its owner " + id + " is gone; a living instance gets it from the leader"},
		"its owner is gone, without failover": {group: `"run":"2026-11-21T10:00:00Z"`, at: at, want: admin.Cut, gone: true, why: "it began on " + id},
		"its third owner is gone": {group: `"run":"2026-11-21T10:00:00Z","lost":"` + lost + `","tries":2`, at: at, want: admin.Cut, gone: true,
			failover: true, why: "does not run again: three instances died while it ran"},
		"skipped": {group: `"told":[{"due":"2026-11-21T10:00:00Z","first":"2026-11-21T09:00:00Z","count":61,"reason":"disabled"}]`,
			at: at.Add(-30 * time.Minute), want: admin.Skipped, why: "disabled"},
		"before what was skipped": {group: `"told":[{"due":"2026-11-21T10:00:00Z","first":"2026-11-21T09:00:00Z","count":61,"reason":"disabled"}]`,
			at: at.Add(-61 * time.Minute), want: admin.Settled, why: "keeps no more"},
		"runs": {group: `"run":"2026-11-21T10:00:00Z"`, at: at, want: admin.Runs, why: id},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				config := strings.Replace(javaConfig("hello", 1), "0/5 * *", "0 * *", 1)
				if c.failover {
					config = strings.Replace(config, "failover: false", "failover: true", 1)
				}
				b.put("/shop/hello/config", config)
				b.put("/shop/hello/servers/10.0.0.1", "ENABLED")
				if !c.gone {
					b.put("/shop/hello/instances/"+id, "")
				}
				b.put("/elasticron/shop/hello/ledgers/"+id, `{"epoch":1,"total":1,"groups":[{"items":"0","through":"2026-11-21T10:00:00Z",`+c.group+`}]}`)
				// The bubble's clock is years behind: what is asked for must not be to come.
				late, err := admin.New(b.store, "shop", admin.WithClock(func() time.Time { return at.Add(time.Hour) }))
				require.NoError(b, err)
				ans, err := late.Explain(b.Context(), "hello", 0, c.at)
				require.NoError(b, err)
				require.Equal(b, c.want, ans.Outcome, ans)
				require.Contains(b, ans.Why, c.why)
			})
		})
	}
}

// What an item says whose fire is to run again, and then runs again: here its owner lost its
// session, and the function of the life before has not returned.
func TestAnItemWhoseFireRunsAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Failover, cfg.Shards, cfg.Cron = true, 1, "0/20 * * * * ?"
		a := b.prepare("a", "127.0.0.1", cfg)
		release := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-release; return nil })
		require.NoError(b, a.Start(b.Context()))
		item := func() admin.Item {
			it, err := b.Item(b.Context(), "hello", 0)
			require.NoError(b, err)
			return it
		}
		b.until("it runs", func() bool { return item().State == admin.ItemRunning })
		require.Empty(b, item().Lost)
		lost, due := a.id(), item().Run
		require.True(b, b.expire(a.State().Session))
		b.until("it is to run again", func() bool { it := item(); return it.Instance != lost && !it.Again.IsZero() })
		it := item()
		require.Equal(b, admin.ItemPending, it.State)
		require.True(b, it.Again.Equal(due))
		require.Zero(b, it.Run)
		require.Equal(b, lost, it.Lost)
		require.Equal(b, 1, it.Deaths)
		require.False(b, it.Failover)
		require.Equal(b, "the fire due at "+due.UTC().Format(time.RFC3339)+" is to run again, before anything else of the item: "+lost+" died while it ran", it.Why)
		next := make(chan struct{})
		a.onRun(func(context.Context, core.Shard) error { <-next; return nil })
		close(release)
		b.until("it runs again", func() bool { return item().State == admin.ItemRunning })
		it = item()
		require.True(b, it.Run.Equal(due))
		require.Zero(b, it.Again)
		require.Equal(b, lost, it.Lost)
		require.Equal(b, 1, it.Deaths)
		require.True(b, it.Failover)
		require.Equal(b, "runs the fire due at "+due.UTC().Format(time.RFC3339)+" on "+it.Instance+", again: "+lost+" died while it ran", it.Why)
		a.onRun(nil)
		close(next)
		b.until("it has run", func() bool { return item().State == admin.ItemPending })
		it = item()
		require.Empty(b, it.Lost)
		require.Zero(b, it.Deaths)
		require.False(b, it.Failover)
	})
}

// A job that records nothing, and one with a fixed delay, say so.
func TestExplainWhatIsNotRecorded(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Monitor = core.MonitorOff
		b.fires(b.start("a", "127.0.0.1", cfg))
		at := time.Now().Truncate(time.Second) // it has fired
		ans, err := b.Explain(b.Context(), "hello", 0, at)
		require.NoError(b, err)
		require.Equal(b, admin.Unrecorded, ans.Outcome)
		delayed := core.JobConfig{Name: "delayed", Cron: "@delay 1s", Shards: 1}
		b.fires(b.start("b", "127.0.0.2", delayed))
		ans, err = b.Explain(b.Context(), "delayed", 0, time.Now().Add(-time.Millisecond))
		require.NoError(b, err)
		require.Equal(b, admin.NotDue, ans.Outcome)
		require.Contains(b, ans.Why, "fixed delay")
	})
}
