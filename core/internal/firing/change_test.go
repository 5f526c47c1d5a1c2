package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// at is a fire of the tests' schedule.
func at(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0).UTC() }

// beginAgain has a fire begin again whose item has accounted for later ones already, as it has where an epoch began
// meanwhile, and returns the record.
func beginAgain(t *testing.T) ledger.Item {
	t.Helper()
	rec := ledger.Item{Through: at(5), Redo: ledger.Redo{Due: at(2), Lost: "a", Tries: 1}}
	c := change{Action: items.Action{Kind: items.Begin, Due: at(2), Redo: true, Lost: "a", Tries: 1}, now: time.Now, epoch: 1}
	require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}))
	require.Equal(t, at(2), rec.Run)
	require.Equal(t, ledger.Redo{Lost: "a", Tries: 1}, rec.Redo, "what it runs again for stays until it has ended")
	return rec
}

// Through rises and never falls: what lies before it has its outcome, and would get a second one.
func TestTheBeginOfAFireThatRunsAgainLeavesTheCursor(t *testing.T) {
	rec := beginAgain(t)
	require.Equal(t, at(5), rec.Through)
	c := change{Action: items.Action{Kind: items.End, Due: at(2), Redo: true, Through: at(4)}, now: time.Now, epoch: 1}
	require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}))
	require.Equal(t, ledger.Item{Through: at(5)}, rec)
}

// An ordinary begin moves it to the fire.
func TestABeginMovesTheCursorToItsFire(t *testing.T) {
	rec := ledger.Item{Through: at(1)}
	c := change{Action: items.Action{Kind: items.Begin, Due: at(2)}, now: time.Now, epoch: 1}
	require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}))
	require.Equal(t, ledger.Item{Through: at(2), Run: at(2)}, rec)
	require.False(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}), "it runs")
	rec.Run = time.Time{}
	require.False(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}), "it has been begun")
}
