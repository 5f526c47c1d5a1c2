package misfire

import (
	"math"
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

var rules = rapid.Custom(func(t *rapid.T) Rule {
	return Rule{
		Policy: rapid.SampledFrom([]Policy{Once, Skip, All}).Draw(t, "policy"), Cap: rapid.IntRange(1, 12).Draw(t, "cap"),
		Window: time.Duration(rapid.SampledFrom([]int{0, 1, 500, 1000, 7000, 20_000, 3_600_000}).Draw(t, "window")) * time.Millisecond,
	}
})

func spanOf(t *rapid.T) Span {
	s := Span{
		From: at(rapid.IntRange(-5, 65).Draw(t, "from")), Up: at(rapid.IntRange(-100, 80).Draw(t, "up")),
		Now: at(rapid.IntRange(-5, 70).Draw(t, "now")).Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ms")) * time.Millisecond),
	}
	s.UpTo = s.Now
	if rapid.Bool().Draw(t, "an epoch ends") {
		s.UpTo = at(rapid.IntRange(-5, 65).Draw(t, "up to"))
	}
	return s
}

// fates is the oracle: what becomes of each fire, written down as the rule reads.
func fates(r Rule, fires list, s Span) map[time.Time]string {
	all := map[time.Time]string{}
	up := s.Up
	if up.After(s.Now) {
		up = s.Now
	}
	told := func(t time.Time, why string) {
		if all[t] = why; !t.After(up) {
			all[t] = "down"
		}
	}
	var owed list
	for _, t := range between(fires, s.From, s.UpTo) {
		late := s.Now.Sub(t)
		switch {
		case r.Window > 0 && late > max(r.Window, Prompt):
			told(t, "late")
		case r.Window == 0 && !t.After(up):
			told(t, "late")
		default:
			owed = append(owed, t)
		}
	}
	for i, t := range owed {
		after := len(owed) - 1 - i
		switch {
		case r.Policy == Once && after == 0, r.Policy == All && after < r.Cap:
			all[t] = "runs"
		case r.Policy == Once:
			all[t] = "folded"
		case r.Policy == All:
			told(t, "beyond")
		case after == 0 && s.Now.Sub(t) <= Prompt && t.After(up):
			all[t] = "runs"
		default:
			told(t, "missed")
		}
	}
	return all
}

var words = map[Why]string{Down: "down", Late: "late", Beyond: "beyond", Missed: "missed"}

// fatesOf reads a decision, and requires that it speaks of each fire once and in order.
func fatesOf(t *rapid.T, fires list, s Span, d Decision) map[time.Time]string {
	all := map[time.Time]string{}
	last := s.From
	note := func(x Stretch, what string) {
		dues := between(fires, x.First.Add(-1), x.Last)
		if len(dues) != x.Count || x.Count == 0 || !dues[0].Equal(x.First) || !dues[x.Count-1].Equal(x.Last) || !x.First.After(last) {
			t.Fatalf("%s: %+v", what, x)
		}
		for _, due := range dues {
			all[due] = what
		}
		last = x.Last
	}
	for _, x := range d.Skipped {
		note(x.Stretch, words[x.Why])
	}
	if d.Folded != (Stretch{}) {
		note(d.Folded, "folded")
		if len(d.Runs) != 1 {
			t.Fatalf("folded into %v", d.Runs)
		}
	}
	for _, due := range d.Runs {
		note(Stretch{due, due, 1}, "runs")
	}
	return all
}

// Every fire of a span has one fate, and it is that of the rule.
func TestEachFireHasTheFateOfItsRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, r, s := lists.Draw(t, "schedule"), rules.Draw(t, "rule"), spanOf(t)
		d := Decide(r, l, s)
		require.Equal(t, fates(r, l, s), fatesOf(t, l, s, d))
	})
}

// Until it says so a decision is the same later.
func TestADecisionHoldsForAWhile(t *testing.T) {
	held, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tried++
		l, r, s := lists.Draw(t, "schedule"), rules.Draw(t, "rule"), spanOf(t)
		d := Decide(r, l, s)
		later := s
		later.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 25_000).Draw(t, "later")) * time.Millisecond)
		if s.UpTo.Equal(s.Now) {
			later.UpTo = later.Now
		}
		if later.Now.Before(d.Until) {
			held++
			require.Equal(t, fatesOf(t, l, s, d), fatesOf(t, l, later, Decide(r, l, later)))
		}
	})
	require.Greater(t, 20*held, tried, "chance has played too little")
}

// The longest window is no other: a decision holds until the next fire.
func TestADecisionHoldsWithTheLongestWindow(t *testing.T) {
	d := Decide(Rule{Window: math.MaxInt64}, seconds(10, 20, 30), Span{From: at(5), UpTo: at(25), Now: at(25), Up: at(0)})
	require.Equal(t, []time.Time{at(20)}, d.Runs)
	require.Equal(t, 1, d.Folded.Count)
	require.Equal(t, at(30), d.Until)
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
		r, span := rules.Draw(t, "rule"), spanOf(t)
		require.Equal(t, fates(r, want, span), fatesOf(t, want, span, Decide(r, fires, span)))
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
			rest, runs := latest(every, zero, at(fires), run)
			require.Len(t, runs, run)
			for i, due := range runs {
				require.True(t, due.Equal(at(fires-run+1+i)), "%d fires: %v", fires, runs)
			}
			require.True(t, rest.First.Equal(at(1)))
			require.True(t, rest.Last.Equal(at(fires-run)), "%d fires, %d run: the last is %v", fires, run, rest.Last)
			require.LessOrEqual(t, rest.Count, fires-run)
			require.GreaterOrEqual(t, rest.Count, min(fires-run, CountLimit-run))
		}
	}
	rest, runs := latest(every, zero, at(CountLimit+7), 2*CountLimit)
	require.Len(t, runs, CountLimit+7)
	require.Equal(t, Stretch{}, rest)
}

// Finding 11: a decision about years costs milliseconds; here, it is counted what it asks.
func TestADecisionAsksTheScheduleSoOften(t *testing.T) {
	years := zero.AddDate(30, 0, 0)
	for _, r := range []Rule{{Policy: Once}, {Policy: Once, Window: time.Hour}, {Policy: Skip, Window: 48 * time.Hour}, {Policy: All, Cap: 10}} {
		c := &counted{}
		Decide(r, c, Span{From: zero, UpTo: years, Now: years})
		require.Less(t, c.asked, 2*CountLimit+100, "%+v", r)
	}
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
