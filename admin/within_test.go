package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core/request"
)

// Whatever the clock says of who asks, a request has as long as it wants: it is the leader that counts.
func TestARequestOfAClockThatIsOff(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var err error
				b.Admin, err = admin.New(b.store, "shop", admin.WithClock(func() time.Time { return time.Now().Add(off) }))
				require.NoError(b, err)
				a := b.start("a", "127.0.0.1", hourly)
				b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
				result := b.trigger(request.Request{})
				require.NoError(b, result.Err())
				require.Len(b, a.ranOf(1), 4)
				require.NoError(b, b.trigger(request.Request{Within: time.Second}).Err())
				require.NoError(b, b.trigger(request.Request{Within: -1}).Err())
			})
		})
	}
}
