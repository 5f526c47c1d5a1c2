package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// An instance that stood still decides about fires that another one has run meanwhile, when the
// item is its own again: it is refused, and decides anew.
func TestWhatAnotherHasRunIsNotToldAsMissed(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 11, 21, 5, 0, n, 0, time.UTC) }
	for kind, skip := range map[items.Kind]items.Skip{
		items.Begin:   {First: at(3), Last: at(3), Count: 1, Into: at(4)},
		items.Account: {First: at(3), Last: at(4), Count: 2, Reason: event.SkipMissed},
	} {
		change := func() *change {
			return &change{now: func() time.Time { return at(4) }, Action: items.Action{Kind: kind, Due: at(4), Through: at(4), Skips: []items.Skip{skip}}}
		}
		stale := ledger.Item{Through: at(3)}
		require.False(t, change().Apply(&stale, ledger.New(1, 1), false), "%v", kind)
		require.Equal(t, ledger.Item{Through: at(3)}, stale)
		rec := ledger.Item{Through: at(2)}
		require.True(t, change().Apply(&rec, ledger.New(1, 1), false), "%v", kind)
		require.Equal(t, at(4), rec.Through)
		require.Len(t, rec.Told.Notes(), 1)
	}
}
