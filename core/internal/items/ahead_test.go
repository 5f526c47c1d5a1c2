package items

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// ahead begins fires up to two seconds before they are due.
var ahead = Config{Settings: Settings{Monitor: true, Misfire: once, Ahead: 2 * time.Second}}

// A fire is begun shortly before it is due, by the timer, and handed over then.
func TestAFireIsBegunAhead(t *testing.T) {
	m := owning(ahead, 1)
	next, _ := m.Next(at(1))
	require.Equal(t, at(8), next)
	fire, _ := m.NextFire(at(1))
	require.Equal(t, at(10), fire)
	require.Equal(t, []Action{{Kind: Begin, Due: at(10)}}, m.Tick(at(8)))
	next, _ = m.Next(at(8))
	require.Equal(t, at(10), next)
	require.Equal(t, []Action{{Kind: Run, Due: at(10), Fence: 1, Ahead: true}}, m.Begun(0, at(10), 1))
	require.Empty(t, m.Tick(at(10)))
	require.True(t, m.Entered(0, at(10)))
	require.Equal(t, []Action{{Kind: End, Due: at(10), Through: at(10)}}, m.Returned(0, at(10), at(11)), "the next one is not near")
	require.Empty(t, m.Committed(0, at(10), at(11)))
	require.Equal(t, at(20), one(t, m.Tick(at(18)), Begin).Due)
}

// Jobs that fire together begin at different moments.
func TestJobsBeginAheadApart(t *testing.T) {
	c := ahead
	c.Spread = 0.5
	m := owning(c, 1)
	next, _ := m.Next(at(1))
	require.Equal(t, at(8.5), next)
	require.Empty(t, m.Tick(at(8.4)))
	require.Equal(t, "Begin", says(m.Tick(at(8.5))))
}

// Where the next fire is near, the end of a run asks for its begin too.
func TestAnEndAsksForTheNextBegin(t *testing.T) {
	ended := func() *Machine {
		m := owning(ahead, 1)
		ranFrom(t, m, m.Tick(at(8)))
		require.Equal(t, []Action{{Kind: End, Due: at(10), Through: at(10), Next: at(20)}}, m.Returned(0, at(10), at(19)))
		return m
	}
	m := ended()
	require.Equal(t, []Action{{Kind: Run, Due: at(20), Fence: 2, Ahead: true}}, m.Followed(0, at(10), at(20), 2, at(19)))
	require.True(t, m.Entered(0, at(20)))
	require.Equal(t, at(20), one(t, m.Returned(0, at(20), at(21)), End).Through)

	m = ended() // the record did not let it
	require.Equal(t, at(20), one(t, m.Committed(0, at(10), at(19.5)), Begin).Due)

	m = ended()
	m.Stop()
	back := one(t, m.Followed(0, at(10), at(20), 2, at(19)), GiveBack)
	require.Equal(t, at(10), back.Through)
	require.Equal(t, at(20), back.Due)
	require.Empty(t, m.Committed(0, at(10), at(19)))
	require.True(t, m.Quiet())
	require.Empty(t, m.Followed(0, at(10), at(20), 2, at(19)), "nothing waits for it")
}

// What is owed goes first.
func TestNothingIsBegunAheadOfWhatIsOwed(t *testing.T) {
	m := owning(ahead, 1)
	ranFrom(t, m, m.Tick(at(8)))
	require.Equal(t, at(20), one(t, m.Returned(0, at(10), at(29)), End).Next)
	a := one(t, m.Committed(0, at(10), at(29)), Begin)
	require.Equal(t, at(20), a.Due)
}

