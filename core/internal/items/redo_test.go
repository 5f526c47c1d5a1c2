package items

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// lost is an item whose owner died while it ran the fire of ten seconds, so many times.
func lost(tries int) ledger.Item {
	return ledger.Item{Through: at(10), Redo: ledger.Redo{Due: at(10), Lost: "dead", Tries: tries}}
}

// failing is a configuration with failover, and so many places.
func failing(places int) Config {
	return Config{Settings: Settings{Monitor: true, Failover: true, Misfire: once, Fires: grid(10 * time.Second)}, Places: places}
}

// owed returns a machine that owns items of which a fire is to run again, once they are known.
func owed(c Config, recs ...ledger.Item) *Machine {
	m := New(c)
	l := ledger.New(1, len(recs))
	for n, rec := range recs {
		l.Set(n, rec)
	}
	m.Own(l, at(12))
	return m
}

// redoing returns a machine whose item 0 is in a phase of a fire that runs again.
func redoing(p phase) *Machine {
	m := owed(failing(0), lost(1))
	switch p {
	case idle:
		return m
	case accounting:
		m.Known(0, true, at(12))
		m.Known(0, false, at(12))
		return m
	}
	steps := []func(){
		beginning: func() { m.Known(0, false, at(12)) },
		queued:    func() { m.Begun(0, at(10), 1) },
		running:   func() { m.Entered(0, at(10)) },
		ending:    func() { m.Returned(0, at(10), at(12)) },
	}
	for q := beginning; q <= p; q++ {
		steps[q]()
	}
	return m
}

// The same for a fire that runs again: nothing of its item comes before it.
func TestEveryEventInEveryStateOfAFireThatRunsAgain(t *testing.T) {
	everyEvent(t, redoing, occurrences(lost(1)), map[phase]map[string]string{
		idle: { // it is not known yet whether somebody has disabled the item
			"Known": "Begin → beginning", "disabled": "CutRedo → accounting", "taken": " → gone",
		},
		accounting: {
			"NotOwned": " → idle", "Behind": "Begin → beginning", "Elsewhere": "Begin → beginning", "Committed": " → idle",
			"taken": " → stray",
		},
		beginning: {
			"Begun": "Run → queued", "NotOwned": " → idle", "Behind": "Begin → beginning",
			"Elsewhere": "CutRedo → accounting", "taken": " → stray",
		},
		queued: {"Entered": "yes → running", "Dropped": "GiveBack → ending", "leaving": "Drop → queued",
			"taken": "Drop → stray", "Stop": "Drop → queued", "Foreign": "Drop → queued"},
		running: {"Returned": "End → ending", "Uncalled": "GiveBack → ending", "taken": " → stray"},
		ending:  {"Committed": " → idle", "taken": " → stray"},
	})
}

// It runs once more, says what happened, moves no cursor, and what came due since comes after it.
func TestAFireRunsAgainBeforeWhatCameDueSince(t *testing.T) {
	m := owed(failing(0), lost(1))
	begin := one(t, m.Known(0, false, at(35)), Begin)
	require.Equal(t, Action{Kind: Begin, Due: at(10), Redo: true, Lost: "dead", Tries: 1}, begin)
	require.Equal(t, Action{Kind: Run, Due: at(10), Fence: 9, Redo: true, Lost: "dead", Tries: 1}, one(t, m.Begun(0, at(10), 9), Run))
	require.True(t, m.Entered(0, at(10)))
	end := one(t, m.Returned(0, at(10), at(36)), End)
	require.Equal(t, at(10), end.Through)
	require.Empty(t, end.Skips)
	next := one(t, m.Committed(0, at(10), at(37)), Begin)
	require.Equal(t, at(30), next.Due)
	require.False(t, next.Redo)
	require.Equal(t, []Skip{{First: at(20), Last: at(20), Count: 1, Into: at(30)}}, next.Skips)
}

