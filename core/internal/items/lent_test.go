package items

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// borrowed is an item that belongs to another instance, whose fire of ten seconds is to run again.
func borrowed() ledger.Item {
	rec := lost(1)
	rec.Bound = "away"
	return rec
}

// kept is the same when that has ended.
func kept() ledger.Item { return ledger.Item{Through: at(10), Bound: "away"} }

// lending returns a machine whose item 0 is lent, in a phase of what runs again; idle is after it.
func lending(p phase) *Machine {
	m := owed(failing(0), borrowed())
	steps := []func(){
		beginning: func() { m.Known(0, false, at(12)) },
		queued:    func() { m.Begun(0, at(10), 1) },
		running:   func() { m.Entered(0, at(10)) },
		ending:    func() { m.Returned(0, at(10), at(12)) },
	}
	until := p
	if p == idle {
		until = ending
	}
	for q := beginning; q <= until; q++ {
		steps[q]()
	}
	if p == idle {
		m.Committed(0, at(10), at(12))
		m.Own(all(1, kept()), at(12))
	}
	return m
}

// An item that is lent begins what is to run again; then nothing that happens makes it begin
// anything, or account for a fire, until it is its own again or goes.
func TestWhatIsLentBeginsNothingButWhatRunsAgain(t *testing.T) {
	m := lending(beginning)
	require.Equal(t, []int{0}, m.Lent())
	require.Equal(t, beginning, m.items[0].phase)
	for _, o := range occurrences(kept()) {
		if o.name == "taken" {
			continue
		}
		m := lending(idle)
		m.Change(Settings{Monitor: true, Failover: true, Misfire: once, Rounds: true, Fires: grid(10 * time.Second)}, at(13))
		require.Empty(t, o.send(m, at(10)), o.name)
		require.Equal(t, idle, m.items[0].phase, o.name)
		require.Equal(t, at(10), m.items[0].cursor, o.name)
	}
	m = lending(idle)
	m.Asked([]Ask{{Number: 1, Epoch: 1, At: at(11), Items: map[int]bool{0: true}}}, 1, at(15))
	require.Equal(t, idle, m.items[0].phase)
	require.Empty(t, m.Ahead(at(5)), "its cursor is its owner's")
	for _, s := range []Settings{ // other schedules, monitoring off and on
		{Monitor: true, Fires: grid(time.Second)}, {Monitor: true, Delayed: true, Delay: time.Second},
		{Fires: grid(time.Second)}, {Monitor: true, Fires: grid(time.Second)},
	} {
		require.Empty(t, says(m.Change(s, at(100))))
		require.Empty(t, says(m.Tick(at(200))))
		require.Equal(t, idle, m.items[0].phase)
	}
}

// It is its own again, where static sharding was switched off or the epoch ends.
func TestWhatIsLentNoLonger(t *testing.T) {
	m := lending(idle)
	begin := one(t, m.Own(all(1, ledger.Item{Through: at(10)}), at(25)), Begin)
	require.Equal(t, at(20), begin.Due)
	require.Empty(t, m.Lent())
	m = lending(idle)
	m.set.Misfire = once
	l := all(1, ledger.Item{Through: at(10)})
	l.Held, l.Until = true, at(30)
	require.Equal(t, at(30), one(t, m.Own(l, at(35)), Begin).Due)
}

// What was decided is told once: its owner does not find it.
func TestWhatIsToldOfAnItemThatIsLent(t *testing.T) {
	m := owed(failing(0), borrowed())
	cut := one(t, m.Known(0, true, at(12)), CutRedo)
	require.Equal(t, event.CutDisabled, cut.Cut)
	account := one(t, m.Committed(0, at(10), at(12)), Account)
	require.Equal(t, at(10), account.Through)
	require.Empty(t, m.Committed(0, at(10), at(12)))
}