// The end of a run that has outlasted the next fire asks for the begin of what is owed, whether or not
// fires are begun ahead of their time.
func TestAnEndAsksForTheBeginOfWhatIsOwed(t *testing.T) {
	folded := []Skip{{First: at(20), Last: at(20), Count: 1, Into: at(30)}}
	ended := func() *Machine {
		m := owning(Config{Settings: Settings{Monitor: true, Misfire: once}}, 1)
		ranFrom(t, m, m.Tick(at(10)))
		require.Equal(t, []Action{{Kind: End, Due: at(10), Through: at(10), Next: at(30), NextSkips: folded}}, m.Returned(0, at(10), at(31)))
		return m
	}
	m := ended()
	require.Equal(t, []Action{{Kind: Run, Due: at(30), Fence: 2, MadeUp: true, Folded: 1}}, m.Followed(0, at(10), at(30), 2, at(32)))
	require.Equal(t, Told(folded), m.items[0].told)
	require.True(t, m.Entered(0, at(30)))
	require.Equal(t, []Action{{Kind: End, Due: at(30), Through: at(30)}}, m.Returned(0, at(30), at(33)))

	m = ended() // the record did not let it: it is decided anew
	a := one(t, m.Committed(0, at(10), at(41)), Begin)
	require.Equal(t, at(40), a.Due)
	require.Equal(t, 2, a.Skips[0].Count)

	m = ended()
	m.Stop()
	back := one(t, m.Followed(0, at(10), at(30), 2, at(32)), GiveBack)
	require.Equal(t, at(20), back.Through, "what was folded has been told")
	require.Equal(t, at(30), back.Due)
	require.Empty(t, m.Committed(0, at(20), at(33)))
	require.True(t, m.Quiet())

	m = ended() // beside it nothing begins, and whoever lets this one go again tells what came due
	m.Foreign(true, at(32))
	require.Equal(t, at(20), one(t, m.Followed(0, at(10), at(30), 2, at(32)), GiveBack).Through)

	// Whatever else is seen meanwhile: it is due, so it runs, and stands for what was folded into it.
	for name, see := range map[string]func(m *Machine){
		"the item is disabled":     func(m *Machine) { m.Known(0, true, at(32)) },
		"the server is disabled":   func(m *Machine) { m.Server(false, at(32)) },
		"the clock is not trusted": func(m *Machine) { m.Still(true, at(32)) },
		"the clock was set":        func(m *Machine) { m.ClockSet(time.Hour, at(32)) },
		"somebody listens":         func(m *Machine) { s := m.set; s.Rounds = true; m.Change(s, at(32)) },
		"somebody asks for a run": func(m *Machine) {
			m.Asked([]Ask{{Number: 1, Epoch: 1, At: at(32), Items: map[int]bool{0: true}}}, 1, at(32))
		},
	} {
		m = ended()
		see(m)
		require.Equal(t, at(30), one(t, m.Followed(0, at(10), at(30), 2, at(32)), Run).Due, name)
	}
}

// A schedule that comes while an end asks for the begin of what is owed does not take that back: its folded fires are
// told, and by the new schedule it might never come. What it passes of the new one is told once it has returned.
func TestWhatIsOwedByTheScheduleBeforeRuns(t *testing.T) {
	before := misfire.Line{Now: grid(10 * time.Second)}
	m := owning(Config{Settings: Settings{Monitor: true, Misfire: once, Fires: before}}, 1)
	ranFrom(t, m, m.Tick(at(10)))
	require.Equal(t, at(30), one(t, m.Returned(0, at(10), at(31)), End).Next)
	after := m.Settings()
	after.Fires = misfire.Line{Before: before, Since: at(21), Now: grid(7 * time.Second)}
	require.Empty(t, m.Change(after, at(32)))
	require.Equal(t, at(30), one(t, m.Followed(0, at(10), at(30), 2, at(33)), Run).Due)
	require.True(t, m.Entered(0, at(30)))
	actions := m.Returned(0, at(30), at(34))
	require.Len(t, actions, 2)
	require.Equal(t, End, actions[1].Kind)
	require.Equal(t, []Skip{{First: at(23), Last: at(23), Count: 1, Reason: event.SkipSchedule}}, actions[0].Skips)

	// Given back all the same, what was folded has passed fires of the new schedule too.
	for name, change := range map[string]func(m *Machine){
		"ElasticJob leads":    func(m *Machine) { m.Foreign(true, at(43)) },
		"the instance stops":  func(m *Machine) { m.Stop() },
		"ElasticJob, briefly": func(m *Machine) { m.Foreign(true, at(43)); m.Foreign(false, at(43)) },
	} {
		m := owning(Config{Settings: Settings{Monitor: true, Misfire: once, Fires: before}}, 1)
		ranFrom(t, m, m.Tick(at(10)))
		require.Equal(t, at(40), one(t, m.Returned(0, at(10), at(41)), End).Next)
		after.Fires = misfire.Line{Before: before, Since: at(11), Now: grid(7 * time.Second)}
		require.Empty(t, m.Change(after, at(42)))
		change(m)
		back := one(t, m.Followed(0, at(10), at(40), 2, at(43)), GiveBack)
		require.Equal(t, at(30), back.Through)
		told := m.Committed(0, at(30), at(44))
		require.NotEmpty(t, told, name)
		require.Equal(t, []Skip{{First: at(16), Last: at(23), Count: 2, Reason: event.SkipSchedule}}, told[0].Skips, name)
	}
}

