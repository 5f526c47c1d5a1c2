package items

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/core/internal/schedule"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// one requires that there is one action and returns it.
func one(t *testing.T, actions []Action, k Kind) Action {
	t.Helper()
	require.Len(t, actions, 1, "%+v", actions)
	require.Equal(t, kindNames[k], kindNames[actions[0].Kind])
	return actions[0]
}

// ranFrom runs item 0 from its begin to just before its function returns.
func ranFrom(t *testing.T, m *Machine, begin []Action) Action {
	t.Helper()
	a := one(t, begin, Begin)
	one(t, m.Begun(0, a.Due, 1), Run)
	require.True(t, m.Entered(0, a.Due))
	return a
}

// under is a machine's configuration with another misfire rule.
func under(r misfire.Rule) Config {
	return Config{Settings: Settings{Monitor: true, Misfire: r}}
}

var (
	once = misfire.Rule{Policy: misfire.Once, Window: time.Hour}
	skip = misfire.Rule{Policy: misfire.Skip, Window: time.Hour}
	each = misfire.Rule{Policy: misfire.All, Cap: 10, Window: time.Hour}
)

// What comes due while an item runs is made up right after it, by one run: its end keeps
// the cursor below the first of them.
func TestAnOverrunIsMadeUpOnce(t *testing.T) {
	m := owning(under(once), 1)
	ranFrom(t, m, m.Tick(at(11)))
	end := one(t, m.Returned(0, at(10), at(45)), End)
	require.Equal(t, at(10), end.Through)
	require.Empty(t, end.Skips)
	a := one(t, m.Committed(0, at(10), at(46)), Begin)
	require.Equal(t, at(40), a.Due)
	require.Equal(t, []Skip{{First: at(20), Last: at(30), Count: 2, Into: at(40)}}, a.Skips)
	require.Equal(t, Action{Kind: Run, Due: at(40), Fence: 2, MadeUp: true, Folded: 2}, one(t, m.Begun(0, at(40), 2), Run))
	require.True(t, m.Entered(0, at(40)))
	require.Equal(t, at(40), one(t, m.Returned(0, at(40), at(47)), End).Through)
	require.Empty(t, m.Committed(0, at(40), at(47)))
	require.Equal(t, at(50), one(t, m.Tick(at(50)), Begin).Due)
	require.Equal(t, Action{Kind: Run, Due: at(50), Fence: 3}, one(t, m.Begun(0, at(50), 3), Run), "it is on time")
}

// One that comes due shortly before the end of the run before is missed too.
func TestAFireThatAnItemWasBusyForIsMadeUp(t *testing.T) {
	m := owning(under(once), 1)
	ranFrom(t, m, m.Tick(at(11)))
	m.Returned(0, at(10), at(20.2))
	require.Equal(t, at(20), one(t, m.Committed(0, at(10), at(20.3)), Begin).Due)
	require.True(t, one(t, m.Begun(0, at(20), 2), Run).MadeUp)
}

func TestAnOverrunIsSkippedWithItsEnd(t *testing.T) {
	m := owning(under(skip), 1)
	ranFrom(t, m, m.Tick(at(11)))
	end := one(t, m.Returned(0, at(10), at(45)), End)
	require.Equal(t, at(40), end.Through)
	require.Equal(t, []Skip{{First: at(20), Last: at(40), Count: 3, Reason: event.SkipRunning}}, end.Skips)
	require.Empty(t, m.Committed(0, at(40), at(46)))
	require.Equal(t, at(50), one(t, m.Tick(at(50)), Begin).Due)
}

// While an epoch ends the record does not move on with an end: what the machine wanted to
// skip is still owed.
func TestAnEndThatMetAHeldLedgerSkipsNothing(t *testing.T) {
	for name, rule := range map[string]misfire.Rule{"skip": skip, "once": once, "all": each} {
		m := owning(under(rule), 1)
		ranFrom(t, m, m.Tick(at(11)))
		m.Returned(0, at(10), at(45))
		l := all(1, ledger.Item{Through: at(10), Run: at(10)})
		l.Held, l.Until = true, at(30)
		require.Empty(t, m.Own(l, at(45)))
		out := m.Committed(0, at(10), at(46))
		switch rule {
		case skip:
			require.Equal(t, []Action{{Kind: Account, Through: at(30), Skips: []Skip{{First: at(20), Last: at(30), Count: 2,
				Reason: event.SkipMissed}}}}, out)
		case once:
			require.Equal(t, at(30), one(t, out, Begin).Due)
		default:
			require.Equal(t, at(20), one(t, out, Begin).Due, name)
		}
	}
}

func TestTheLatestTenMissedFiresRun(t *testing.T) {
	m := owning(under(each), 1)
	for k := range 10 {
		a := ranFrom(t, m, m.Tick(at(205)))
		require.Equal(t, at(float64(110+10*k)), a.Due)
		if k == 0 {
			require.Equal(t, []Skip{{First: at(10), Last: at(100), Count: 10, Reason: event.SkipBeyond}}, a.Skips)
		} else {
			require.Empty(t, a.Skips)
		}
		require.True(t, m.items[0].madeUp)
		m.Returned(0, a.Due, at(205))
		m.items[0].known = false // holds the next offer back
		m.Committed(0, a.Due, at(205))
		m.items[0].known = true
	}
	require.Empty(t, m.Tick(at(205)))
}

func TestTheLatestMissedFireStandsForAll(t *testing.T) {
	m := owning(under(once), 1)
	a := ranFrom(t, m, m.Tick(at(205)))
	require.Equal(t, at(200), a.Due)
	require.Equal(t, []Skip{{First: at(10), Last: at(190), Count: 19, Into: at(200)}}, a.Skips)
}

func TestNoMissedFireRuns(t *testing.T) {
	m := owning(under(skip), 1)
	a := one(t, m.Tick(at(205)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(200), Count: 20, Reason: event.SkipMissed}}, a.Skips)
	require.Equal(t, at(200), a.Through)
	m.Committed(0, at(200), at(205))
	require.Equal(t, at(210), ranFrom(t, m, m.Tick(at(210.9))).Due, "it is on time")

	m = owning(under(skip), 1)
	a = one(t, m.Tick(at(40.5)), Begin)
	require.Equal(t, at(40), a.Due)
	require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipMissed}}, a.Skips)
}

