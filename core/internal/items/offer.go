package items

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// off reports whether the item is not to run, by an operator's wish or beside a leader
// of ElasticJob's.
func (m *Machine) off(it *item) bool { return it.disabled || !m.serverEnabled || m.foreign }

// whyOff is how that is told.
func (m *Machine) whyOff(it *item) event.SkipReason {
	if m.foreign && !it.disabled && m.serverEnabled {
		return event.SkipElasticJob
	}
	return event.SkipDisabled
}

// offer begins the first fire that an idle item owes, or accounts for what it skips.
func (m *Machine) offer(it *item, now time.Time) {
	if !m.offerable(it) {
		return
	}
	last := m.held && !m.until.IsZero()
	if it.redo.Owed() {
		m.offerRedo(it, now)
		return
	}
	if it.lent {
		if m.set.Monitor && it.told != (ledger.Told{}) && it.cursor.Equal(it.through) {
			m.catchUp(it) // else whoever it belongs to tells them again
		}
		return
	}
	if it.unrecorded && m.set.Monitor {
		m.catchUp(it)
		return
	}
	if !m.held && m.set.Monitor && !m.off(it) {
		if a := m.wanted(it); a != nil {
			if !m.withholds() {
				m.ask(it, a)
			}
			return
		}
	}
	if m.off(it) {
		switch {
		case last:
			m.close(it, now)
		case m.set.Rounds:
			m.account(it, m.whyOff(it), now)
		}
		return // else told in bulk, later
	}
	if m.set.Delayed {
		m.offerDelayed(it, now)
		return
	}
	upTo := now
	if last {
		upTo = m.lastOf(now)
	}
	if skips := m.skip(event.SkipElasticJob, it.cursor, earlier(m.set.Floor, upTo)); len(skips) > 0 {
		if m.pass(it, lastOf(skips, it.cursor), skips); it.phase != idle {
			return // what follows is decided once that is recorded
		}
	}
	d := m.decide(it.cursor, upTo, now)
	skips := skipped(d)
	switch {
	case len(d.Runs) > 0 && m.withholds():
	case len(d.Runs) > 0:
		f := first(it, d, now)
		it.take(f, it.cursor)
		m.begin(it, f.due, f.skips)
	case last:
		m.finish(it, skips, now)
	case len(skips) > 0:
		m.pass(it, lastOf(skips, it.cursor), skips)
	default:
		m.beginAhead(it, now)
	}
}

// offerable reports whether anything may begin of an item, or be decided about it.
func (m *Machine) offerable(it *item) bool {
	return it.phase == idle && m.open(it)
}

// open is offerable for an item whatever it does now.
func (m *Machine) open(it *item) bool {
	return !m.stopping && !m.still && it.known && !m.blocked[it.number] && !it.leaving && (!m.held || !m.until.IsZero())
}

// reasons are how a decision's are told.
var reasons = map[misfire.Why]event.SkipReason{
	misfire.Down: event.SkipDown, misfire.Late: event.SkipLate, misfire.Beyond: event.SkipBeyond, misfire.Missed: event.SkipMissed,
}

func skipped(d misfire.Decision) (skips []Skip) {
	for _, s := range d.Skipped {
		skips = append(skips, Skip{First: s.First, Last: s.Last, Count: s.Count, Reason: reasons[s.Why]})
	}
	return skips
}

func (m *Machine) offerDelayed(it *item, now time.Time) {
	switch {
	case m.held: // nothing is owed of a fixed delay
		if it.told != (ledger.Told{}) {
			m.catchUp(it)
		}
	case it.ready.After(now):
		m.delays.add(it)
	case m.withholds(): // offered again when a place is free: it is due, and Tick would never come to an end
	default:
		it.before, it.folded, it.owes, it.madeUp = it.cursor, 0, false, false
		m.begin(it, it.ready.Round(0), nil) // Due is an instant for everybody
	}
}

