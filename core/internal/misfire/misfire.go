package misfire

import (
	"slices"
	"time"
)

// Fires is a schedule, as schedule.Schedule defines it.
type Fires interface {
	// Next returns the first fire after an instant.
	Next(after time.Time) (time.Time, bool)
	// Prev returns the last fire before an instant and not before another.
	Prev(before, notBefore time.Time) (time.Time, bool)
}

// A Line is a schedule that was changed: Before says what is due until Since, Since
// included, Now what is due after it. Without Before it is Now alone.
type Line struct {
	Before Fires
	Since  time.Time
	Now    Fires
}

// Next implements Fires.
func (l Line) Next(after time.Time) (time.Time, bool) {
	if l.Before != nil && after.Before(l.Since) {
		if t, ok := l.Before.Next(after); ok && !t.After(l.Since) {
			return t, true
		}
	}
	if after.Before(l.Since) {
		after = l.Since
	}
	return l.Now.Next(after)
}

// Prev implements Fires.
func (l Line) Prev(before, notBefore time.Time) (time.Time, bool) {
	if before.After(l.Since) {
		from := notBefore
		if !from.After(l.Since) {
			from = l.Since.Add(1)
		}
		if t, ok := l.Now.Prev(before, from); ok {
			return t, true
		}
		before = l.Since.Add(1)
	}
	if l.Before == nil {
		return time.Time{}, false
	}
	return l.Before.Prev(before, notBefore)
}

// A Policy says which of the fires that came due unnoticed run.
type Policy uint8

const (
	// Once: the latest one runs, and stands for the others.
	Once Policy = iota
	// Skip: none. The latest one runs where it is on time.
	Skip
	// All: each of the latest ones.
	All
)

// A Rule is a policy with its bounds.
type Rule struct {
	Policy Policy
	// Cap is how many run with All.
	Cap int
	// Window is how late a fire may be to be made up. 0: however late, but none that was
	// due while no instance was up.
	Window time.Duration
}

// Prompt is how late a fire may be to be on time: it is not missed then, whatever the
// rule says.
const Prompt = time.Second

// A Span is what is decided about: the fires due after From, up to UpTo.
type Span struct {
	From, UpTo time.Time
	// Now is the time of the decision.
	Now time.Time
	// Up is since when the job has had a live instance without a break.
	Up time.Time
}

// A Stretch is some fires in a row. The zero value is none.
type Stretch struct {
	First, Last time.Time
	// Count is how many they are; past CountLimit it is a lower bound.
	Count int
}

// Why says why fires are skipped.
type Why uint8

const (
	// Down: no instance was up when they came due.
	Down Why = iota + 1
	// Late: they are too late to be made up.
	Late
	// Beyond: there are more than are made up.
	Beyond
	// Missed: nothing is made up.
	Missed
)

// A Skipped stretch has one reason.
type Skipped struct {
	Stretch
	Why Why
}

// A Decision is what becomes of the fires of a span.
type Decision struct {
	// Skipped are the fires that do not run, oldest first.
	Skipped []Skipped
	// Folded are those that the one in Runs stands for.
	Folded Stretch
	// Runs are the fires that run, oldest first.
	Runs []time.Time
	// Until is up to when, itself excluded, the decision is the same for a later Now, and
	// UpTo with it where that is Now. It is Now or earlier where that is not known.
	Until time.Time
}

// CountLimit bounds the fires that are counted one by one.
const CountLimit = 10_000

