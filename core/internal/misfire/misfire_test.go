package misfire

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/core/internal/schedule"
)

var zero = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

func at(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }

// A list is a schedule that is written out, ascending.
type list []time.Time

func (l list) Next(after time.Time) (time.Time, bool) {
	for _, t := range l {
		if t.After(after) {
			return t, true
		}
	}
	return time.Time{}, false
}

func (l list) Prev(before, notBefore time.Time) (time.Time, bool) {
	for _, t := range slices.Backward(l) {
		if t.Before(before) {
			return t, !t.Before(notBefore)
		}
	}
	return time.Time{}, false
}

func seconds(all ...int) list {
	l := make(list, 0, len(all))
	for _, s := range all {
		l = append(l, at(s))
	}
	return l
}

var lists = rapid.Custom(func(t *rapid.T) list {
	all := rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 0, 25, rapid.ID).Draw(t, "fires")
	slices.Sort(all)
	return seconds(all...)
})

// between is the oracle: the fires after from, up to upTo.
func between(l list, from, upTo time.Time) (fires list) {
	for _, t := range l {
		if t.After(from) && !t.After(upTo) {
			fires = append(fires, t)
		}
	}
	return fires
}

func decided(fires list, run int) Decision {
	cut := max(0, len(fires)-run)
	d := Decision{Skipped: cut}
	if cut > 0 {
		d.First, d.Last = fires[0], fires[cut-1]
	}
	if cut < len(fires) {
		d.Runs = fires[cut:]
	}
	return d
}

func requireSame(t *rapid.T, want, got Decision) {
	if got.Skipped != want.Skipped || !got.First.Equal(want.First) || !got.Last.Equal(want.Last) ||
		!slices.EqualFunc(got.Runs, want.Runs, time.Time.Equal) {
		t.Fatalf("%+v\n%+v", want, got)
	}
}

func TestTheLatestFiresRunAndTheOthersAreSkipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, run := lists.Draw(t, "schedule"), rapid.IntRange(0, 12).Draw(t, "run")
		from, upTo := at(rapid.IntRange(-5, 65).Draw(t, "from")), at(rapid.IntRange(-5, 65).Draw(t, "up to"))
		requireSame(t, decided(between(l, from, upTo), run), Decide(Rule{Run: run}, l, from, upTo))
	})
}

// A line fires as the one schedule until since, since included, and as the other afterwards.
func TestALineIsTwoSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, now, since := lists.Draw(t, "before"), lists.Draw(t, "now"), at(rapid.IntRange(-5, 65).Draw(t, "since"))
		line, want := Line{Since: since, Now: now}, between(now, since, at(100))
		if rapid.Bool().Draw(t, "has one before") {
			line.Before = before
			want = append(between(before, at(-100), since), want...)
		}
		var fires Fires = line
		if rapid.Bool().Draw(t, "changed again") {
			again := at(rapid.IntRange(-5, 65).Draw(t, "again"))
			third := lists.Draw(t, "third")
			fires = Line{Before: line, Since: again, Now: third}
			want = append(between(want, at(-100), again), between(third, again, at(100))...)
		}
		for s := -6; s < 66; s++ {
			for _, x := range []time.Time{at(s), at(s).Add(1), at(s).Add(-1)} {
				next, ok := fires.Next(x)
				wantNext, wantOK := want.Next(x)
				if ok != wantOK || (ok && !next.Equal(wantNext)) {
					t.Fatalf("next after %v: %v %v, want %v %v", x, next, ok, wantNext, wantOK)
				}
				notBefore := at(rapid.IntRange(-5, 65).Draw(t, "not before"))
				prev, ok := fires.Prev(x, notBefore)
				wantPrev, wantOK := want.Prev(x, notBefore)
				if ok != wantOK || (ok && !prev.Equal(wantPrev)) {
					t.Fatalf("prev before %v, not before %v: %v %v, want %v %v", x, notBefore, prev, ok, wantPrev, wantOK)
				}
			}
		}
		from, upTo, run := at(rapid.IntRange(-5, 65).Draw(t, "from")), at(rapid.IntRange(-5, 65).Draw(t, "up to")),
			rapid.IntRange(0, 12).Draw(t, "run")
		requireSame(t, decided(between(want, from, upTo), run), Decide(Rule{Run: run}, fires, from, upTo))
	})
}

// Past CountLimit the count is a lower bound; the runs are the latest all the same, however
// few fires there are beyond it.
func TestPastTheCountLimit(t *testing.T) {
	every, err := schedule.Parse(schedule.Config{Expr: "* * * * * ?", Zone: "UTC"})
	require.NoError(t, err)
	for _, fires := range []int{CountLimit - 1, CountLimit, CountLimit + 1, CountLimit + 3, CountLimit + 10,
		CountLimit + 11, 100_000_000} {
		for _, run := range []int{0, 1, 10} {
			d := Decide(Rule{Run: run}, every, zero, at(fires))
			require.Len(t, d.Runs, run)
			for i, due := range d.Runs {
				require.True(t, due.Equal(at(fires-run+1+i)), "%d fires: %v", fires, d.Runs)
			}
			require.True(t, d.First.Equal(at(1)))
			require.True(t, d.Last.Equal(at(fires-run)), "%d fires, %d run: the last is %v", fires, run, d.Last)
			require.LessOrEqual(t, d.Skipped, fires-run)
			require.GreaterOrEqual(t, d.Skipped, min(fires-run, CountLimit-run))
		}
	}
	d := Decide(Rule{Run: 2 * CountLimit}, every, zero, at(CountLimit+7))
	require.Len(t, d.Runs, CountLimit+7)
	require.Zero(t, d.Skipped)
	require.True(t, d.First.IsZero())
}

// Finding 11: a decision about years costs milliseconds; here, it is counted what it asks.
func TestADecisionAsksTheScheduleSoOften(t *testing.T) {
	c := &counted{}
	Decide(Rule{Run: 10}, c, zero, zero.AddDate(30, 0, 0))
	require.Less(t, c.asked, CountLimit+100)
}

// counted fires each second and counts how often it is asked.
type counted struct{ asked int }

func (c *counted) Next(after time.Time) (time.Time, bool) {
	c.asked++
	return after.Add(time.Second), true
}

func (c *counted) Prev(before, _ time.Time) (time.Time, bool) {
	c.asked++
	return before.Add(-time.Second), true
}
