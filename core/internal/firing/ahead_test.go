package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/timer"
)

// What is held is looked at once some of it may be due, and not with each run that returns: with 50,000 items
// that took longer than the runs.
func TestWhatIsHeldIsNotLookedAtBeforeItIsDue(t *testing.T) {
	now := time.Now()
	f := &Firing{
		wall: timer.NewWall(time.Now), armed: map[int]items.Action{3: {Item: 3, Due: now}}, first: now.Add(time.Nanosecond),
	}
	f.release(now)
	require.Len(t, f.armed, 1, "nobody has looked")
	f.armed[3] = items.Action{Item: 3, Due: now.Add(time.Minute)}
	f.release(f.first)
	require.Equal(t, now.Add(time.Minute), f.first, "looked at, and to be looked at then")
	require.Len(t, f.armed, 1)
	f.disarm(3)
	f.release(f.first)
	require.Zero(t, f.first)
}
