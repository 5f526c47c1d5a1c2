package items

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// askFor is an open run of some items, one second after the fire of ten seconds.
func askFor(number int64, of ...int) Ask {
	a := Ask{Number: number, Epoch: 1, At: at(11).Add(time.Duration(number)), Items: map[int]bool{}}
	for _, n := range of {
		a.Items[n] = true
	}
	return a
}

// firstAsk has the instant that the events of the table are about.
var firstAsk = Ask{Number: 1, Epoch: 1, At: at(10), Items: map[int]bool{0: true}}

// asking returns a machine whose item 0 is in a phase of a run that somebody asked for.
func asking(p phase) *Machine {
	m := New(Config{Settings: Settings{Monitor: true, Misfire: once, Fires: grid(10 * time.Second)}})
	m.Own(all(1, ledger.Item{Through: at(10)}), at(12))
	switch p {
	case idle:
		m.Asked([]Ask{firstAsk}, 1, at(12))
		return m
	case accounting:
		m.Known(0, true, at(12))
		m.Known(0, false, at(21))
		m.Asked([]Ask{firstAsk}, 1, at(12))
		return m
	}
	m.Known(0, false, at(12))
	steps := []func(){
		beginning: func() { m.Asked([]Ask{firstAsk}, 1, at(12)) },
		queued:    func() { m.Begun(0, firstAsk.At, 1) },
		running:   func() { m.Entered(0, firstAsk.At) },
		ending:    func() { m.Returned(0, firstAsk.At, at(12)) },
	}
	for q := beginning; q <= p; q++ {
		steps[q]()
	}
	return m
}

// What every event does in every state of a run that somebody asked for: the cursor stays at
// the fire of ten seconds.
func TestEveryEventInEveryStateOfARunThatWasAskedFor(t *testing.T) {
	everyEvent(t, asking, occurrences(ledger.Item{Through: at(10)}), map[phase]map[string]string{
		idle: {"Known": "Begin → beginning", "Reset": "Account → accounting", "taken": " → gone"},
		accounting: {
			"NotOwned": " → idle", "Behind": "Begin → beginning", "Elsewhere": "Begin → beginning",
			"Committed": "Begin → beginning", "taken": " → stray",
		},
		beginning: {
			"Begun": "Run → queued", "NotOwned": " → idle", "Behind": "Begin → beginning", "Elsewhere": " → idle",
			"taken": " → stray",
		},
		queued: {"Entered": "yes → running", "Dropped": "GiveBack → ending", "leaving": "Drop → queued",
			"taken": "Drop → stray", "Stop": "Drop → queued", "Foreign": "Drop → queued"},
		running: {"Returned": "End → ending", "Uncalled": "GiveBack → ending", "taken": " → stray"},
		ending:  {"Committed": " → idle", "taken": " → stray"},
	})
}

// It runs once, says whose it is, moves no cursor, and what came due meanwhile comes after it.
func TestARunThatWasAskedForRunsOnceAndMovesNothing(t *testing.T) {
	m := owning(monitored, 2)
	begin := one(t, m.Asked([]Ask{askFor(4, 0), askFor(7, 0)}, 7, at(2)), Begin)
	require.Equal(t, Action{Kind: Begin, Due: askFor(4).At, Request: 4}, begin)
	run := one(t, m.Begun(0, begin.Due, 9), Run)
	require.Equal(t, Action{Kind: Run, Due: begin.Due, Fence: 9, Request: 4}, run)
	require.Empty(t, m.Asked([]Ask{askFor(4, 0), askFor(7, 0)}, 7, at(3)), "it is in hand")
	require.True(t, m.Entered(0, begin.Due))
	end := one(t, m.Returned(0, begin.Due, at(12)), End)
	require.Equal(t, zero, end.Through)
	require.EqualValues(t, 4, end.Request)
	next := one(t, m.Committed(0, zero, at(12)), Begin)
	require.EqualValues(t, 7, next.Request, "the next that is open, in their order")
	m.Begun(0, next.Due, 10)
	m.Entered(0, next.Due)
	m.Returned(0, next.Due, at(13))
	fire := one(t, m.Committed(0, zero, at(13)), Begin)
	require.Zero(t, fire.Request)
	require.Equal(t, at(10), fire.Due, "what came due meanwhile was missed")
}