// The window bounds every policy.
func TestWhatIsTooLateIsTold(t *testing.T) {
	for _, policy := range []misfire.Policy{misfire.Once, misfire.Skip, misfire.All} {
		m := owning(under(misfire.Rule{Policy: policy, Cap: 10, Window: time.Minute}), 1)
		out := m.Tick(at(205))
		require.Len(t, out, 1)
		require.Equal(t, Skip{First: at(10), Last: at(140), Count: 14, Reason: event.SkipLate}, out[0].Skips[0])
	}
}

// What comes due while a fire is made up is owed, not skipped.
func TestAMadeUpFireSkipsNothing(t *testing.T) {
	m := owning(under(each), 1)
	ranFrom(t, m, m.Tick(at(25)))
	end := one(t, m.Returned(0, at(10), at(45)), End)
	require.Equal(t, at(10), end.Through)
	require.Empty(t, end.Skips)
	require.Equal(t, at(20), one(t, m.Committed(0, at(10), at(45)), Begin).Due)
}

// A policy that was changed decides about what is owed from before: nothing is an overrun
// that came due before the run in hand began.
func TestAnotherPolicyDecidesAboutTheBacklog(t *testing.T) {
	m := owning(under(each), 1)
	ranFrom(t, m, m.Tick(at(45)))
	s := m.set
	s.Misfire = skip
	require.Empty(t, m.Change(s, at(46)))
	require.Empty(t, one(t, m.Returned(0, at(10), at(47)), End).Skips)
	a := one(t, m.Committed(0, at(10), at(48)), Account)
	require.Equal(t, []Skip{{First: at(20), Last: at(40), Count: 3, Reason: event.SkipMissed}}, a.Skips)
}

// What was due while no instance was up follows the policy; without a window it never runs.
func TestFiresBeforeTheJobWasUp(t *testing.T) {
	for name, up := range map[string]float64{"between fires": 35, "at a fire": 30} {
		t.Run(name, func(t *testing.T) {
			m := owning(Config{Settings: monitored.Settings, Up: at(up)}, 1)
			a := one(t, m.Tick(at(55)), Begin)
			require.Equal(t, at(50), a.Due)
			require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipDown},
				{First: at(40), Last: at(40), Count: 1, Into: at(50)}}, a.Skips)

			m = owning(Config{Settings: under(once).Settings, Up: at(up)}, 1)
			require.Equal(t, []Skip{{First: at(10), Last: at(40), Count: 4, Into: at(50)}}, one(t, m.Tick(at(55)), Begin).Skips)

			m = owning(Config{Settings: under(skip).Settings, Up: at(up)}, 1)
			require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipDown},
				{First: at(40), Last: at(50), Count: 2, Reason: event.SkipMissed}}, one(t, m.Tick(at(55)), Account).Skips)
		})
	}
	m := owning(Config{Settings: monitored.Settings, Up: at(100)}, 1) // in the future, by another clock
	a := one(t, m.Tick(at(25)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(20), Count: 2, Reason: event.SkipDown}}, a.Skips)
}

// Finding 25: a job of which everything is disabled commits nothing; what it skipped is
// told with the next commit, or when it is enabled.
func TestDisabledItemsAreToldInBulk(t *testing.T) {
	m := owning(monitored, 3)
	for n := range 3 {
		require.Empty(t, m.Known(n, true, at(1)))
	}
	for s := 10; s < 100; s++ {
		require.Empty(t, m.Tick(at(float64(s))))
	}
	a := one(t, m.Known(1, false, at(99)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(90), Count: 9, Reason: event.SkipDisabled}}, a.Skips)
	require.Equal(t, at(90), a.Through)
	require.Empty(t, m.Committed(1, at(90), at(99)))
	require.Equal(t, "Begin, Account, Account", says(m.Tick(at(100))), "a commit is on its way")
	require.Equal(t, []int{0, 2}, m.Disabled())
}

func TestADisabledServerIsToldWhenItIsEnabled(t *testing.T) {
	for _, monitor := range []bool{true, false} {
		m := owning(Config{Settings: Settings{Monitor: monitor}}, 2)
		require.Empty(t, m.Server(false, at(1)))
		require.Empty(t, m.Server(false, at(1)))
		require.Empty(t, m.Tick(at(35)))
		m.Known(1, true, at(35))
		a := one(t, m.Server(true, at(36)), map[bool]Kind{true: Account, false: Tell}[monitor])
		require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipDisabled}}, a.Skips)
		require.Zero(t, a.Item)
	}
}

// Beside a leader of ElasticJob's nothing begins, and what has not been called yet is given
// back. What came due meanwhile is told when one of ours leads again, and never runs.
func TestNothingBeginsBesideALeaderOfElasticJob(t *testing.T) {
	for _, monitor := range []bool{true, false} {
		m := owning(Config{Settings: Settings{Monitor: monitor}}, 2)
		require.Empty(t, m.Foreign(true, at(1)))
		require.Empty(t, m.Foreign(true, at(1)))
		require.Empty(t, m.Tick(at(35)))
		m.Known(1, true, at(35))
		a := one(t, m.Foreign(false, at(36)), map[bool]Kind{true: Account, false: Tell}[monitor])
		require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipElasticJob}}, a.Skips)
		require.Zero(t, a.Item)
	}
	m := owning(under(each), 1)
	begin := one(t, m.Tick(at(11)), Begin)
	one(t, m.Begun(0, begin.Due, 1), Run)
	one(t, m.Foreign(true, at(12)), Drop)
	back := one(t, m.Dropped(0, begin.Due), GiveBack)
	require.Empty(t, m.Committed(0, back.Through, at(13)))
	a := one(t, m.Foreign(false, at(25)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(20), Count: 2, Reason: event.SkipElasticJob}}, a.Skips)

	m = owning(under(each), 1)
	begin = one(t, m.Tick(at(11)), Begin)
	require.Empty(t, m.Foreign(true, at(12)))
	require.Equal(t, zero, one(t, m.Begun(0, begin.Due, 1), GiveBack).Through, "its begin was being recorded")
}

