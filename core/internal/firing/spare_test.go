package firing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// A beat fires at each multiple of itself.
type beat time.Duration

func (b beat) Next(after time.Time) (time.Time, bool) {
	return after.Truncate(time.Duration(b)).Add(time.Duration(b)), true
}

func (b beat) Prev(before, notBefore time.Time) (time.Time, bool) {
	at := before.Add(-1).Truncate(time.Duration(b))
	return at, !at.Before(notBefore)
}

// A recording host keeps which fires ran, and when.
type recording struct {
	idle
	ran chan<- [2]time.Time
}

func (h recording) Call(_ context.Context, r *Run) error {
	h.ran <- [2]time.Time{r.Due, time.Now()}
	return nil
}

func (recording) FireEnded(*Fire) {}

// While the clock has more to call that is due, an item waits for what follows its return. Its next fires are none
// that were missed: with the policy "skip" nobody would run them. Nor is the timer forgotten.
func TestWhatFollowsARunWaitsForWhatIsDue(t *testing.T) {
	const period = 100 * time.Millisecond
	for name, s := range map[string]items.Settings{
		"unrecorded": {Fires: beat(period), Misfire: misfire.Rule{Policy: misfire.Skip}},
		"recorded":   {Fires: beat(period), Misfire: misfire.Rule{Policy: misfire.Skip}, Monitor: true},
		"ahead":      {Fires: beat(period), Misfire: misfire.Rule{Policy: misfire.Skip}, Monitor: true, Failover: true, Ahead: period / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := make(chan [2]time.Time, 99)
				b := newBed(t, recording{ran: ran}, ledger.Item{Through: time.Now()}, s)
				busy := time.Now().Add(10 * period)
				var returned, unset int
				for range 3 {
					b.clock.Timer(func(time.Time) {
						time.Sleep(60 * time.Millisecond)
						b.firing.mu.Lock()
						defer b.firing.mu.Unlock()
						returned = max(returned, len(b.firing.spare.returned))
						if b.firing.spare.unset {
							unset++
						}
					}).Set(busy)
				}
				b.firing.Own(b.ledger)
				time.Sleep(20*period + period/2)
				synctest.Wait()
				require.True(t, b.firing.Quiet() || s.Ahead > 0)
				b.close(t)
				close(ran)
				next, late := busy.Add(-9*period), 0
				for r := range ran {
					require.Equal(t, next, r[0].Local(), "none is left out")
					if r[1].Sub(r[0]) > 0 {
						late++
					}
					next = next.Add(period)
				}
				require.Equal(t, busy.Add(11*period), next)
				require.LessOrEqual(t, late, 2, "but those that were due meanwhile")
				require.Positive(t, returned, "it had waited")
				require.Positive(t, unset)
			})
		})
	}
}

// The clock is set back while an item waits for what follows its return, and somebody has looked at it. What was near
// when the function returned is not near any more, and is not begun ahead.
func TestTheClockIsSetBackWhileAnItemWaits(t *testing.T) {
	const period = time.Second
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan [2]time.Time, 99)
		b := newBed(t, recording{ran: ran}, ledger.Item{Through: time.Now()}, items.Settings{
			Fires: beat(period), Misfire: misfire.Rule{Policy: misfire.Skip}, Monitor: true, Failover: true, Ahead: period,
		})
		due, waited := time.Now().Add(period), 0
		for i := range 3 {
			b.clock.Timer(func(time.Time) {
				time.Sleep(10 * time.Millisecond)
				b.firing.mu.Lock()
				waited = max(waited, len(b.firing.spare.returned))
				b.firing.mu.Unlock()
				if i == 0 {
					b.set.Add(-int64(time.Hour))
					b.firing.SetServer(true)
				}
			}).Set(due.Add(time.Duration(i + 1))) // after the item
		}
		b.clock.Timer(func(time.Time) { time.Sleep(time.Millisecond) }).Set(due.Add(-1)) // all of them are due then
		b.firing.Own(b.ledger)
		time.Sleep(period + period/2)
		synctest.Wait()
		require.Len(t, ran, 1)
		require.Positive(t, waited, "it had waited")
		require.True(t, b.firing.Quiet(), "the next is due in an hour")
		b.close(t)
	})
}
