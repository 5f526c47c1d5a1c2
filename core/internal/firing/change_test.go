package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// at is a fire of the tests' schedule.
func at(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0).UTC() }

// Through rises and never falls: what lies before it has its outcome, and would get a second one. A run that somebody
// asked for may have waited for later fires; it is behind the cursor when it runs again.
func TestTheBeginOfAFireThatRunsAgainLeavesTheCursor(t *testing.T) {
	for name, request := range map[string]int64{"a fire": 0, "a run that was asked for": 7} {
		t.Run(name, func(t *testing.T) {
			rec := ledger.Item{Through: at(5), Redo: ledger.Redo{Due: at(2), Lost: "a", Tries: 1}, Request: request}
			c := change{
				Action: items.Action{Kind: items.Begin, Due: at(2), Redo: true, Lost: "a", Tries: 1, Request: request}, now: time.Now, epoch: 1,
			}
			require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}, false))
			require.Equal(t, at(2), rec.Run)
			require.Equal(t, ledger.Redo{Lost: "a", Tries: 1}, rec.Redo, "what it runs again for stays until it has ended")
			require.Equal(t, at(5), rec.Through)
			c.Action = items.Action{Kind: items.End, Due: at(2), Redo: true, Through: at(4), Request: request}
			require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}, false))
			require.Equal(t, at(5), rec.Through)
			require.True(t, rec.Run.IsZero())
			require.Equal(t, ledger.Redo{}, rec.Redo)
		})
	}
}

// An ordinary begin moves it to the fire.
func TestABeginMovesTheCursorToItsFire(t *testing.T) {
	rec := ledger.Item{Through: at(1)}
	c := change{Action: items.Action{Kind: items.Begin, Due: at(2)}, now: time.Now, epoch: 1}
	require.True(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}, false))
	require.Equal(t, ledger.Item{Through: at(2), Run: at(2)}, rec)
	require.False(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}, false), "it runs")
	rec.Run = time.Time{}
	require.False(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1}, false), "it has been begun")
}

// What is told of the fires before the next one stands in the commit that begins it, or in none.
func TestAnEndTellsWhatItsNextFireStandsFor(t *testing.T) {
	folded := []items.Skip{{First: at(3), Last: at(3), Count: 1, Into: at(4)}}
	end := items.Action{Kind: items.End, Due: at(2), Through: at(2), Next: at(4), NextSkips: folded}
	runs := ledger.Item{Through: at(2), Run: at(2)}
	in := &ledger.Ledger{Epoch: 1}

	c, rec := change{Action: end, now: time.Now, epoch: 1}, runs
	require.True(t, c.Apply(&rec, in, false))
	require.Equal(t, ledger.Item{Through: at(4), Run: at(4), Told: items.Told(folded)}, rec)
	require.Equal(t, folded, c.told())

	rec = runs
	require.True(t, c.Apply(&rec, in, true), "what runs is shown first")
	require.Equal(t, ledger.Item{Through: at(2)}, rec)
	require.Empty(t, c.told())

	rec = ledger.Item{Through: at(3), Run: at(2)}
	require.True(t, c.Apply(&rec, in, false), "others have decided about one of them")
	require.Equal(t, ledger.Item{Through: at(3)}, rec)
	require.Empty(t, c.told())
}

// Of an item that is lent the record lets nothing begin but what runs again, nor does the borrower
// account for its fires.
func TestOfWhatIsLentOnlyWhatRunsAgainBegins(t *testing.T) {
	in := &ledger.Ledger{Epoch: 1}
	lent := ledger.Item{Through: at(5), Bound: "a"}
	owed := lent
	owed.Redo = ledger.Redo{Due: at(5), Lost: "x", Tries: 1}
	apply := func(rec ledger.Item, a items.Action) (ledger.Item, bool) {
		c := change{Action: a, now: time.Now, epoch: 1}
		return rec, c.Apply(&rec, in, false)
	}
	for name, a := range map[string]items.Action{
		"a fire":                   {Kind: items.Begin, Due: at(7)},
		"a run that was asked for": {Kind: items.Begin, Due: at(7), Request: 3},
		"an account":               {Kind: items.Account, Through: at(7)},
		"what is told as skipped":  {Kind: items.Account, Through: at(5), Skips: []items.Skip{{First: at(5), Last: at(5), Count: 1}}},
		"a reset":                  {Kind: items.Account, Through: at(2), Reset: true},
	} {
		_, applied := apply(lent, a)
		require.False(t, applied, name)
		_, applied = apply(owed, a)
		require.False(t, applied, name)
	}
	c := change{Action: items.Action{Kind: items.Begin, Due: at(5), Redo: true}, now: time.Now, epoch: 1}
	require.True(t, c.Apply(&owed, in, false))
	require.Equal(t, at(5), owed.Run)
	c.Action = items.Action{Kind: items.End, Due: at(5), Redo: true, Through: at(5)}
	require.True(t, c.Apply(&owed, in, false))
	require.Equal(t, lent, owed, "it is lent until its owner is back")
	owed.Told = ledger.Told{}.With(ledger.Note{Due: at(4), Instance: "x"})
	c.Action = items.Action{Kind: items.Account, Through: at(5)}
	require.True(t, c.Apply(&owed, in, false))
	require.Equal(t, lent, owed, "the borrower has told what was decided")
}

