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

// A Rule says how many of the fires that came due run.
type Rule struct {
	// Run is how many run, the latest ones; the others are skipped.
	Run int
}

// A Decision is what becomes of the fires of a stretch of time.
type Decision struct {
	// Runs are the fires that run, oldest first.
	Runs []time.Time
	// Skipped is how many do not; First and Last are the first and the last of them.
	// Past CountLimit fires it is a lower bound.
	Skipped     int
	First, Last time.Time
}

// CountLimit bounds the fires that are counted one by one.
const CountLimit = 10_000

// Decide decides about the fires due after from, up to upTo.
func Decide(r Rule, f Fires, from, upTo time.Time) Decision {
	var d Decision
	skip := func(t time.Time) {
		if d.Skipped == 0 {
			d.First = t
		}
		d.Skipped++
		d.Last = t
	}
	for t, seen := from, 0; ; seen++ {
		next, ok := f.Next(t)
		if !ok || next.After(upTo) {
			return d
		}
		if seen == CountLimit {
			return latest(r, f, from, next, upTo)
		}
		t = next
		if r.Run == 0 {
			skip(next)
			continue
		}
		if d.Runs = append(d.Runs, next); len(d.Runs) > r.Run {
			skip(d.Runs[0])
			d.Runs = slices.Delete(d.Runs, 0, 1)
		}
	}
}

// latest decides about more fires than are counted: CountLimit before next, and next. What
// runs are the last ones.
func latest(r Rule, f Fires, from, next, upTo time.Time) Decision {
	d := Decision{Skipped: CountLimit + 1}
	before := upTo.Add(1)
	for {
		t, ok := f.Prev(before, from.Add(1))
		if !ok { // all run
			d.Skipped = 0
			break
		}
		before = t
		if len(d.Runs) == r.Run {
			d.Last = t
			break
		}
		d.Runs = append(d.Runs, t)
		if !t.After(next) {
			d.Skipped-- // it was counted
		}
	}
	if d.Skipped > 0 {
		d.First, _ = f.Next(from)
	}
	slices.Reverse(d.Runs)
	return d
}
