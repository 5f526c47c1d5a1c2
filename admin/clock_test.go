package admin_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
)

// Whose clock is off, and so what does not begin, is said with the reason.
func TestAClockThatIsOffIsToldAsTheReason(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx, cfg := b.Context(), everySecond
		cfg.MaxTimeDiff = 5 * time.Second
		var ahead atomic.Int64
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it leads", func() bool { return len(a.job().Items) == 4 })
		c := b.start("c", "127.0.0.2", cfg, core.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		b.until("both have items", func() bool { return len(a.job().Items) == 2 && len(c.job().Items) == 2 })
		ahead.Store(int64(time.Minute))
		b.until("it is off", func() bool { return c.job().Disabled != "" })
		pause(2 * time.Second)
		instances, err := b.Instances(ctx, "hello")
		require.NoError(b, err)
		require.Len(b, instances, 2)
		for _, in := range instances {
			if in.ID == a.id() {
				require.Empty(b, in.Blocked)
				continue
			}
			require.Contains(b, in.Blocked, "its clock is off: this host's clock says")
			require.Contains(b, in.Blocked, "that of the leader "+a.id()+" says")
		}
		n := c.job().Items[0]
		it, err := b.Item(ctx, "hello", n)
		require.NoError(b, err)
		require.True(b, it.Blocked)
		require.Contains(b, it.Why, "the clock of "+c.id()+" is off")
		ans, err := b.Explain(ctx, "hello", n, time.Now().Truncate(time.Second))
		require.NoError(b, err)
		require.Equal(b, admin.Owed, ans.Outcome)
		require.Contains(b, ans.Why, "the clock of "+c.id()+" is off")
		ahead.Store(0)
		b.until("it goes on", func() bool { it, err := b.Item(ctx, "hello", n); return err == nil && !it.Blocked })
	})
}

// A job whose instances compared their clocks is removed with what they asked by.
func TestAJobIsRemovedWithItsClocks(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx, cfg := b.Context(), everySecond
		cfg.MaxTimeDiff = 5 * time.Second
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it leads", func() bool { return len(a.job().Items) == 4 })
		c := b.start("c", "127.0.0.2", cfg)
		b.until("they compare", func() bool { return b.get("/elasticron/shop/hello/clocks/" + c.id()).Exists() })
		require.NoError(b, c.Stop(ctx))
		require.NoError(b, a.Stop(ctx))
		require.True(b, b.get("/elasticron/shop/hello/clocks").Exists())
		b.remove("/shop/hello/config")
		report, err := b.Inspect(ctx, "hello")
		require.NoError(b, err)
		require.NotEmpty(b, report.Leftovers)
		_, err = b.Reconcile(ctx, "hello", report)
		require.NoError(b, err)
		require.False(b, b.get("/elasticron/shop/hello").Exists())
	})
}
