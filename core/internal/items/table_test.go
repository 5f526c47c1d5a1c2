package items

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
)

var kindNames = map[Kind]string{
	CutRedo: "CutRedo",
	Begin:   "Begin", Run: "Run", End: "End", GiveBack: "GiveBack", Account: "Account", Record: "Record", Drop: "Drop",
	Tell: "Tell",
}

var phaseNames = map[phase]string{
	idle: "idle", accounting: "accounting", beginning: "beginning", queued: "queued", running: "running", ending: "ending",
}

func says(actions []Action) string {
	names := make([]string, 0, len(actions))
	for _, a := range actions {
		names = append(names, kindNames[a.Kind])
	}
	return strings.Join(names, ", ")
}

// owning returns a machine that owns items below total, enabled, whose fires are each ten
// seconds, and whose cursor is zero.
func owning(c Config, total int) *Machine {
	if c.Fires == nil {
		c.Fires = grid(10 * time.Second)
	}
	m := New(c)
	m.Own(all(total, ledger.Item{Through: zero}), at(1))
	for n := range total {
		m.Known(n, false, at(1))
	}
	return m
}

func all(total int, rec ledger.Item) *ledger.Ledger {
	l := ledger.New(1, total)
	for n := range total {
		l.Set(n, rec)
	}
	return l
}

var monitored = Config{Settings: Settings{Monitor: true}}

// in returns a machine whose item 0 is in a phase, with the fire of ten seconds in hand.
func in(p phase) *Machine {
	m := owning(monitored, 1)
	if p == accounting {
		m.Known(0, true, at(11))
		m.Known(0, false, at(11))
		return m
	}
	steps := []func(){
		beginning: func() { m.Tick(at(11)) },
		queued:    func() { m.Begun(0, at(10), 1) },
		running:   func() { m.Entered(0, at(10)) },
		ending:    func() { m.Returned(0, at(10), at(12)) },
	}
	for q := beginning; q <= p; q++ {
		steps[q]()
	}
	return m
}

// An occurrence is an event, and how it is sent.
type occurrence struct {
	name string
	send func(m *Machine, due time.Time) string
}

// occurrences are all events of item 0, whose record is rec.
func occurrences(rec ledger.Item) []occurrence {
	return []occurrence{
		{"Tick", func(m *Machine, _ time.Time) string { return says(m.Tick(at(15))) }},
		{"Begun", func(m *Machine, due time.Time) string { return says(m.Begun(0, due, 1)) }},
		{"NotOwned", func(m *Machine, due time.Time) string { return says(m.Refused(0, due, NotOwned, rec, "", at(15))) }},
		{"Behind", func(m *Machine, due time.Time) string { return says(m.Refused(0, due, Behind, rec, "", at(15))) }},
		{"Elsewhere", func(m *Machine, due time.Time) string { return says(m.Refused(0, due, Elsewhere, rec, "", at(15))) }},
		{"Entered", func(m *Machine, due time.Time) string { return map[bool]string{true: "yes"}[m.Entered(0, due)] }},
		{"Dropped", func(m *Machine, due time.Time) string { return says(m.Dropped(0, due)) }},
		{"Uncalled", func(m *Machine, due time.Time) string { return says(m.Uncalled(0, due)) }},
		{"Returned", func(m *Machine, due time.Time) string { return says(m.Returned(0, due, at(15))) }},
		{"Committed", func(m *Machine, due time.Time) string { return says(m.Committed(0, at(10), at(15))) }},
		{"Known", func(m *Machine, _ time.Time) string { return says(m.Known(0, false, at(15))) }},
		{"disabled", func(m *Machine, _ time.Time) string { return says(m.Known(0, true, at(15))) }},
		{"Server", func(m *Machine, _ time.Time) string { return says(m.Server(false, at(15))) }},
		{"Foreign", func(m *Machine, _ time.Time) string { return says(m.Foreign(true, at(15))) }},
		{"Still", func(m *Machine, _ time.Time) string { return says(m.Still(true, at(15))) }},
		{"Own", func(m *Machine, _ time.Time) string { return says(m.Own(all(1, rec), at(15))) }},
		{"leaving", func(m *Machine, _ time.Time) string {
			rec := rec
			rec.Leaving = true
			return says(m.Own(all(1, rec), at(15)))
		}},
		{"taken", func(m *Machine, _ time.Time) string { return says(m.Own(ledger.New(1, 1), at(15))) }},
		{"Change", func(m *Machine, _ time.Time) string { return says(m.Change(Settings{Fires: m.set.Fires}, at(15))) }},
		{"Unblock", func(m *Machine, _ time.Time) string { return says(m.Unblock(0, at(15))) }},
		{"Reset", func(m *Machine, _ time.Time) string { return says(m.Reset(at(5), at(15))) }},
		{"Stop", func(m *Machine, _ time.Time) string { return says(m.Stop()) }},
	}
}