// While the clock cannot be trusted nothing begins, and nothing that came due is decided, by no
// policy: what it would say may be of the future. What runs goes on; afterwards all is as ever.
func TestNothingIsDecidedByAClockThatIsOff(t *testing.T) {
	for name, rule := range map[string]misfire.Rule{"skip": skip, "once": once, "all": each} {
		m := owning(under(rule), 1)
		ranFrom(t, m, m.Tick(at(11)))
		require.Empty(t, m.Still(true, at(11)))
		require.Empty(t, m.Still(true, at(11)))
		end := one(t, m.Returned(0, at(10), at(3600)), End)
		require.Equal(t, at(10), end.Through)
		require.Empty(t, end.Skips)
		require.Empty(t, m.Committed(0, end.Through, at(3600)))
		require.Empty(t, m.Tick(at(3601)))
		require.Empty(t, m.Known(0, true, at(3601)))
		require.Empty(t, m.Known(0, false, at(3601)))
		require.Empty(t, m.Server(false, at(3602)))
		require.Empty(t, m.Server(true, at(3602)))
		require.Empty(t, m.Own(all(1, ledger.Item{Through: at(10)}), at(3602)))
		out := m.Still(false, at(45))
		switch name {
		case "skip":
			require.Equal(t, []Skip{{First: at(20), Last: at(40), Count: 3, Reason: event.SkipMissed}}, one(t, out, Account).Skips)
		case "once":
			require.Equal(t, at(40), one(t, out, Begin).Due)
		default:
			require.Equal(t, at(20), one(t, out, Begin).Due)
		}
	}
	m := owning(Config{Settings: Settings{Monitor: true, Delayed: true, Delay: 10 * time.Second}}, 1)
	m.Still(true, at(1))
	require.Empty(t, m.Tick(at(15)))
	one(t, m.Still(false, at(16)), Begin)
}

// What a leader of ElasticJob's may have run is told, and not made up, by whoever owns the
// item next; what is due later is as ever.
func TestNothingIsMadeUpBelowTheFloor(t *testing.T) {
	c := under(each)
	c.Floor = at(35)
	m := owning(c, 1)
	a := one(t, m.Tick(at(52)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(30), Count: 3, Reason: event.SkipElasticJob}}, a.Skips)
	require.Equal(t, at(30), a.Through)
	require.Equal(t, at(40), one(t, m.Committed(0, at(30), at(52)), Begin).Due)

	l := all(1, ledger.Item{Through: zero})
	l.Held, l.Until = true, at(20) // an epoch that ends before
	m = owning(c, 1)
	a = one(t, m.Own(l, at(52)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(20), Count: 2, Reason: event.SkipElasticJob}}, a.Skips)
}

// Finding 14: leaving is taken back while the item runs, or does not; nothing is lost.
func TestLeavingTakenBackLosesNothing(t *testing.T) {
	m := owning(under(skip), 1)
	ranFrom(t, m, m.Tick(at(11)))
	m.Own(all(1, ledger.Item{Through: at(10), Run: at(10), Leaving: true}), at(15))
	require.Empty(t, m.Tick(at(25)))
	m.Own(all(1, ledger.Item{Through: at(10), Run: at(10)}), at(26))
	end := one(t, m.Returned(0, at(10), at(27)), End)
	require.Equal(t, 1, end.Skips[0].Count, "it came due while the item ran, whatever the leader wanted")
	m.Committed(0, end.Through, at(27))
	require.Equal(t, at(30), one(t, m.Tick(at(30)), Begin).Due)

	m = owning(under(each), 1)
	ranFrom(t, m, m.Tick(at(11)))
	m.Own(all(1, ledger.Item{Through: at(10), Run: at(10), Leaving: true}), at(15))
	end = one(t, m.Returned(0, at(10), at(27)), End)
	require.Empty(t, end.Skips)
	require.Empty(t, m.Committed(0, at(10), at(27)))
	require.Empty(t, m.Tick(at(35)))
	require.Equal(t, at(20), one(t, m.Own(all(1, ledger.Item{Through: at(10)}), at(36)), Begin).Due)
}

// Semantics §1: a held ledger begins nothing; with until it runs what it owes up to there,
// and then accounts for it once.
func TestAnEpochEnds(t *testing.T) {
	m := owning(under(each), 1)
	l := all(1, ledger.Item{Through: zero})
	l.Held = true
	require.Empty(t, m.Own(l, at(9)))
	require.Empty(t, m.Tick(at(15)))
	require.Empty(t, m.Known(0, false, at(16)))
	l.Until = at(20)
	require.Equal(t, at(10), ranFrom(t, m, m.Own(l, at(16))).Due)
	end := one(t, m.Returned(0, at(10), at(17)), End)
	require.Empty(t, end.Skips)
	require.Empty(t, m.Committed(0, at(10), at(18)), "another instance has begun it ahead; it is not due yet")
	next, _ := m.Next(at(18))
	require.Equal(t, at(20), next)
	require.Equal(t, at(20), one(t, m.Tick(at(20)), Begin).Due)
	m.Begun(0, at(20), 2)
	m.Entered(0, at(20))
	m.Returned(0, at(20), at(21))
	require.Empty(t, m.Committed(0, at(20), at(21)), "the record is at until")
	require.Empty(t, m.Tick(at(45)))

	after := ledger.New(2, 1)
	after.Set(0, ledger.Item{Through: at(20)})
	require.Equal(t, at(30), one(t, m.Own(after, at(46)), Begin).Due)
	require.Equal(t, 2, m.Epoch())
	require.Equal(t, 1, m.Total())
}

func TestAnEpochEndsOnce(t *testing.T) {
	for name, disabled := range map[string]bool{"owing nothing": false, "disabled": true} {
		t.Run(name, func(t *testing.T) {
			m := owning(monitored, 1)
			m.Known(0, disabled, at(2))
			l := all(1, ledger.Item{Through: zero})
			l.Held, l.Until = true, at(7)
			a := one(t, m.Own(l, at(5)), Account)
			require.Equal(t, at(7), a.Through)
			require.Empty(t, a.Skips)
			l.Set(0, ledger.Item{Through: at(7)})
			require.Empty(t, m.Committed(0, at(7), at(8)))
			require.Empty(t, m.Own(l, at(8)))
			require.Empty(t, m.Tick(at(50)))
		})
	}
	m := owning(monitored, 1)
	m.Known(0, true, at(2))
	l := all(1, ledger.Item{Through: zero})
	l.Held, l.Until = true, at(25)
	a := one(t, m.Own(l, at(30)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(20), Count: 2, Reason: event.SkipDisabled}}, a.Skips)
	require.Equal(t, at(25), a.Through)
}

