package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core/request"
)

// A fire that is begun ahead of its time does not run: neither for those who look, nor for a request
// that is to be refused where something runs.
func TestWhatIsBegunAheadDoesNotRun(t *testing.T) {
	inBubble(t, func(b *bed) {
		ctx, cfg := b.Context(), everySecond
		cfg.Failover = true
		a := b.start("a", "127.0.0.1", cfg)
		var it admin.Item
		b.until("the next fire is begun", func() bool {
			var err error
			it, err = b.Item(ctx, "hello", 3)
			return err == nil && !it.Ended.IsZero() && it.Through.After(time.Now())
		})
		require.Equal(b, admin.ItemPending, it.State)
		require.Zero(b, it.Run)
		require.Contains(b, it.Why, "is begun on "+a.id()+", ahead of its time")
		ans, err := b.Explain(ctx, "hello", 3, it.Through)
		require.NoError(b, err)
		require.Equal(b, admin.ToCome, ans.Outcome)
		ans, err = b.Explain(ctx, "hello", 3, it.Through.Add(-time.Second))
		require.NoError(b, err)
		require.Equal(b, admin.Ended, ans.Outcome, ans)

		asked := time.Now()
		succeeded := []request.Outcome{request.Succeeded, request.Succeeded, request.Succeeded}
		require.Equal(b, succeeded, outcomes(b.trigger(request.Request{Items: []int{0, 1, 2}, Refuse: true})))
		require.Less(b, time.Since(asked), 500*time.Millisecond, "it does not wait for what is begun ahead")
	})
}