// What every event does in every state: what comes out, and the state that follows.
// Those that nothing has asked for do nothing.
func TestEveryEventInEveryState(t *testing.T) {
	// What comes out → the state that follows; a state alone is the same as before.
	table := map[phase]map[string]string{
		idle: {
			"Tick": "Begin → beginning", "Known": "Begin → beginning", "Own": "Begin → beginning",
			"Unblock": "Begin → beginning",
			"Change":  "Run → queued", // monitoring is off
			"taken":   " → gone",
		},
		accounting: {
			"NotOwned": " → idle", "Behind": "Begin → beginning", "Elsewhere": "Begin → beginning", "Committed": " → idle",
			"taken": " → stray",
		},
		beginning: {
			"Begun": "Run → queued", "NotOwned": " → idle", "Behind": "Begin → beginning",
			"Elsewhere": "Account → accounting", "taken": " → stray",
		},
		queued: {"Entered": "yes → running", "Dropped": "GiveBack → ending", "leaving": "Drop → queued", "Foreign": "Drop → queued",
			"taken": "Drop → stray", "Stop": "Drop → queued"},
		running: {
			"Returned": "End → ending", "Uncalled": "GiveBack → ending", "taken": " → stray",
		},
		ending: {"Committed": " → idle", "taken": " → stray"},
	}
	everyEvent(t, in, occurrences(ledger.Item{Through: zero}), table)
}

// everyEvent sends every event in every state, with the fire in hand and with another one.
func everyEvent(t *testing.T, in func(phase) *Machine, events []occurrence, table map[phase]map[string]string) {
	t.Helper()
	byDue := []string{"Begun", "Entered", "Dropped", "Uncalled", "Returned"}
	for p := range phases {
		for _, e := range events {
			for _, wrong := range []bool{false, true} {
				t.Run(fmt.Sprint(phaseNames[p], "/", e.name, "/", wrong), func(t *testing.T) {
					m, due := in(p), at(10)
					require.Equal(t, p, m.items[0].phase)
					if wrong {
						due = at(20) // of another fire
					}
					out := e.send(m, due)
					after := "gone"
					if it := m.items[0]; it != nil {
						after = phaseNames[it.phase]
					} else if m.strays[0] != nil {
						after = "stray"
					}
					want, something := table[p][e.name]
					ignored := wrong && (slices.Contains(byDue, e.name) ||
						(p == beginning && slices.Contains([]string{"NotOwned", "Behind", "Elsewhere"}, e.name)))
					if !something || ignored {
						want = " → " + phaseNames[p]
					}
					require.Equal(t, want, out+" → "+after)
					require.Equal(t, after == "idle" || after == "gone", m.Quiet())
				})
			}
		}
	}
}

