package admin_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/request"
)

// bound starts two instances that share four items, which are bound to them then.
func (b *bed) bound(cfg core.JobConfig) (a, c *instance) {
	b.Helper()
	a, c = b.start("a", "127.0.0.1", cfg), b.start("c", "127.0.0.2", cfg)
	b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
	stored, err := b.Config(b.Context(), "hello")
	require.NoError(b, err)
	stored.StaticSharding = true
	require.NoError(b, b.SetConfig(b.Context(), stored))
	for _, in := range []*instance{a, c} {
		b.until("it is on", func() bool {
			_, is := told(in, func(e event.ConfigChanged) bool { return e.Changes[0].Field == "StaticSharding" })
			return is
		})
	}
	return a, c
}

func (b *bed) items() []admin.Item {
	b.Helper()
	all, err := b.Items(b.Context(), "hello")
	require.NoError(b, err)
	return all
}

// What operators see of items that are bound to an instance which is away, and of a request for
// them.
func TestWhatIsBoundToWhoIsAway(t *testing.T) {
	onEach(t, func(b *bed) {
		cfg := everySecond
		a, c := b.bound(cfg)
		own := a.job().Items
		b.until("they say so", func() bool { return b.items()[0].Bound != "" })
		for _, it := range b.items() {
			require.Equal(b, map[bool]string{true: "a", false: "c"}[slices.Contains(own, it.Number)], it.Bound)
			require.False(b, it.Blocked, it.Why)
		}
		a.stop(b)
		const away = "it is bound to the instance a, which is away, and no other may begin it (staticSharding)"
		b.until("it is away", func() bool { return b.items()[own[0]].Why == away })
		b.fires(c)
		for _, n := range own {
			it := b.items()[n]
			require.Equal(b, admin.ItemSharding, it.State)
			require.True(b, it.Blocked)
			require.Equal(b, away, it.Why)
		}
		j, err := b.Job(b.Context(), "hello")
		require.NoError(b, err)
		require.Equal(b, admin.JobSharding, j.State)
		require.Contains(b, j.Why, "is bound to the instance a, which is away")

		due := time.Now().Truncate(time.Second)
		ans, err := b.Explain(b.Context(), "hello", own[0], due)
		require.NoError(b, err)
		require.Equal(b, admin.Owed, ans.Outcome)
		require.Equal(b, away, ans.Why)
		ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
		defer cancel()
		answers, err := b.AwaitFire(ctx, "hello", due)
		require.NoError(b, err, "who is away does not hold it up")
		require.Len(b, answers, 4)

		report, err := b.Inspect(b.Context(), "hello")
		require.NoError(b, err)
		require.Empty(b, lines(report), "what the instance comes back to is no leftover")

		result := b.trigger(request.Request{})
		for _, it := range result.Items {
			require.Equal(b, map[bool]request.Outcome{true: request.Absent, false: request.Succeeded}[slices.Contains(own, it.Item)], it.Outcome)
		}
		result = b.trigger(request.Request{Items: own})
		require.Equal(b, []request.Outcome{request.Absent, request.Absent}, outcomes(result))
		require.ErrorContains(b, result.Err(), "absent")

		a = b.start("a", "127.0.0.1", cfg)
		b.until("it has its own", func() bool { return slices.Equal(own, a.job().Items) })
		require.NoError(b, b.trigger(request.Request{}).Err())
		b.until("nothing is in the way", func() bool { return !b.items()[own[0]].Blocked && b.items()[own[0]].State == admin.ItemPending })
	})
}

// An instance goes while its items wait to begin what was asked for: the run ends without them.
func TestARunEndsWithoutWhoIsAway(t *testing.T) {
	onEach(t, func(b *bed) {
		a, c := b.bound(hourly)
		own := c.job().Items
		c.onRun(func(ctx context.Context, _ core.Shard) error {
			<-ctx.Done()
			return ctx.Err()
		})
		first, err := b.Trigger(b.Context(), "hello", request.Request{})
		require.NoError(b, err)
		b.until("c runs", func() bool { return len(c.job().Running) == 2 })
		second, err := b.Trigger(b.Context(), "hello", request.Request{})
		require.NoError(b, err)
		b.until("a has run for both", func() bool { return len(a.ranOf(2)) == 2 })
		impatient, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
		defer cancel()
		_ = c.Stop(impatient)
		for id, outcome := range map[string]request.Outcome{first: request.Failed, second: request.Absent} {
			for _, it := range b.awaited(id).Items {
				require.Equal(b, map[bool]request.Outcome{true: outcome, false: request.Succeeded}[slices.Contains(own, it.Item)], it.Outcome)
			}
		}
	})
}

// What is lent says to whom it belongs.
func TestWhatIsLent(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Failover = true
		a, c := b.bound(cfg)
		own := a.job().Items
		stuck, let := make(chan struct{}), make(chan struct{})
		a.onRun(func(ctx context.Context, _ core.Shard) error {
			<-ctx.Done()
			<-stuck
			return ctx.Err()
		})
		c.onRun(func(_ context.Context, s core.Shard) error {
			if s.Source == core.SourceFailover {
				<-let
			}
			return nil
		})
		b.until("a runs both", func() bool { return len(a.job().Running) == 2 })
		lost := a.id()
		require.True(b, b.expire(a.State().Session))
		b.until("they run again", func() bool {
			return b.items()[own[0]].State == admin.ItemRunning && b.items()[own[0]].Instance == c.id()
		})
		it := b.items()[own[0]]
		require.Equal(b, "a", it.Bound)
		require.Equal(b, lost, it.Lost)
		require.Contains(b, it.Why, "; it is bound to the instance a, which is away, and is lent for that alone")
		close(let)
		close(stuck)
		b.until("a has its own again", func() bool { return slices.Equal(own, a.job().Items) && b.items()[own[0]].Instance == a.id() })
	})
}