func TestARunThatWasAskedForIsGivenBack(t *testing.T) {
	m := asking(queued)
	back := one(t, m.Dropped(0, firstAsk.At), GiveBack)
	require.Equal(t, Action{Kind: GiveBack, Due: firstAsk.At, Through: at(10), Request: 1}, back)
	require.EqualValues(t, 1, one(t, m.Committed(0, at(10), at(12)), Begin).Request)
}

// A record that names a run is believed, by whoever owns it next.
func TestWhatHasBegunElsewhereDoesNotBeginAgain(t *testing.T) {
	m := New(Config{Settings: Settings{Monitor: true, Fires: grid(10 * time.Second)}})
	m.Asked([]Ask{askFor(1, 0), askFor(2, 0)}, 2, at(1))
	m.Own(all(1, ledger.Item{Through: zero, Asked: 1}), at(1))
	require.EqualValues(t, 2, one(t, m.Known(0, false, at(1)), Begin).Request)
}

// A run of another epoch, of other items, one that is closed: none begins.
func TestNothingBeginsForARunThatIsNotOpenHere(t *testing.T) {
	for name, do := range map[string]func(m *Machine) []Action{
		"another epoch": func(m *Machine) []Action {
			a := askFor(1, 0)
			a.Epoch = 2
			return m.Asked([]Ask{a}, 1, at(2))
		},
		"another item": func(m *Machine) []Action { return m.Asked([]Ask{askFor(1, 5)}, 1, at(2)) },
		"closed":       func(m *Machine) []Action { return m.Asked(nil, 1, at(2)) },
		"closed since": func(m *Machine) []Action {
			m.Asked([]Ask{askFor(1, 0)}, 1, at(2))
			return m.Refused(0, firstAsk.At, Shut, ledger.Item{Through: zero}, "", at(2))
		},
		"disabled": func(m *Machine) []Action {
			m.Known(0, true, at(2))
			return m.Asked([]Ask{askFor(1, 0)}, 1, at(2))
		},
		"held": func(m *Machine) []Action {
			l := all(1, ledger.Item{Through: zero})
			l.Held, l.Until = true, zero
			m.Own(l, at(2))
			return m.Asked([]Ask{askFor(1, 0)}, 1, at(2))
		},
		"unmonitored": func(m *Machine) []Action {
			m.Change(Settings{Fires: m.set.Fires}, at(2))
			return m.Asked([]Ask{askFor(1, 0)}, 1, at(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, do(owning(monitored, 1)))
		})
	}
}

// What a dead owner ran for a request runs again like a fire: when the run is known to be
// open, and never when it is closed.
func TestARunThatWasAskedForRunsAgain(t *testing.T) {
	rec := ledger.Item{Through: at(10), Asked: 1, Request: 1, Redo: ledger.Redo{Due: firstAsk.At, Lost: "dead", Tries: 1}}
	m := owed(failing(0), rec)
	require.Empty(t, m.Known(0, false, at(12)), "nothing is known of the run")
	begin := one(t, m.Asked([]Ask{firstAsk}, 1, at(12)), Begin)
	require.Equal(t, Action{Kind: Begin, Due: firstAsk.At, Redo: true, Lost: "dead", Tries: 1, Request: 1}, begin)
	require.EqualValues(t, 1, one(t, m.Begun(0, begin.Due, 9), Run).Request)
	back := one(t, m.Dropped(0, begin.Due), GiveBack)
	require.True(t, back.Redo)
	require.EqualValues(t, 1, back.Asked, "it has begun")
	require.True(t, one(t, m.Committed(0, at(10), at(13)), Begin).Redo)

	m = owed(failing(0), rec)
	m.Asked(nil, 1, at(12))
	require.Equal(t, event.CutClosed, one(t, m.Known(0, false, at(12)), CutRedo).Cut)
}

func TestWhichRunsAreClosed(t *testing.T) {
	m := owning(monitored, 1)
	require.Zero(t, m.Closed())
	m.Asked([]Ask{askFor(5), askFor(7)}, 7, at(1))
	require.EqualValues(t, 4, m.Closed())
	m.Asked(nil, 7, at(1))
	require.EqualValues(t, 7, m.Closed())
	require.EqualValues(t, 7, m.AskedUpTo())
}