// Of an item that is not owned no event does anything.
func TestEventsOfAnItemThatIsNotOwned(t *testing.T) {
	m := owning(monitored, 1)
	for _, out := range [][]Action{
		m.Known(3, true, at(11)), m.Begun(3, at(10), 1), m.Refused(3, at(10), Elsewhere, ledger.Item{}, "", at(11)),
		m.Dropped(3, at(10)), m.Uncalled(3, at(10)),
		m.Returned(3, at(10), at(11)), m.Committed(3, at(10), at(11)), m.Unblock(3, at(1)),
	} {
		require.Empty(t, out)
	}
	require.False(t, m.Entered(3, at(10)))
	require.False(t, m.IsKnown(3))
	require.True(t, m.Quiet())
	require.Equal(t, []int{0}, m.Numbers())
}

// A stray is what is in hand of an item that the ledger does not hold any more: it goes on
// to its end, and no further; or further when the item comes back meanwhile.
func TestStrays(t *testing.T) {
	gone := ledger.New(1, 1)
	t.Run("beginning, refused", func(t *testing.T) {
		m := in(beginning)
		require.Empty(t, m.Own(gone, at(12)))
		require.False(t, m.Quiet())
		require.Empty(t, m.Refused(0, at(10), NotOwned, ledger.Item{}, "", at(12)))
		require.True(t, m.Quiet())
		require.Empty(t, m.strays)
	})
	t.Run("queued", func(t *testing.T) {
		m := in(queued)
		require.Equal(t, "Drop", says(m.Own(gone, at(12))))
		require.False(t, m.Entered(0, at(10)))
		out := m.Dropped(0, at(10))
		require.Equal(t, []Action{{Kind: GiveBack, Due: at(10), Through: zero}}, out, "nothing runs")
		require.Empty(t, m.Committed(0, zero, at(12)))
		require.True(t, m.Quiet())
	})
	t.Run("running", func(t *testing.T) {
		m := in(running)
		m.Own(gone, at(12))
		require.Equal(t, []Action{{Kind: End, Due: at(10), Through: at(10)}}, m.Returned(0, at(10), at(35)))
		require.Empty(t, m.Committed(0, at(10), at(35)))
		require.True(t, m.Quiet())
		require.Empty(t, m.Tick(at(45)))
	})
	t.Run("unrecorded", func(t *testing.T) {
		m := owning(Config{}, 1)
		m.Tick(at(11))
		require.True(t, m.Entered(0, at(10)))
		m.Own(gone, at(12))
		require.Empty(t, m.Returned(0, at(10), at(35)))
		require.True(t, m.Quiet())
	})
	// The function still runs when the item comes back: it does not run twice at once.
	t.Run("owned again", func(t *testing.T) {
		m := in(running)
		m.Own(gone, at(12))
		require.Empty(t, m.Own(all(1, ledger.Item{Through: at(10)}), at(21)))
		require.Empty(t, m.Known(0, false, at(22)))
		require.Equal(t, "End", says(m.Returned(0, at(10), at(25))))
		m.Committed(0, at(20), at(25))
		require.Equal(t, "Begin", says(m.Tick(at(31))))
	})
	// A begin in flight while the item goes and comes back is one begin, not two: the second
	// would be refused and leave the first without its end.
	t.Run("owned again while it begins, and given back", func(t *testing.T) {
		m := owning(monitored, 1)
		begin := one(t, m.Tick(at(35)), Begin)
		require.Equal(t, at(20), begin.Skips[0].Last)
		m.Own(gone, at(36))
		require.Empty(t, m.Own(all(1, ledger.Item{Through: zero}), at(36)))
		m.Known(0, false, at(36))
		require.Equal(t, "Run", says(m.Begun(0, at(30), 1)))
		require.Equal(t, at(20), one(t, m.Dropped(0, at(30)), GiveBack).Through, "what was told with it does not run")
	})
	t.Run("owned again while it begins", func(t *testing.T) {
		m := in(beginning)
		m.Own(gone, at(12))
		require.Empty(t, m.Own(all(1, ledger.Item{Through: zero}), at(12)))
		require.Empty(t, m.Known(0, false, at(12)))
		require.Equal(t, "Run", says(m.Begun(0, at(10), 1)))
		require.True(t, m.Entered(0, at(10)))
		require.Equal(t, "End", says(m.Returned(0, at(10), at(13))))
	})
}