// Without a record until is a guess at the present: its fires run when they are due, and the
// account says up to where, also where the instance's clock is ahead of the leader's.
func TestAnEpochEndsWithoutMonitoring(t *testing.T) {
	for name, now := range map[string]float64{"in time": 9, "a clock ahead": 15} {
		t.Run(name, func(t *testing.T) {
			m := owning(Config{}, 1)
			l := all(1, ledger.Item{Through: zero})
			l.Held, l.Until = true, at(11)
			out := m.Own(l, at(now))
			if now < 11 {
				require.Empty(t, out)
				next, ok := m.Next(at(now))
				require.True(t, ok)
				require.Equal(t, at(10), next)
				require.Empty(t, m.Tick(at(9.5)))
				out = m.Tick(at(10))
				require.Empty(t, m.Tick(at(11)))
			}
			require.Equal(t, at(10), one(t, out, Run).Due)
			require.True(t, m.Entered(0, at(10)))
			a := one(t, m.Returned(0, at(10), at(16)), Account)
			require.Equal(t, at(11), a.Through)
			require.Empty(t, m.Committed(0, at(11), at(16)))
		})
	}
	// The fire at until itself has run, and the record does not know.
	m := owning(Config{}, 1)
	m.Tick(at(10))
	m.Entered(0, at(10))
	m.Returned(0, at(10), at(10.5))
	l := all(1, ledger.Item{Through: zero})
	l.Held, l.Until = true, at(10)
	require.Equal(t, at(10), one(t, m.Own(l, at(11)), Account).Through)
}

// Finding 7: how a run began decides how it ends.
func TestMonitoringIsSwitchedWhileAnItemRuns(t *testing.T) {
	fires := grid(10 * time.Second)
	on, off := Settings{Monitor: true, Fires: fires}, Settings{Fires: fires}
	t.Run("off", func(t *testing.T) {
		m := in(running)
		require.Empty(t, m.Change(off, at(12)))
		require.Equal(t, at(10), one(t, m.Returned(0, at(10), at(13)), End).Through)
		require.Empty(t, m.Committed(0, at(10), at(13)))
		require.Equal(t, at(20), one(t, m.Tick(at(20)), Run).Due)
		require.True(t, m.Entered(0, at(20)))
		require.Empty(t, m.Returned(0, at(20), at(21)))
	})
	t.Run("on", func(t *testing.T) {
		m := owning(Config{}, 2)
		m.Tick(at(11))
		for n := range 2 {
			require.True(t, m.Entered(n, at(10)))
		}
		m.Returned(1, at(10), at(12))
		out := m.Change(on, at(12))
		require.Equal(t, []Action{{Kind: Record, Item: 0, Due: at(10)}, {Kind: Account, Item: 1, Through: at(10)}}, out)
		require.Empty(t, m.Committed(1, at(10), at(12)))
		require.Equal(t, at(10), one(t, m.Returned(0, at(10), at(13)), End).Through)
	})
	t.Run("on, and somebody else's node is in the way", func(t *testing.T) {
		m := owning(Config{}, 1)
		m.Tick(at(11))
		m.Entered(0, at(10))
		require.Equal(t, "Record", says(m.Change(on, at(12))))
		require.Empty(t, m.Refused(0, at(10), Elsewhere, ledger.Item{Through: zero}, "", at(12)))
		// What ran unrecorded is accounted for before anything else begins.
		require.Equal(t, at(10), one(t, m.Returned(0, at(10), at(13)), Account).Through)
	})
	// The record is behind until an account is committed: it must not have its fires run again.
	t.Run("on, while the ledger is held", func(t *testing.T) {
		m := owning(Config{}, 1)
		m.Tick(at(11))
		m.Entered(0, at(10))
		m.Returned(0, at(10), at(12))
		l := all(1, ledger.Item{Through: zero})
		l.Held = true
		require.Empty(t, m.Own(l, at(12)))
		require.Equal(t, "Account", says(m.Change(on, at(12))))
		require.Empty(t, m.Refused(0, time.Time{}, Behind, ledger.Item{Through: zero}, "", at(12)))
		l.Until = at(10)
		require.Equal(t, at(10), one(t, m.Own(l, at(13)), Account).Through)
		require.Empty(t, m.Committed(0, at(10), at(13)))
	})
}

// Finding 6: without a record nobody knows what ran, and nothing is made up.
func TestWithoutMonitoringAnItemThatMovesRunsNothingOld(t *testing.T) {
	m := New(Config{Settings: Settings{Fires: grid(10 * time.Second)}})
	m.Own(all(1, ledger.Item{Through: zero}), at(205))
	require.Empty(t, m.Known(0, false, at(205)))
	require.Equal(t, at(210), one(t, m.Tick(at(210)), Run).Due)
}

// Findings 3 and 12: Stop gives back what waits for a place, and what is owed stays owed.
func TestStop(t *testing.T) {
	m := owning(under(each), 4)
	m.Tick(at(25))
	for n := range 3 {
		m.Begun(n, at(10), 1)
	}
	require.True(t, m.Entered(0, at(10)))
	require.Equal(t, []Action{{Kind: Drop, Item: 1, Due: at(10)}, {Kind: Drop, Item: 2, Due: at(10)}}, m.Stop())
	require.Empty(t, m.Stop())
	require.Equal(t, []Action{{Kind: GiveBack, Item: 1, Due: at(10), Through: zero}}, m.Dropped(1, at(10)))
	require.False(t, m.Entered(2, at(10)), "it had its place already")
	require.Equal(t, "GiveBack", says(m.Dropped(2, at(10))))
	require.Equal(t, "GiveBack", says(m.Begun(3, at(10), 1)), "its begin was on its way")
	end := one(t, m.Returned(0, at(10), at(55)), End)
	require.Equal(t, at(10), end.Through)
	require.Empty(t, end.Skips)
	require.False(t, m.Quiet())
	for n := range 4 {
		require.Empty(t, m.Committed(n, m.items[n].cursor, at(56)))
	}
	require.True(t, m.Quiet())
	require.Empty(t, m.Tick(at(100)))
	_, ok := m.Next(at(100))
	require.False(t, ok)
}