// Decide decides about the fires of a span.
func Decide(r Rule, f Fires, s Span) Decision {
	if !s.From.Before(s.UpTo) {
		return Decision{}
	}
	up := earlier(s.Up, s.Now) // another instance's clock may be ahead
	old := up
	if r.Window > 0 {
		old = s.Now.Add(-max(r.Window, Prompt) - 1)
	}
	var d Decision
	from := d.skip(f, Count(f, s.From, earlier(old, s.UpTo)), s.From, up, Late)
	run := 1
	if r.Policy == All {
		run = r.Cap
	}
	rest, runs := latest(f, from, s.UpTo, run)
	oldest := rest.First
	if rest.Count == 0 && len(runs) > 0 {
		oldest = runs[0]
	}
	prompt := len(runs) > 0 && runs[len(runs)-1].After(up) && !runs[len(runs)-1].Before(s.Now.Add(-Prompt))
	switch {
	case r.Policy == Once:
		d.Folded, d.Runs = rest, runs
	case r.Policy == All:
		d.skip(f, rest, from, up, Beyond)
		d.Runs = runs
	case prompt:
		d.skip(f, rest, from, up, Missed)
		d.Runs = runs
	default:
		for _, due := range runs {
			rest = rest.with(due)
		}
		d.skip(f, rest, from, up, Missed)
	}
	d.Until = until(r, f, s, oldest, prompt, runs)
	return d
}

// until is when a decision is another one.
func until(r Rule, f Fires, s Span, oldest time.Time, prompt bool, runs []time.Time) time.Time {
	if s.Up.After(s.Now) {
		return s.Now
	}
	next, ok := f.Next(s.UpTo)
	if !ok || !s.UpTo.Equal(s.Now) {
		next = s.Now.Add(time.Hour) // another decision is cheap
	}
	if !oldest.IsZero() && r.Window > 0 {
		next = earlier(next, oldest.Add(max(r.Window, Prompt)).Add(1))
	}
	if prompt {
		next = earlier(next, runs[len(runs)-1].Add(Prompt+1))
	}
	return next
}

// skip adds fires that are skipped, those up to an instant because nobody was up. It
// returns the last of them, or else from.
func (d *Decision) skip(f Fires, s Stretch, from, up time.Time, why Why) time.Time {
	if s.Count == 0 {
		return from
	}
	down := s
	switch {
	case s.First.After(up):
		down = Stretch{}
	case s.Last.After(up):
		down = Count(f, from, up)
		s = Count(f, down.Last, s.Last)
	default:
		s = Stretch{Last: s.Last}
	}
	if down.Count > 0 {
		d.Skipped = append(d.Skipped, Skipped{down, Down})
	}
	if s.Count > 0 {
		d.Skipped = append(d.Skipped, Skipped{s, why})
	}
	return s.Last
}

func (s Stretch) with(due time.Time) Stretch {
	if s.Count == 0 {
		s.First = due
	}
	return Stretch{First: s.First, Last: due, Count: s.Count + 1}
}

// Count returns the fires due after one instant, up to another.
func Count(f Fires, from, upTo time.Time) Stretch {
	s, _ := latest(f, from, upTo, 0)
	return s
}

// latest returns the last run fires due after from, up to upTo, oldest first, and what
// there is before them.
func latest(f Fires, from, upTo time.Time, run int) (rest Stretch, runs []time.Time) {
	for t, seen := from, 0; ; seen++ {
		next, ok := f.Next(t)
		if !ok || next.After(upTo) {
			return rest, runs
		}
		if seen == CountLimit {
			return latestOfMany(f, from, next, upTo, run)
		}
		t = next
		if run == 0 {
			rest = rest.with(next)
			continue
		}
		if runs = append(runs, next); len(runs) > run {
			rest = rest.with(runs[0])
			runs = slices.Delete(runs, 0, 1)
		}
	}
}

// latestOfMany is latest for more fires than are counted: CountLimit before next, and
// next.
func latestOfMany(f Fires, from, next, upTo time.Time, run int) (rest Stretch, runs []time.Time) {
	rest.Count = CountLimit + 1
	before := upTo.Add(1)
	for {
		t, ok := f.Prev(before, from.Add(1))
		if !ok { // all run
			rest.Count = 0
			break
		}
		before = t
		if len(runs) == run {
			rest.Last = t
			break
		}
		runs = append(runs, t)
		if !t.After(next) {
			rest.Count-- // it was counted
		}
	}
	if rest.Count > 0 {
		rest.First, _ = f.Next(from)
	}
	slices.Reverse(runs)
	return rest, runs
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
