package schedule

import (
	"strings"
	"time"
)

// Gap says what becomes of a fire whose wall-clock time does not exist because
// the clocks went forward over it.
type Gap uint8

const (
	// RunAfterGap fires once at the first instant after the gap, however many
	// fires fell into it. The default.
	RunAfterGap Gap = iota
	// SkipGap drops the fires in the gap.
	SkipGap
)

// Overlap says what becomes of a fire whose wall-clock time comes twice because
// the clocks went back over it.
type Overlap uint8

const (
	// FirstOnly fires the first time only. The default.
	FirstOnly Overlap = iota
	// Both fires both times.
	Both
)

// Config describes a schedule as a user writes it. Only Expr is required.
type Config struct {
	// Expr is a Quartz cron expression of 6 or 7 fields, a descriptor
	// (@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly),
	// "@every 90s" (fixed rate), "@delay 90s" (fixed delay) or "@requests" (no fire at all).
	Expr string
	// Zone is an IANA name, "UTC", or an offset in Java's form: "GMT+8",
	// "GMT-03:30". Empty means time.Local.
	Zone string
	// Gap applies to expressions that do not name every hour. Zero: RunAfterGap.
	Gap Gap
	// Overlap applies to expressions that do not name every hour. Zero: FirstOnly.
	Overlap Overlap
}

// A Schedule says when a job fires. Parse makes it; it is immutable and safe for
// concurrent use. Equal configurations have one, but for those of the local zone.
type Schedule struct {
	text string
	zone *zone
	plan plan
	memo memo // of a cron expression
}

// A plan is one way to fire: cron, rate or delay. Times are instants; the plan
// need not set their location.
type plan interface {
	next(z *zone, after time.Time) (time.Time, bool)
}

// Parse compiles c. Its error is a *field.Error. An expression that is well formed
// but never fires, such as one for 30 February, is accepted: Next says so.
func Parse(c Config) (*Schedule, error) { return inUse.schedule(c) }

func build(c Config) (*Schedule, error) {
	z, err := parseZone(c.Zone)
	if err != nil {
		return nil, err
	}
	if c.Gap > SkipGap {
		return nil, faultf(gapField, "", "%d is neither RunAfterGap nor SkipGap", c.Gap)
	}
	if c.Overlap > Both {
		return nil, faultf(overlapField, "", "%d is neither FirstOnly nor Both", c.Overlap)
	}
	text := strings.TrimSpace(c.Expr)
	p, err := parsePlan(text, c.Gap, c.Overlap)
	if err != nil {
		return nil, err
	}
	return &Schedule{text: text, zone: z, plan: p}, nil
}

// Next returns the first fire strictly after the given instant, in Location and
// without a monotonic reading. ok is false when the schedule never fires again;
// next is then the zero time and means nothing.
func (s *Schedule) Next(after time.Time) (next time.Time, ok bool) {
	if s.ReadsClock() {
		return s.memo.next(after, s.find)
	}
	return s.find(after)
}

func (s *Schedule) find(after time.Time) (time.Time, bool) {
	t, ok := s.plan.next(s.zone, after)
	if !ok {
		return time.Time{}, false
	}
	return t.In(s.zone.loc), true
}

// Prev returns the last fire before the given instant and not before notBefore;
// ok is false when there is none. A fixed delay has no fires of its own: ok is
// false. It costs some 40 calls of Next for a window of years.
func (s *Schedule) Prev(before, notBefore time.Time) (prev time.Time, ok bool) {
	if _, fixed := s.Delay(); fixed {
		return time.Time{}, false
	}
	floor := notBefore.Round(0).Add(-1)
	prev, ok = s.Next(floor)
	if !ok || !prev.Before(before) {
		return time.Time{}, false
	}
	// Next is monotonic: halve the window (prev, high) that may hold a later fire.
	for high := before.Round(0); ; {
		width := high.Sub(prev)
		if width <= shortest { // no two fires are closer
			return prev, true
		}
		middle := prev.Add(width / 2)
		if t, more := s.Next(middle.Add(-1)); more && t.Before(high) {
			prev = t
		} else {
			high = middle
		}
	}
}

// Delay returns the pause between the end of a run and the next fire, and
// whether the schedule is a fixed delay at all. For a fixed delay Next(t) is t
// plus this pause: the caller passes the end of the run.
func (s *Schedule) Delay() (time.Duration, bool) {
	d, ok := s.plan.(delay)
	return time.Duration(d), ok
}

// String returns the expression as it was given, without space around it.
func (s *Schedule) String() string { return s.text }

// Location returns the zone in which the expression is read; never nil.
func (s *Schedule) Location() *time.Location { return s.zone.loc }

// OnRequest reports whether the schedule has no fires: the job runs when somebody asks.
func (s *Schedule) OnRequest() bool {
	_, ok := s.plan.(onRequest)
	return ok
}

// onRequest is the plan without fires.
type onRequest struct{}

func (onRequest) next(*zone, time.Time) (time.Time, bool) { return time.Time{}, false }

// ReadsClock reports whether the schedule depends on the zone: rates and delays do not.
func (s *Schedule) ReadsClock() bool {
	_, ok := s.plan.(*cronPlan)
	return ok
}