// All fires that are owed run one after the other, a commit each.
func TestABacklogCostsACommitAFire(t *testing.T) {
	m := owning(Config{Settings: Settings{Monitor: true, Misfire: each}}, 1)
	ranFrom(t, m, m.Tick(at(10)))
	due, now := 10, 55.0
	for ; due < 50; due += 10 {
		a := one(t, m.Returned(0, at(float64(due)), at(now)), End)
		require.Equal(t, at(float64(due+10)), a.Next)
		require.Empty(t, a.NextSkips)
		run := one(t, m.Followed(0, at(float64(due)), a.Next, 2, at(now)), Run)
		require.True(t, run.MadeUp)
		require.True(t, m.Entered(0, run.Due))
		now++
	}
	require.Zero(t, one(t, m.Returned(0, at(50), at(now)), End).Next)
	require.Empty(t, m.Committed(0, at(50), at(now)))
}

// An end is a plain one where something else comes first, or may.
func TestAnEndThatAsksForNoBegin(t *testing.T) {
	for name, change := range map[string]func(s *Settings, m *Machine){
		"what came due while it ran is skipped": func(s *Settings, _ *Machine) { s.Misfire = skip },
		"somebody listens to rounds":            func(s *Settings, _ *Machine) { s.Rounds = true },
		"the server is disabled":                func(_ *Settings, m *Machine) { m.Server(false, at(11)) },
		"the item is disabled":                  func(_ *Settings, m *Machine) { m.Known(0, true, at(11)) },
		"ElasticJob leads":                      func(_ *Settings, m *Machine) { m.Foreign(true, at(11)) },
		"the clock cannot be trusted":           func(_ *Settings, m *Machine) { m.Still(true, at(11)) },
		"the instance stops":                    func(_ *Settings, m *Machine) { m.Stop() },
		"somebody asks for a run": func(_ *Settings, m *Machine) {
			m.Asked([]Ask{{Number: 3, Epoch: 1, At: at(11), Items: map[int]bool{0: true}}}, 3, at(11))
		},
		"fires until lately were ElasticJob's": func(s *Settings, _ *Machine) { s.Floor = at(15) },
	} {
		t.Run(name, func(t *testing.T) {
			set := Settings{Monitor: true, Misfire: once, Fires: grid(10 * time.Second)}
			m := owning(Config{Settings: set}, 1)
			ranFrom(t, m, m.Tick(at(10)))
			change(&set, m)
			m.Change(set, at(11))
			end := one(t, m.Returned(0, at(10), at(31)), End)
			require.Zero(t, end.Next)
			require.Empty(t, end.NextSkips)
		})
	}
}