// What a begin skipped is told with it, and stays told when the begin is given back.
func TestAGiveBackKeepsWhatWasTold(t *testing.T) {
	m := owning(under(each), 1)
	a := one(t, m.Tick(at(205)), Begin)
	require.Equal(t, at(100), a.Skips[0].Last)
	m.Stop()
	require.Equal(t, at(100), one(t, m.Begun(0, at(110), 1), GiveBack).Through)
}

func TestARefusedBeginIsOwed(t *testing.T) {
	rec := ledger.Item{Through: zero, Leaving: true}
	m := in(beginning)
	require.Empty(t, m.Refused(0, at(10), NotOwned, rec, "", at(12)))
	require.True(t, m.Quiet())
	require.Equal(t, at(10), one(t, m.Own(all(1, ledger.Item{Through: zero}), at(13)), Begin).Due)

	m = in(beginning)
	a := one(t, m.Refused(0, at(10), Behind, ledger.Item{Through: at(10)}, "", at(25)), Begin)
	require.Equal(t, at(20), a.Due)

	m = in(beginning)
	a = one(t, m.Refused(0, at(10), Elsewhere, ledger.Item{Through: zero}, "by b", at(12)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(10), Count: 1, Reason: event.SkipRunningElsewhere,
		Detail: "by b"}}, a.Skips)
	require.Equal(t, at(10), a.Through)

	// Finding 23: a refusal leaves nothing behind that another epoch could stumble over.
	m = owning(under(each), 1)
	require.Len(t, one(t, m.Tick(at(205)), Begin).Skips, 1)
	require.Empty(t, m.Refused(0, at(110), NotOwned, rec, "", at(205)))
	require.Equal(t, zero, m.items[0].cursor)
	require.Len(t, one(t, m.Tick(at(205)), Begin).Skips, 1, "they were not told")

	// What was to be folded into a fire that ran elsewhere did not run either.
	m = owning(under(once), 1)
	m.Tick(at(45))
	a = one(t, m.Refused(0, at(40), Elsewhere, ledger.Item{Through: zero}, "by b", at(45)), Account)
	require.Equal(t, []Skip{{First: at(10), Last: at(40), Count: 4, Reason: event.SkipRunningElsewhere,
		Detail: "by b"}}, a.Skips)
	require.Equal(t, at(40), a.Through)
}

// A record that says that the item runs, while nothing of it is in hand here, refuses every
// begin at once: it is not asked again until the next fire.
func TestARecordThatRunsIsNotAskedAgainAtOnce(t *testing.T) {
	m := in(beginning)
	rec := ledger.Item{Through: zero, Run: zero}
	require.Empty(t, m.Refused(0, at(10), Behind, rec, "", at(12)))
	require.Equal(t, "Begin", says(m.Tick(at(20))))
}

// The skips of an account that was refused were not told: they are decided again.
func TestARefusedAccountIsOwed(t *testing.T) {
	m := owning(monitored, 1)
	m.Known(0, true, at(1))
	require.Len(t, one(t, m.Known(0, false, at(25)), Account).Skips, 1)
	require.Empty(t, m.Refused(0, time.Time{}, NotOwned, ledger.Item{Through: zero}, "", at(25)))
	require.Equal(t, zero, m.items[0].cursor)
	// And refused by a ledger whose until lies before its last fire.
	m = owning(monitored, 1)
	m.Known(0, true, at(1))
	m.Known(0, false, at(25))
	l := all(1, ledger.Item{Through: zero})
	l.Held, l.Until = true, at(15)
	require.Empty(t, m.Own(l, at(26)))
	require.Equal(t, at(10), one(t, m.Refused(0, time.Time{}, Behind, ledger.Item{Through: zero}, "", at(26)), Begin).Due)
}

// Nobody has owned the item yet: its record begins here.
func TestAnItemWithoutARecord(t *testing.T) {
	m := New(Config{Settings: Settings{Monitor: true, Fires: grid(10 * time.Second)}})
	m.Own(all(1, ledger.Item{}), at(11))
	require.Equal(t, []Action{{Kind: Account, Through: at(11)}}, m.Known(0, false, at(11)))
	require.Empty(t, m.Refused(0, time.Time{}, NotOwned, ledger.Item{}, "", at(25)))
	require.Equal(t, at(11), one(t, m.Tick(at(25)), Account).Through)
	require.Equal(t, at(20), one(t, m.Committed(0, at(11), at(25)), Begin).Due)
}

func TestBlockedItems(t *testing.T) {
	m := owning(Config{Settings: monitored.Settings, Blocked: []int{0}}, 2)
	require.Equal(t, 1, one(t, m.Tick(at(11)), Begin).Item)
	require.Equal(t, at(10), one(t, m.Unblock(0, at(15)), Begin).Due)
	require.Empty(t, m.Unblock(5, at(15)))
}

func TestUnblockBut(t *testing.T) {
	m := owning(Config{Settings: monitored.Settings, Blocked: []int{0, 1, 2}}, 3)
	require.Equal(t, 1, one(t, m.UnblockBut([]int{0, 2}, at(11)), Begin).Item)
	require.True(t, m.Blocked(0))
	require.False(t, m.Blocked(1))
	require.Len(t, m.UnblockBut(nil, at(15)), 2)
}

func TestNotesAreToldOnceAndWhenTheyChange(t *testing.T) {
	a, b := ledger.Note{Due: at(-10), Instance: "a"}, ledger.Note{Due: at(-20), Instance: "b"}
	m := owning(monitored, 1)
	l := all(1, ledger.Item{Through: zero, Told: ledger.Told{}.With(a)})
	require.Equal(t, []ledger.Note{a}, one(t, m.Own(l, at(2)), Tell).Notes)
	require.Empty(t, m.Own(l, at(3)))
	l.Set(0, ledger.Item{Through: zero, Told: ledger.Told{}.With(a).With(b)})
	require.Equal(t, []ledger.Note{a, b}, one(t, m.Own(l, at(4)), Tell).Notes)
	ranFrom(t, m, m.Tick(at(11))) // the begin has cleared them
	l.Set(0, ledger.Item{Through: at(10), Run: at(10)})
	require.Empty(t, m.Own(l, at(12)))
	l.Set(0, ledger.Item{Through: at(10), Run: at(10), Told: ledger.Told{}.With(a)})
	require.Equal(t, []ledger.Note{a}, one(t, m.Own(l, at(12)), Tell).Notes)
}