// begin takes a fire in hand.
func (m *Machine) begin(it *item, due time.Time, skips []Skip) {
	it.due, it.cursor, it.recorded = due, due, m.set.Monitor
	if it.recorded {
		it.skips = skips
		m.enter(it, beginning)
		m.put(Action{Kind: Begin, Item: it.number, Due: due, Skips: skips})
		return
	}
	it.unrecorded = true
	m.tell(it, skips)
	m.enter(it, queued)
	m.put(it.run(0))
}

// run is what hands the item to its function.
func (it *item) run(fence registry.Revision) Action {
	a := Action{Kind: Run, Item: it.number, Due: it.due, Fence: fence, Ahead: it.ahead, MadeUp: it.madeUp, Folded: it.folded, Request: it.request}
	if it.redoing {
		a.Redo, a.Lost, a.Tries = true, it.redo.Lost, it.redo.Tries
	}
	return a
}

// lastOf is up to where the epoch that ends lets its fires run: at once what a clock that is far
// ahead has recorded, all else when it is due.
func (m *Machine) lastOf(now time.Time) time.Time {
	if m.waitsForUntil(now) {
		return earlier(m.until, now)
	}
	return m.until
}

// waitsForUntil reports whether the epoch's last fire may not be due yet: without a record that
// is a guess at the present, with one a begin may have been recorded ahead.
func (m *Machine) waitsForUntil(now time.Time) bool {
	if !m.until.After(now) || !m.set.Monitor {
		return m.until.After(now)
	}
	if m.set.Delayed || !ledger.Soon(m.until, now) {
		return false
	}
	next, ok := m.set.Fires.Next(now)
	return ok && !next.After(m.until)
}

// finish records that the item has accounted for its epoch.
func (m *Machine) finish(it *item, skips []Skip, now time.Time) {
	if m.waitsForUntil(now) && m.until.Sub(now) <= soon {
		return // its tick comes
	}
	if it.through.Before(m.until) || it.unrecorded || it.told != (ledger.Told{}) || len(skips) > 0 {
		m.enter(it, accounting)
		before := it.cursor
		if it.cursor = later(it.cursor, m.until); !m.set.Monitor {
			it.cursor = m.until
		}
		it.before, it.skips = before, skips
		m.put(Action{Kind: Account, Item: it.number, Through: it.cursor, Skips: skips})
	}
}

// close is finish for an item that is disabled.
func (m *Machine) close(it *item, now time.Time) {
	var skips []Skip
	if !m.set.Delayed {
		skips = m.skip(m.whyOff(it), it.cursor, m.until)
	}
	m.finish(it, skips, now)
}

// account tells what came due while the item was off.
func (m *Machine) account(it *item, why event.SkipReason, now time.Time) {
	if it.phase != idle || !it.known || it.leaving || it.lent || m.held || m.stopping || m.still || it.redo.Owed() {
		return
	}
	if m.set.Delayed {
		m.delays.remove(it)
		it.ready = later(it.ready, now)
		return
	}
	if skips := m.skip(why, it.cursor, now); len(skips) > 0 {
		m.pass(it, lastOf(skips, it.cursor), skips)
	}
}

// pass moves the cursor on without a run.
func (m *Machine) pass(it *item, through time.Time, skips []Skip) {
	it.before, it.cursor = it.cursor, through
	if !m.set.Monitor && !it.recorded {
		it.unrecorded = true
		m.tell(it, skips)
		return
	}
	m.enter(it, accounting)
	it.skips = skips
	m.put(Action{Kind: Account, Item: it.number, Through: through, Skips: skips})
}

// catchUp has the record say what the machine knows.
func (m *Machine) catchUp(it *item) {
	it.before = it.cursor
	m.enter(it, accounting)
	m.put(Action{Kind: Account, Item: it.number, Through: it.cursor})
}

func (m *Machine) tell(it *item, skips []Skip) {
	if len(skips) > 0 {
		m.put(Action{Kind: Tell, Item: it.number, Skips: skips})
	}
}