// A switch that is seen before a fire is due takes its begin back, wherever it is.
func TestWhatIsBegunAheadIsRecalled(t *testing.T) {
	other := ahead.Settings
	other.Fires = misfire.Line{Now: grid(7 * time.Second), Before: grid(10 * time.Second), Since: at(8)}
	for name, change := range map[string]func(m *Machine) []Action{
		"the item is disabled":     func(m *Machine) []Action { return m.Known(0, true, at(9)) },
		"the server is disabled":   func(m *Machine) []Action { return m.Server(false, at(9)) },
		"ElasticJob leads":         func(m *Machine) []Action { return m.Foreign(true, at(9)) },
		"the clock is not trusted": func(m *Machine) []Action { return m.Still(true, at(9)) },
		"the schedule has changed": func(m *Machine) []Action { return m.Change(other, at(9)) },
		"the clock was set back":   func(m *Machine) []Action { m.ClockSet(-time.Hour, at(9-3600)); return m.Tick(at(9 - 3600)) },
		"the item leaves": func(m *Machine) []Action {
			return m.Own(all(1, ledger.Item{Through: at(10), Run: at(10), Leaving: true}), at(9))
		},
		"the instance has lost it": func(m *Machine) []Action { return m.Own(ledger.New(1, 1), at(9)) },
		"the scheduler is to stop": func(m *Machine) []Action { return m.Stop() },
		"somebody asks for a run": func(m *Machine) []Action {
			return m.Asked([]Ask{{Number: 1, Epoch: 1, At: at(8.5), Items: map[int]bool{0: true}}}, 1, at(9))
		},
		"somebody listens to rounds": func(m *Machine) []Action { s := m.set; s.Rounds = true; return m.Change(s, at(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := owning(ahead, 1)
			one(t, m.Tick(at(8)), Begin)
			m.Begun(0, at(10), 1)
			require.Equal(t, Action{Kind: Drop, Due: at(10)}, change(m)[0])
			back := one(t, m.Dropped(0, at(10)), GiveBack)
			require.Equal(t, zero, back.Through)

			m = owning(ahead, 1) // before its begin is committed
			one(t, m.Tick(at(8)), Begin)
			for _, a := range change(m) {
				require.NotEqual(t, Drop, a.Kind)
			}
			require.Equal(t, zero, one(t, m.Begun(0, at(10), 1), GiveBack).Through)
		})
	}
}

// Once it is due a fire that has begun runs, as one does that waits for a place.
func TestWhatIsDueIsNotRecalled(t *testing.T) {
	m := owning(ahead, 1)
	one(t, m.Tick(at(8)), Begin)
	m.Begun(0, at(10), 1)
	require.Empty(t, m.Known(0, true, at(10)))
	require.True(t, m.Entered(0, at(10)))
}

func TestWhereNothingIsBegunAhead(t *testing.T) {
	with := func(change func(s *Settings)) Config {
		c := ahead
		change(&c.Settings)
		return c
	}
	for name, c := range map[string]Config{
		"where it is switched off":            with(func(s *Settings) { s.Ahead = 0 }),
		"without monitoring":                  with(func(s *Settings) { s.Monitor = false }),
		"with a fixed delay":                  with(func(s *Settings) { s.Delayed, s.Delay = true, 9500*time.Millisecond }),
		"where somebody listens":              with(func(s *Settings) { s.Rounds = true }),
		"up to where an instance of Java led": with(func(s *Settings) { s.Floor = at(10) }),
	} {
		m := owning(c, 1)
		require.Empty(t, m.Tick(at(9)), name)
	}
	m := owning(ahead, 2)
	m.Known(1, true, at(2))
	require.Equal(t, []Action{{Kind: Begin, Due: at(10)}}, m.Tick(at(9)), "item 1 is disabled")
	l := all(1, ledger.Item{Through: zero})
	l.Held = true
	m = owning(ahead, 1)
	m.Own(l, at(2))
	require.Empty(t, m.Tick(at(9)), "the ledger is held")
}

// A fire that its dead owner had begun ahead runs again when it is due, not before.
func TestWhatWasBegunAheadRunsAgainWhenItIsDue(t *testing.T) {
	c := ahead
	c.Failover = true
	m := owning(c, 1)
	require.Empty(t, m.Own(all(1, ledger.Item{Through: at(10), Redo: ledger.Redo{Due: at(10), Lost: "dead", Tries: 1}}), at(9)))
	next, _ := m.Next(at(9))
	require.Equal(t, at(10), next)
	a := one(t, m.Tick(at(10)), Begin)
	require.True(t, a.Redo)
	require.Equal(t, at(10), a.Due)
}