// An epoch does not end while a note stands: it is cleared also where nothing else is
// recorded.
func TestANoteIsClearedBeforeItsEpochEnds(t *testing.T) {
	for _, s := range []Settings{{Monitor: true}, {}, {Monitor: true, Delayed: true, Delay: time.Minute},
		{Delayed: true, Delay: time.Minute}} {
		m := owning(Config{Settings: s}, 1)
		l := all(1, ledger.Item{Through: at(7), Told: ledger.Told{}.With(ledger.Note{Due: zero, Instance: "a"})})
		l.Held, l.Until = true, at(7)
		require.Equal(t, "Tell, Account", says(m.Own(l, at(8))), "%+v", s)
		require.Empty(t, m.Committed(0, at(7), at(8)))
	}
}

// Fires due until an epoch starts belong to those before it: an item that starts there has
// passed none of them, whatever the schedule was.
func TestANewEpochTellsNothingOfTheOneBefore(t *testing.T) {
	before := misfire.Line{Now: grid(10 * time.Second)}
	after := misfire.Line{Before: before, Since: at(8), Now: grid(3 * time.Second)}
	m := owning(Config{Settings: Settings{Monitor: true, Fires: after, Misfire: each}}, 1)
	next := ledger.New(2, 1)
	next.Set(0, ledger.Item{Through: at(20)}) // a fire of the schedule before, of another item
	for _, a := range m.Own(next, at(20)) {
		require.NotEqual(t, Tell, a.Kind, "%+v", a)
	}
}

func TestANewScheduleTellsWhatItemsHadPassed(t *testing.T) {
	before := misfire.Line{Now: grid(10 * time.Second)}
	after := misfire.Line{Before: before, Since: at(8), Now: grid(3 * time.Second)}
	start := func() *Machine {
		return owning(Config{Settings: Settings{Monitor: true, Fires: before, Misfire: each}}, 1)
	}
	settings := Settings{Monitor: true, Fires: after, Misfire: each}
	// 9 was due by the new schedule, and the item had begun 10 of the one before.
	want := []Skip{{First: at(9), Last: at(9), Count: 1, Reason: event.SkipSchedule}}
	t.Run("running", func(t *testing.T) {
		m := start()
		ranFrom(t, m, m.Tick(at(11)))
		require.Equal(t, want, one(t, m.Change(settings, at(11)), Tell).Skips)
		end := one(t, m.Returned(0, at(10), at(16)), End)
		require.Empty(t, end.Skips)
		require.Equal(t, at(12), one(t, m.Committed(0, at(10), at(16)), Begin).Due)
	})
	// What is told does not run, though its function is not called after all.
	t.Run("not called", func(t *testing.T) {
		m := start()
		ranFrom(t, m, m.Tick(at(11)))
		require.Equal(t, want, one(t, m.Change(settings, at(11)), Tell).Skips)
		require.Equal(t, at(9), one(t, m.Uncalled(0, at(10)), GiveBack).Through)
		require.Equal(t, at(12), one(t, m.Committed(0, at(9), at(16)), Begin).Due)
	})
	// While its begin may still be refused the item may yet run what it had passed: it is
	// told later, or runs.
	t.Run("beginning", func(t *testing.T) {
		m := start()
		m.Tick(at(11))
		require.Empty(t, m.Change(settings, at(11)))
		m.Begun(0, at(10), 1)
		m.Entered(0, at(10))
		out := m.Returned(0, at(10), at(11))
		require.Equal(t, "Tell, End", says(out))
		require.Equal(t, want, out[0].Skips)
	})
	t.Run("refused", func(t *testing.T) {
		m := start()
		m.Tick(at(11))
		m.Change(settings, at(11))
		require.Empty(t, m.Refused(0, at(10), NotOwned, ledger.Item{Through: zero}, "", at(11)))
		require.Equal(t, at(9), one(t, m.Tick(at(11)), Begin).Due)
	})
	t.Run("elsewhere", func(t *testing.T) {
		m := start()
		m.Tick(at(11))
		m.Change(settings, at(11))
		one(t, m.Refused(0, at(10), Elsewhere, ledger.Item{Through: zero}, "b", at(11)), Account)
		require.Equal(t, want, one(t, m.Committed(0, at(10), at(11)), Tell).Skips)
	})
	// What both schedules have, the item has run.
	t.Run("in both", func(t *testing.T) {
		m := start()
		ranFrom(t, m, m.Tick(at(31)))
		m.Returned(0, at(10), at(31))
		m.Committed(0, at(10), at(31)) // begins 20
		m.Begun(0, at(20), 1)
		m.Entered(0, at(20))
		out := m.Change(Settings{Monitor: true, Fires: misfire.Line{Before: before, Since: at(8),
			Now: grid(5 * time.Second)}}, at(31))
		require.Equal(t, []Skip{{First: at(15), Last: at(15), Count: 1, Reason: event.SkipSchedule}}, one(t, out, Tell).Skips)
	})
	// The item moves from an owner who has not heard of the schedule to one who has.
	t.Run("moved", func(t *testing.T) {
		m := New(Config{Settings: settings})
		require.Equal(t, want, one(t, m.Own(all(1, ledger.Item{Through: at(10)}), at(11)), Tell).Skips)
		m.Known(0, false, at(11))
		require.Equal(t, at(12), one(t, m.Tick(at(12)), Begin).Due)
	})
	t.Run("moved from one who had heard", func(t *testing.T) {
		for _, through := range []float64{8, 9, 12, 30} {
			m := New(Config{Settings: settings})
			require.Empty(t, m.Own(all(1, ledger.Item{Through: at(through)}), at(through)))
		}
	})
	// What is told is told in stretches that hold nothing that ran.
	t.Run("in both, between them", func(t *testing.T) {
		m := start()
		ranFrom(t, m, m.Tick(at(11)))
		m.Returned(0, at(10), at(12))
		m.Committed(0, at(10), at(12))
		ranFrom(t, m, m.Tick(at(20)))
		m.Returned(0, at(20), at(21))
		m.Committed(0, at(20), at(21))
		ranFrom(t, m, m.Tick(at(30)))
		out := m.Change(Settings{Monitor: true, Fires: misfire.Line{Before: before, Since: at(8), Now: grid(2 * time.Second)}}, at(31))
		told := one(t, out, Tell).Skips
		require.Equal(t, []Skip{
			{First: at(12), Last: at(18), Count: 4, Reason: event.SkipSchedule},
			{First: at(22), Last: at(28), Count: 4, Reason: event.SkipSchedule},
		}, told)
	})
	// Finding 5: no fire before since is the new schedule's.
	t.Run("idle", func(t *testing.T) {
		m := start()
		out := m.Change(settings, at(11))
		require.Equal(t, at(9), one(t, out, Begin).Due)
	})
}