// skip returns the fires of a stretch, all skipped for one reason.
func (m *Machine) skip(why event.SkipReason, from, upTo time.Time) []Skip {
	s := m.count(from, upTo)
	if s.Count == 0 {
		return nil
	}
	return []Skip{{First: s.First, Last: s.Last, Count: s.Count, Reason: why}}
}

// ranElsewhere makes skips of all that a begin would have decided.
func ranElsewhere(skips []Skip, due time.Time, detail string) []Skip {
	own := Skip{First: due, Last: due, Count: 1, Reason: event.SkipRunningElsewhere, Detail: detail}
	if n := len(skips) - 1; n >= 0 && !skips[n].Into.IsZero() { // what was to be folded into due, did not run either
		own.First, own.Count = skips[n].First, skips[n].Count+1
		skips = skips[:n]
	}
	return append(skips, own)
}

// lastOf is the last fire of skips, or otherwise when there is none.
func lastOf(skips []Skip, otherwise time.Time) time.Time {
	if len(skips) == 0 {
		return otherwise
	}
	return skips[len(skips)-1].Last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A memo remembers the latest decisions and counts: items mostly share a cursor. Both hold
// for a while, since items are offered one after the other, each at its own instant.
type memo struct {
	decisions recent[decided]
	counts    recent[counted]
	next      nextFire  // after the cursor that was asked for last
	upcoming  nextFire  // after now
	due       time.Time // the fire after which misses comes due
	misses    time.Time
	passed    passed // of the schedule before, by the items that were asked for last
}

// passed are the fires that items tell which have passed the same ones.
type passed struct {
	missed
	upTo  time.Time
	skips []Skip
}

// mostRecent is how many decisions and counts are remembered, of a job of many items.
const mostRecent = 4

// recent are the values that were added last.
type recent[T any] struct {
	all  []T
	turn int
}

func (r *recent[T]) add(v T, most int) {
	if len(r.all) < most {
		r.all = append(r.all, v)
		return
	}
	r.turn = (r.turn + 1) % len(r.all)
	r.all[r.turn] = v
}

// remembers is how many decisions and counts are worth it: one for each item, and another for what just was.
func (m *Machine) remembers() int { return min(mostRecent, len(m.items)+1) }

// A nextFire is the first fire after an instant.
type nextFire struct {
	from, fire time.Time
	ok, known  bool
}

type decided struct {
	span     misfire.Span
	decision misfire.Decision
}

// holds reports whether the decision is also that about another span.
func (d *decided) holds(s misfire.Span) bool {
	same := d.span.UpTo.Equal(s.UpTo) || (d.span.UpTo.Equal(d.span.Now) && s.UpTo.Equal(s.Now))
	return d.span.From.Equal(s.From) && same && !d.span.Now.IsZero() &&
		(s.Now.Equal(d.span.Now) || (s.Now.After(d.span.Now) && s.Now.Before(d.decision.Until)))
}

type counted struct {
	from, upTo, until time.Time // the same for each up to which is before until
	stretch           misfire.Stretch
}

// decide is what becomes of the fires that an item owes. Whoever calls it does not change it.
func (m *Machine) decide(from, upTo, now time.Time) misfire.Decision {
	if !from.Before(upTo) {
		return misfire.Decision{}
	}
	s := misfire.Span{From: from, UpTo: upTo.Round(0), Now: now.Round(0), Up: m.up}
	for i := range m.memo.decisions.all {
		if e := &m.memo.decisions.all[i]; e.holds(s) {
			return e.decision
		}
	}
	d := misfire.Decide(m.set.Misfire, m.set.Fires, s)
	m.memo.decisions.add(decided{s, d}, m.remembers())
	return d
}

func (m *Machine) count(from, upTo time.Time) misfire.Stretch {
	if !from.Before(upTo) {
		return misfire.Stretch{}
	}
	for _, e := range m.memo.counts.all {
		if e.from.Equal(from) && !upTo.Before(e.upTo) && upTo.Before(e.until) {
			return e.stretch
		}
	}
	s := misfire.Count(m.set.Fires, from, upTo)
	e := counted{from: from, upTo: upTo.Round(0), stretch: s}
	if e.until, _ = m.set.Fires.Next(upTo); e.until.IsZero() {
		e.until = upTo.Round(0).Add(1)
	}
	m.memo.counts.add(e, m.remembers())
	return s
}

// missed says which schedule was changed while an item passed fires of the next one.
type missed struct {
	since time.Time
	was   misfire.Fires
}

// tellMissed tells the fires of a new schedule that an item has passed under the one
// before, all but those that both have.
func (m *Machine) tellMissed(it *item) {
	x := it.missed
	it.missed = nil
	if x == nil || m.set.Delayed || !it.cursor.After(x.since) {
		return
	}
	upTo := it.cursor.Add(-1) // the fire in hand is not missed
	skips := m.passed(x, upTo)
	m.tell(it, skips)
	if it.phase == running { // should it not be called after all, what is told does not run either
		it.before = later(it.before, lastOf(skips, it.before))
	}
}

// passed are the fires that tellMissed tells, once for the items that have passed the same.
func (m *Machine) passed(x *missed, upTo time.Time) []Skip {
	p := &m.memo.passed
	if p.was != x.was || !p.since.Equal(x.since) || !p.upTo.Equal(upTo) {
		*p = passed{missed: *x, upTo: upTo}
		if misfire.Count(m.set.Fires, x.since, upTo).Count > misfire.CountLimit {
			p.skips = m.passedOfMany(x, upTo)
		} else {
			p.skips = m.passedOfFew(x, upTo)
		}
	}
	return slices.Clone(p.skips)
}

// passedOfMany are those of more fires than are counted: one stretch, which may hold others. There may be no end of
// fires that both schedules have, where a clock was far ahead, so that no more than twice as many are looked at.
func (m *Machine) passedOfMany(x *missed, upTo time.Time) []Skip {
	s, t := Skip{Reason: event.SkipSchedule}, x.since
	for looks := 0; ; looks++ {
		next, ok := m.set.Fires.Next(t)
		if !ok || next.After(upTo) {
			break
		}
		if looks == 2*misfire.CountLimit {
			s.Last, _ = m.set.Fires.Prev(upTo.Add(1), t)
			break
		}
		if t = next; isFire(x.was, t) {
			continue
		}
		if s.Count == 0 {
			s.First = t
		}
		s.Last, s.Count = t, s.Count+1
	}
	if s.Count == 0 {
		return nil
	}
	return []Skip{s}
}

// passedOfFew are in stretches that hold no others.
func (m *Machine) passedOfFew(x *missed, upTo time.Time) (skips []Skip) {
	open := false
	for t := x.since; ; {
		next, ok := m.set.Fires.Next(t)
		if !ok || next.After(upTo) {
			return skips
		}
		t = next
		switch last := len(skips) - 1; {
		case isFire(x.was, t):
			open = false
		case open:
			skips[last].Last, skips[last].Count = t, skips[last].Count+1
		default:
			skips = append(skips, Skip{First: t, Last: t, Count: 1, Reason: event.SkipSchedule})
			open = true
		}
	}
}

// inherit notes the fires of a new schedule that an owner before has passed who had not
// heard of it: only the one before has the fire at which the record stands.
func (m *Machine) inherit(it *item) {
	line, ok := m.set.Fires.(misfire.Line)
	if !ok || line.Before == nil || m.set.Delayed || !m.set.Monitor || !it.cursor.After(line.Since) {
		return
	}
	if isFire(line.Before, it.cursor) && !isFire(line.Now, it.cursor) {
		it.missed = &missed{since: line.Since, was: line.Before}
		m.tellMissed(it)
	}
}

func isFire(f misfire.Fires, t time.Time) bool {
	next, ok := f.Next(t.Add(-1))
	return ok && next.Equal(t)
}