// Given back it is owed as before, whatever else came due.
func TestAFireThatRunsAgainIsGivenBack(t *testing.T) {
	m := owed(failing(0), lost(1))
	m.Known(0, false, at(25))
	m.Begun(0, at(10), 9)
	back := one(t, m.Dropped(0, at(10)), GiveBack)
	require.True(t, back.Redo)
	require.Equal(t, at(10), back.Through)
	again := one(t, m.Committed(0, at(10), at(26)), Begin)
	require.Equal(t, Action{Kind: Begin, Due: at(10), Redo: true, Lost: "dead", Tries: 1}, again)
}

// What the leader writes while it is being given back does not make the item forget it.
func TestAFireThatIsGivenBackIsNotForgotten(t *testing.T) {
	m := owed(failing(0), lost(1))
	m.Known(0, false, at(12))
	m.Begun(0, at(10), 9)
	m.Dropped(0, at(10))
	begun := ledger.Item{Through: at(10), Run: at(10), Redo: ledger.Redo{Lost: "dead", Tries: 1}, Leaving: true}
	require.Empty(t, m.Own(all(1, begun), at(13)))
	begun.Leaving = false
	m.Own(all(1, begun), at(13))
	again := one(t, m.Committed(0, at(10), at(25)), Begin)
	require.True(t, again.Redo)
	require.Equal(t, at(10), again.Due)
}

// Why it does not run again is told once, with what it was.
func TestAFireThatDoesNotRunAgainIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		why event.CutReason
		cut func(m *Machine) []Action
	}{
		"disabled": {event.CutDisabled, func(m *Machine) []Action { return m.Known(0, true, at(12)) }},
		"off": {event.CutOff, func(m *Machine) []Action {
			s := m.set
			s.Failover = false
			require.Empty(t, m.Change(s, at(12)))
			return m.Known(0, false, at(12))
		}},
		"ElasticJob led meanwhile": {event.CutElasticJob, func(m *Machine) []Action {
			m.Foreign(true, at(12))
			require.Empty(t, m.Known(0, false, at(12)), "nothing begins beside it")
			s := m.set
			s.Floor = at(15)
			require.Empty(t, m.Change(s, at(15)))
			return m.Foreign(false, at(15))
		}},
		"the server was disabled for too long": {event.CutDisabled, func(m *Machine) []Action {
			m.Server(false, at(12))
			require.Empty(t, m.Known(0, false, at(12)), "the leader may move it")
			return m.Server(true, at(11).Add(time.Hour))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := owed(failing(0), lost(1))
			cut := one(t, c.cut(m), CutRedo)
			require.Equal(t, c.why, cut.Cut)
			require.Equal(t, "dead", cut.Lost)
			require.Equal(t, at(10), cut.Due)
			m.Committed(0, at(10), at(12))
			rec := ledger.Item{Through: at(10), Told: ToldCut(ledger.Redo{Due: at(10), Lost: "dead"}, c.why)}
			for _, a := range m.Own(all(1, rec), at(12)) {
				require.NotEqual(t, Tell, a.Kind, "its own note is told once")
			}
		})
	}
}

// A server that is disabled for a moment loses nothing.
func TestAFireRunsAgainWhenItsServerIsEnabled(t *testing.T) {
	m := owed(failing(0), lost(1))
	m.Server(false, at(12))
	require.Empty(t, m.Known(0, false, at(12)))
	require.Equal(t, at(10), one(t, m.Server(true, at(60)), Begin).Due)
}