// inquired counts how often a schedule is asked what comes next.
type inquired struct {
	misfire.Fires
	asked *int
}

func (a inquired) Next(after time.Time) (time.Time, bool) {
	*a.asked++
	return a.Fires.Next(after)
}

// A clock that is set months ahead has items pass a great many fires, which the schedule before had too.
func TestANewScheduleTellsOfTheFarFutureAtOnce(t *testing.T) {
	const items = 100
	asked := 0
	before := misfire.Line{Now: inquired{grid(2 * time.Second), &asked}}
	m := owning(Config{Settings: Settings{Monitor: true, Fires: before, Misfire: once}}, items)
	far := at(20_000_000)
	for _, a := range m.Tick(far) {
		m.Begun(a.Item, a.Due, 1)
		m.Entered(a.Item, a.Due)
	}
	asked = 0
	m.Change(Settings{Monitor: true, Misfire: once, Fires: misfire.Line{
		Before: before, Since: at(8), Now: inquired{grid(4 * time.Second), &asked},
	}}, far)
	require.Positive(t, asked)
	require.Less(t, asked, 10*misfire.CountLimit)
}

var delayed = Config{Settings: Settings{Monitor: true, Delayed: true, Delay: time.Minute}}

func TestFixedDelays(t *testing.T) {
	m := owning(delayed, 3)
	next, ok := m.Next(at(1))
	require.True(t, ok)
	require.Equal(t, at(60), next)
	require.Empty(t, m.Tick(at(59)))
	out := m.Tick(at(61))
	require.Len(t, out, 3)
	_, ok = m.Next(at(61))
	require.False(t, ok)
	for n := range 3 {
		require.Equal(t, at(60), out[n].Due)
		m.Begun(n, at(60), 1)
		m.Entered(n, at(60))
	}
	require.Equal(t, at(200), one(t, m.Returned(1, at(60), at(200)), End).Through)
	m.Committed(1, at(200), at(200))
	m.Returned(0, at(60), at(190))
	m.Committed(0, at(190), at(190))
	next, _ = m.Next(at(200))
	require.Equal(t, at(250), next)
	require.Equal(t, []Action{{Kind: Begin, Item: 0, Due: at(250)}}, m.Tick(at(255)))
	require.Equal(t, "GiveBack", says(func() []Action { m.Stop(); return m.Begun(0, at(250), 1) }()))
	require.Equal(t, at(190), m.items[0].cursor)
}

// Finding 19: delays are measured from the end of a run, not by the clock.
func TestTheClockIsSetUnderFixedDelays(t *testing.T) {
	m := owning(delayed, 5)
	m.ClockSet(-time.Hour, time.Time{})
	next, _ := m.Next(at(-3599))
	require.Equal(t, at(60-3600), next)
	require.Len(t, m.Tick(at(60-3600)), 5)
	m = owning(monitored, 1)
	m.ClockSet(time.Hour, time.Time{})
	next, _ = m.Next(at(1))
	require.Equal(t, at(10), next)
}

// Whatever moves the instants of many items, the first is found.
func TestDelaysKeepTheirOrder(t *testing.T) {
	l := ledger.New(1, 20)
	for n := range 20 {
		l.Set(n, ledger.Item{Through: at(float64(100 - 7*n%50))})
	}
	changes := map[string]func(m *Machine){
		"delay":    func(m *Machine) { m.Change(Settings{Monitor: true, Delayed: true, Delay: 2 * time.Minute}, at(150)) },
		"server":   func(m *Machine) { m.Server(false, at(150)); m.Server(true, at(150)) },
		"disabled": func(m *Machine) { m.Known(7, true, at(150)); m.Known(7, false, at(150)) },
		"reset":    func(m *Machine) { m.set.Monitor = false; m.Reset(at(80), at(150)) },
		"clock":    func(m *Machine) { m.ClockSet(time.Minute, time.Time{}) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			m := New(delayed)
			m.Own(l, at(101))
			for n := range 20 {
				m.Known(n, false, at(101))
			}
			change(m)
			seen := 0
			for last := zero; ; seen++ {
				it := m.delays.first()
				if it == nil {
					break
				}
				require.False(t, it.ready.Before(last))
				last = it.ready
				m.delays.remove(it)
			}
			require.Equal(t, 20, seen+m.busy, "what is due has begun")
		})
	}
}

func TestADelayBecomesAScheduleAndBack(t *testing.T) {
	m := owning(delayed, 2)
	require.Equal(t, "Begin, Begin", says(m.Change(Settings{Monitor: true, Fires: grid(10 * time.Second)}, at(11))))
	require.Nil(t, m.delays.first())
	for n := range 2 {
		m.Begun(n, at(10), 1)
		m.Entered(n, at(10))
	}
	m.Returned(0, at(10), at(12))
	m.Committed(0, at(10), at(12))
	require.Empty(t, m.Change(delayed.Settings, at(13)))
	require.True(t, m.Delayed())
	next, _ := m.Next(at(13))
	require.Equal(t, at(70), next)
	m.Returned(1, at(10), at(20))
	m.Committed(1, at(20), at(20))
	require.Equal(t, at(80), m.items[1].ready)
}

