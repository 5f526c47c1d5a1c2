package nodes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/history/nodes"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestEachNodeIsReadWhole(t *testing.T) {
	l := ledger.New(3, 5)
	l.Held = true
	l.Set(1, ledger.Item{Through: noon, Run: noon.Add(time.Second)})
	l.Set(4, ledger.Item{Through: noon, Leaving: true, Bound: "web", Redo: ledger.Redo{Due: noon.Add(-time.Second), Tries: 2}})
	roots := []registry.Node{{Path: "/ledgers/i1", Value: l.Encode(), Created: 1}, {Path: "/ledgers/i2"}, {Path: "/ledgers/i3", Value: []byte("no"), Created: 1}}
	ledgers, broken, err := nodes.Ledgers(t.Context(), nil, roots...)
	require.NoError(t, err)
	require.Len(t, broken, 1)
	require.ErrorContains(t, broken[0], "i3")
	require.Equal(t, history.Ledger{Instance: "i1", Epoch: 3, Total: 5, Held: true, Items: []history.Holding{
		{Item: 1, Through: noon, Run: noon.Add(time.Second)},
		{Item: 4, Through: noon, Leaving: true, Bound: "web", Redo: noon.Add(-time.Second), Tries: 2},
	}}, ledgers[0])
	require.Len(t, ledgers, 1)

	base, err := nodes.Base(layout.MarshalBase(layout.Base{Epoch: 2, From: 4, To: 5, Through: noon, Assigned: true}))
	require.NoError(t, err)
	require.Equal(t, &history.Base{Epoch: 2, From: 4, To: 5, Through: noon, Assigned: true}, base)

	schedule, err := nodes.Schedule(layout.MarshalSchedule(layout.Schedule{
		Number: 9, Rule: layout.Rule{Cron: "@every 2s", Zone: "UTC", Gap: "skip", Overlap: "first"}, Since: noon,
		Before: []layout.Past{{Rule: layout.Rule{Cron: "@every 1s"}, Since: noon.Add(-time.Hour)}},
	}))
	require.NoError(t, err)
	require.Equal(t, &history.Schedule{
		N: 9, Cron: "@every 2s", Zone: "UTC", Gap: "skip", Overlap: "first", Since: noon,
		Before: &history.Schedule{N: 8, Cron: "@every 1s", Since: noon.Add(-time.Hour)},
	}, schedule)

	run, err := nodes.Asked(
		layout.MarshalRun(layout.Run{
			Number: 7, Request: "r1", Items: "0-2", Epoch: 3, Total: 5, At: noon,
			Answers: []layout.Answer{{Items: "2", Outcome: "refused"}},
		}),
		[][]byte{layout.MarshalResults(layout.Results{Results: []layout.Answer{{Items: "0-1", Outcome: "succeeded"}}}), []byte("{")},
	)
	require.NoError(t, err)
	require.Equal(t, history.Asked{
		Number: 7, Request: "r1", Epoch: 3, At: noon, Items: []int{0, 1, 2}, Open: true,
		Outcomes: []history.Outcomes{{Items: []int{2}, Outcome: "refused"}, {Items: []int{0, 1}, Outcome: "succeeded"}},
	}, run)
}

func TestWhatIsNoNodeOfOursIsAnError(t *testing.T) {
	bad := []byte("no")
	_, err := nodes.Schedule(bad)
	require.Error(t, err)
	_, err = nodes.Base(bad)
	require.Error(t, err)
	_, err = nodes.Asked(bad, nil)
	require.Error(t, err)
}
