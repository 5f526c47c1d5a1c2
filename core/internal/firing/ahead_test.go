package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/timer"
)

// What is held is looked at once some of it may be due, and not with each run that returns: with 50,000 items
// that took longer than the runs.
func TestWhatIsHeldIsNotLookedAtBeforeItIsDue(t *testing.T) {
	now := time.Now()
	held := func(item int, due time.Time) *run {
		return &run{cancel: func(error) {}, held: true, Run: Run{Item: item, Due: due}}
	}
	f := &Firing{wall: timer.NewWall(time.Now), armed: []*run{held(3, now)}, first: now.Add(time.Nanosecond)}
	f.release(now)
	require.Len(t, f.armed, 1, "nobody has looked")
	f.armed[0] = held(3, now.Add(time.Minute))
	f.armed[0].of, f.runs = f, map[int]*run{3: f.armed[0]}
	f.release(f.first)
	require.Equal(t, now.Add(time.Minute), f.first, "looked at, and to be looked at then")
	require.Len(t, f.armed, 1)
	require.True(t, f.disarm(3))
	require.False(t, f.disarm(3))
	f.release(f.first)
	require.Zero(t, f.first)
	require.Empty(t, f.armed)
}