// Finding 19: a record that a wrong clock made is set back, and says so.
func TestARecordAheadOfTheClockIsSetBack(t *testing.T) {
	for _, monitor := range []bool{true, false} {
		m := New(Config{Settings: Settings{Monitor: monitor, Fires: grid(10 * time.Second)}})
		l := all(2, ledger.Item{Through: zero})
		l.Set(1, ledger.Item{Through: zero.AddDate(9, 0, 0)})
		m.Own(l, at(1))
		m.Known(1, false, at(1))
		require.Equal(t, []int{1}, m.Ahead(at(86400)))
		require.Empty(t, m.Tick(at(15)))
		out := m.Reset(at(86400), at(16))
		if monitor {
			require.Equal(t, []Action{{Kind: Account, Item: 1, Through: at(16), Reset: true}}, out)
			m.Committed(1, at(16), at(16))
		}
		require.Empty(t, m.Ahead(at(86400)))
		require.Equal(t, at(20), m.Tick(at(20))[0].Due)
		require.Equal(t, 1, m.items[1].number)
	}
}

func TestAnItemOfAnotherEpochIsAnotherItem(t *testing.T) {
	m := owning(monitored, 2)
	m.Known(1, true, at(2))
	next := ledger.New(2, 3)
	for n := range 3 {
		next.Set(n, ledger.Item{Through: at(35)})
	}
	require.Empty(t, m.Own(next, at(36)))
	require.Equal(t, []int{0, 1, 2}, m.Numbers())
	require.True(t, m.IsKnown(1), "operators' nodes are by number")
	require.False(t, m.IsKnown(2))
	require.Equal(t, "Begin, Account", says(m.Tick(at(41))))
}

// An asked schedule counts how often it is asked.
type asked struct {
	grid
	times int
}

func (a *asked) Next(after time.Time) (time.Time, bool) {
	a.times++
	return a.grid.Next(after)
}

func (a *asked) Prev(before, notBefore time.Time) (time.Time, bool) {
	a.times++
	return a.grid.Prev(before, notBefore)
}

// What a day owes is decided once, though the items are offered one after the other, each
// at its own instant.
func TestItemsThatShareACursorShareADecision(t *testing.T) {
	const total = 10_000
	day := zero.Add(24 * time.Hour)
	for name, rule := range map[string]misfire.Rule{"once": once, "skip": skip, "all": each, "no window": {Policy: misfire.Once}} {
		t.Run(name, func(t *testing.T) {
			fires := &asked{grid: grid(time.Second)}
			m := New(Config{Settings: Settings{Monitor: true, Fires: fires, Misfire: rule}, Up: day})
			m.Own(all(total, ledger.Item{Through: zero}), day)
			fires.times = 0
			for n := range total {
				now := day.Add(time.Duration(n) * 10 * time.Microsecond)
				require.Len(t, m.Known(n, false, now), 1)
			}
			require.Less(t, fires.times, 4*misfire.CountLimit)

			fires.times = 0
			for n := range total { // told in bulk when they are enabled
				m.items[n].phase, m.items[n].cursor, m.items[n].disabled = idle, zero, true
			}
			for n := range total {
				now := day.Add(time.Duration(n) * 10 * time.Microsecond)
				require.Len(t, m.Known(n, false, now), 1)
			}
			require.Less(t, fires.times, 4*misfire.CountLimit)
		})
	}
}

func BenchmarkADayDown(b *testing.B) {
	const total = 10_000
	day := zero.Add(24 * time.Hour)
	every, err := schedule.Parse(schedule.Config{Expr: "* * * * * ?", Zone: "UTC"})
	require.NoError(b, err)
	for b.Loop() {
		m := New(Config{Settings: Settings{Monitor: true, Fires: every, Misfire: once}, Up: day})
		m.Own(all(total, ledger.Item{Through: zero}), day)
		for n := range total {
			m.Known(n, false, day.Add(time.Duration(n)*10*time.Microsecond))
		}
	}
}

// Finding 24: what an event costs does not grow with the machine.
func TestAnEventTouchesTheItemsThatItNames(t *testing.T) {
	type cost struct{ visited, allocs float64 }
	measure := func(total int) (fire, end, disable cost) {
		m := owning(monitored, total)
		k := 0
		cycle := func() {
			k++
			due := at(float64(10 * k))
			require.Len(t, m.Tick(due), total)
			for n := range total {
				m.Begun(n, due, 1)
				m.Entered(n, due)
				m.Returned(n, due, due)
				m.Committed(n, due, due)
			}
		}
		per := func(runs int, items float64, f func()) cost {
			before := m.visited
			allocs := testing.AllocsPerRun(runs, f)
			return cost{float64(m.visited-before) / float64(runs+1) / items, allocs / items}
		}
		fire = per(3, float64(total), cycle)
		k++
		due := at(float64(10 * k))
		m.Tick(due)
		n := 0
		for i := range 51 {
			m.Begun(i, due, 1)
			m.Entered(i, due)
		}
		end = per(50, 1, func() { m.Returned(n, due, due); m.Committed(n, due, due); n++ })
		disabled := false
		disable = per(50, 1, func() { disabled = !disabled; m.Known(7, disabled, due) })
		return fire, end, disable
	}
	fire, end, disable := measure(100)
	fireMany, endMany, disableMany := measure(10_000)
	for _, c := range []struct {
		what      string
		few, many cost
	}{{"a fire", fire, fireMany}, {"an end", end, endMany}, {"a disabled event", disable, disableMany}} {
		t.Run(c.what, func(t *testing.T) {
			t.Logf("%+v %+v", c.few, c.many)
			require.InEpsilon(t, c.few.visited, c.many.visited, 0.1)
			require.InDelta(t, c.few.allocs, c.many.allocs, 0.1*c.few.allocs+0.05)
		})
	}
}

// What a clock that was far ahead has begun runs at once here too: nobody waits for years.
func TestAnEpochThatEndsFarAhead(t *testing.T) {
	m := owning(under(each), 1)
	l := all(1, ledger.Item{Through: zero})
	l.Held, l.Until = true, at(20)
	require.Equal(t, at(10), one(t, m.Own(l, at(5)), Begin).Due)
}