// An end begins the next fire in the same commit where the record lets it, and is else a plain end.
func TestAnEndBeginsTheNextFire(t *testing.T) {
	ends := func(rec ledger.Item, in ledger.Ledger) (ledger.Item, bool) {
		c := change{Action: items.Action{Kind: items.End, Due: at(2), Through: at(2), Next: at(4)}, now: time.Now, epoch: 1}
		in.Epoch = 1
		require.True(t, c.Apply(&rec, &in, false))
		return rec, c.Follows()
	}
	runs := ledger.Item{Through: at(2), Run: at(2)}
	rec, followed := ends(runs, ledger.Ledger{})
	require.True(t, followed)
	require.Equal(t, ledger.Item{Through: at(4), Run: at(4)}, rec)
	undo := change{Action: items.Action{Kind: items.GiveBack, Due: at(4), Through: at(2)}, now: time.Now, epoch: 1}
	require.True(t, undo.Apply(&rec, &ledger.Ledger{Epoch: 1}, false))
	require.Equal(t, ledger.Item{Through: at(2)}, rec)

	plain := ledger.Item{Through: at(2)}
	for name, with := range map[string]func(*ledger.Item, *ledger.Ledger){
		"a ledger that is held":      func(_ *ledger.Item, in *ledger.Ledger) { in.Held = true },
		"one that is held, up to it": func(_ *ledger.Item, in *ledger.Ledger) { in.Held, in.Until = true, at(4) },
		"an item that leaves":        func(rec *ledger.Item, _ *ledger.Ledger) { rec.Leaving = true },
		"one that is lent":           func(rec *ledger.Item, _ *ledger.Ledger) { rec.Bound = "a" },
		"one that is beyond it":      func(rec *ledger.Item, _ *ledger.Ledger) { rec.Through = at(5) },
	} {
		in, was, want := ledger.Ledger{}, runs, plain
		with(&was, &in)
		with(&want, &in)
		rec, followed := ends(was, in)
		require.False(t, followed, name)
		require.Equal(t, want, rec, name)
	}
	rec, followed = ends(ledger.Item{Through: at(3), Run: at(3)}, ledger.Ledger{})
	require.False(t, followed, "another fire runs by now")
	require.Equal(t, at(3), rec.Run)
}

// An epoch ends at its last fire, and what was asked for afterwards and ran when its owner died is owed of it all the
// same: nothing of the next one begins before.
func TestWhatWasAskedForAndRunsAgainIsOfTheEpochThatEnds(t *testing.T) {
	in := &ledger.Ledger{Epoch: 1, Held: true, Until: at(5)}
	owed := ledger.Item{Through: at(5), Redo: ledger.Redo{Due: at(7), Lost: "a", Tries: 1}, Request: 3, Asked: 3}
	for _, kind := range []items.Kind{items.Begin, items.CutRedo} {
		rec := owed
		c := change{Action: items.Action{Kind: kind, Due: at(7), Through: at(5), Redo: true, Lost: "a", Tries: 1, Request: 3}, now: time.Now, epoch: 1}
		require.True(t, c.Apply(&rec, in, false), kind)
		rec = owed
		require.False(t, c.Apply(&rec, &ledger.Ledger{Epoch: 1, Held: true}, false), "up to where is not known yet")
	}
}
