package leading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A view and a watch may show the same node in either order.
func TestAMemoryKeepsWhatIsLatest(t *testing.T) {
	now := time.Date(2026, 11, 28, 13, 0, 0, 0, time.UTC)
	base := func(epoch int) layout.Base { return layout.Base{Epoch: epoch, To: 3, Through: now} }
	node := func(value []byte, modified registry.Revision) registry.Node {
		return registry.Node{Path: "/x", Value: value, Created: 1, Modified: modified}
	}
	saw := func(m *Memory, epoch int, modified registry.Revision) {
		m.SawBase(node(layout.MarshalBase(base(epoch)), modified), base(epoch))
		m.SawSchedule(node(layout.MarshalSchedule(layout.Schedule{Number: epoch, Rule: layout.Rule{Cron: "@daily"}}), modified))
		m.SawClaim(node(layout.MarshalClaim(layout.Claim{Started: layout.Cursor{Due: now.Add(time.Duration(epoch)), Attempt: epoch}}), modified))
	}
	knows := func(m *Memory, epoch int) {
		t.Helper()
		require.Equal(t, base(epoch), *m.lastBase())
		s, err := layout.UnmarshalSchedule(m.seen(&m.schedule))
		require.NoError(t, err)
		require.Equal(t, epoch, s.Number)
		c, err := layout.UnmarshalClaim(m.seen(&m.claim))
		require.NoError(t, err)
		require.Equal(t, epoch, c.Started.Attempt)
	}
	var m Memory
	require.Nil(t, m.lastBase())
	require.Empty(t, m.seen(&m.schedule))
	require.Empty(t, m.seen(&m.claim))
	require.Zero(t, m.lastRun())

	saw(&m, 2, 20)
	saw(&m, 1, 10) // shown late
	knows(&m, 2)
	m.SawBase(node(layout.MarshalBase(base(1)), 30), base(1)) // somebody has written the one before over it
	knows(&m, 2)
	saw(&m, 3, 40)
	knows(&m, 3)
	m.wroteBase(base(4))
	m.wrote(&m.schedule, layout.MarshalSchedule(layout.Schedule{Number: 4, Rule: layout.Rule{Cron: "@daily"}}))
	m.wrote(&m.claim, layout.MarshalClaim(layout.Claim{Started: layout.Cursor{Due: now, Attempt: 4}}))
	saw(&m, 3, 40)
	knows(&m, 4)

	m.Anew()
	knows(&m, 4)
	saw(&m, 1, 2) // another registry
	knows(&m, 1)

	m.SawRun(7)
	m.SawRun(5)
	require.EqualValues(t, 7, m.lastRun())
}