// After two deaths it begins only with a place for it, and alone of its kind; others do not
// get ahead of it, and go on when it has begun.
func TestAFireThatKilledTwoIsWary(t *testing.T) {
	m := owed(failing(2), lost(2), lost(2), ledger.Item{Through: at(10)}, ledger.Item{Through: at(10)}, ledger.Item{Through: at(10)})
	for n := 2; n < 5; n++ {
		m.Known(n, false, at(12))
	}
	busy := m.Tick(at(20))
	require.Len(t, busy, 3)
	for n := 2; n < 5; n++ {
		m.Begun(n, at(20), 1)
		m.Entered(n, at(20))
	}
	require.Empty(t, m.Known(0, false, at(21)), "there is no place")
	require.Empty(t, m.Known(1, false, at(21)))
	m.Returned(2, at(20), at(30))
	require.Empty(t, m.Committed(2, at(20), at(30)), "nobody gets ahead of it")
	m.Returned(3, at(20), at(31))
	first := m.Committed(3, at(20), at(31))
	require.Equal(t, 0, first[0].Item)
	require.Len(t, first, 3, "it, and then the others")
	require.True(t, first[0].Redo)
	for _, a := range first[1:] {
		require.False(t, a.Redo, "it is alone of its kind")
	}
	m.Begun(0, at(10), 2)
	m.Entered(0, at(10))
	m.Returned(0, at(10), at(32))
	m.Returned(4, at(20), at(32))
	m.Committed(4, at(20), at(32))
	for _, a := range first[1:] {
		m.Begun(a.Item, a.Due, 2)
		m.Entered(a.Item, a.Due)
		m.Returned(a.Item, a.Due, at(33))
		m.Committed(a.Item, a.Due, at(33))
	}
	var next []Action
	for _, a := range m.Committed(0, at(10), at(33)) {
		if a.Redo {
			next = append(next, a)
		}
	}
	require.Equal(t, 1, one(t, next, Begin).Item)
}

// Where somebody listens to rounds what a disabled item skips is recorded at once: nobody waits
// for it.
func TestDisabledItemsHoldUpNoRound(t *testing.T) {
	for _, listened := range []bool{false, true} {
		c := failing(0)
		c.Rounds = listened
		m := owed(c, ledger.Item{Through: at(10)})
		m.Known(0, true, at(12))
		actions := m.Tick(at(20))
		if !listened {
			require.Empty(t, actions)
			continue
		}
		require.Equal(t, "Account", says(actions))
		require.Equal(t, at(20), actions[0].Through)
		require.Empty(t, m.Committed(0, at(20), at(20)))
		require.Empty(t, m.Tick(at(21)))
	}
}

// With a fixed delay what is due waits too for the place that a fire which runs again has waited for.
func TestATickEndsWhileAPlaceIsKept(t *testing.T) {
	start := time.Unix(1_700_000_000, 0).UTC()
	m := New(Config{Settings: Settings{Monitor: true, Failover: true, Delayed: true, Delay: time.Second}, Up: start, Places: 1})
	l := ledger.New(1, 3)
	for n := range 2 {
		l.Set(n, ledger.Item{Through: start})
	}
	m.Own(l, start)
	for n := range 2 {
		m.Known(n, false, start)
	}
	now := start.Add(time.Second)
	actions := m.Tick(now)
	require.Len(t, actions, 2)
	for _, a := range actions { // one runs, one waits for the place
		m.Begun(a.Item, a.Due, 1)
	}
	require.True(t, m.Entered(0, actions[0].Due))
	m.Dropped(1, actions[1].Due)
	l.Set(2, ledger.Item{Through: start, Redo: ledger.Redo{Due: now, Lost: "a", Tries: waryTries}})
	m.Own(l, now)
	m.Known(2, false, now)
	m.Committed(1, start, now) // given back
	ended := make(chan []Action, 1)
	go func() { ended <- m.Tick(now.Add(time.Second)) }()
	select {
	case begun := <-ended:
		require.Empty(t, begun)
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
	again := m.Returned(0, actions[0].Due, now.Add(time.Second))
	again = append(again, m.Committed(0, now.Add(time.Second), now.Add(time.Second))...)
	require.Contains(t, again, Action{Kind: Begin, Item: 2, Due: now, Redo: true, Lost: "a", Tries: waryTries})
}
