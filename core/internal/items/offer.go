package items

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// off reports whether the item is not to run, by an operator's wish.
func (m *Machine) off(it *item) bool { return it.disabled || !m.serverEnabled }

// offer begins the first fire that an idle item owes, or accounts for what it skips.
func (m *Machine) offer(it *item, now time.Time) {
	if m.stopping || it.phase != idle || !it.known || m.blocked[it.number] {
		return
	}
	last := m.held && !m.until.IsZero()
	if it.leaving || (m.held && !last) {
		return
	}
	if it.unrecorded && m.set.Monitor {
		m.catchUp(it)
		return
	}
	if m.off(it) {
		if last {
			m.close(it, now)
		}
		return // told in bulk, later
	}
	if m.set.Delayed {
		m.offerDelayed(it, now)
		return
	}
	upTo := now
	if last {
		upTo = m.lastOf(now)
	}
	from := it.cursor
	var skips []Skip
	if from.Before(m.up) {
		skips = m.skip(event.SkipDown, from, earlier(earlier(m.up, now), upTo))
		from = lastOf(skips, from)
	}
	d := m.decide(misfire.Rule{Run: makeUp}, from, upTo)
	if d.Skipped > 0 {
		skips = append(skips, Skip{First: d.First, Last: d.Last, Count: d.Skipped, Reason: event.SkipMissed})
	}
	switch {
	case len(d.Runs) > 0:
		it.before = lastOf(skips, it.cursor)
		m.begin(it, d.Runs[0], len(d.Runs) > 1, skips)
	case last:
		m.finish(it, skips, now)
	case len(skips) > 0:
		m.pass(it, lastOf(skips, it.cursor), skips)
	}
}

func (m *Machine) offerDelayed(it *item, now time.Time) {
	switch {
	case m.held: // nothing is owed of a fixed delay
		if it.told != (ledger.Told{}) {
			m.catchUp(it)
		}
	case it.ready.After(now):
		m.delays.add(it)
	default:
		it.before = it.cursor
		m.begin(it, it.ready.Round(0), false, nil) // Due is an instant for everybody
	}
}

// begin takes a fire in hand.
func (m *Machine) begin(it *item, due time.Time, madeUp bool, skips []Skip) {
	it.due, it.cursor, it.madeUp, it.recorded = due, due, madeUp, m.set.Monitor
	if it.recorded {
		it.skips = skips
		m.enter(it, beginning)
		m.put(Action{Kind: Begin, Item: it.number, Due: due, Skips: skips})
		return
	}
	it.unrecorded = true
	m.tell(it, skips)
	m.enter(it, queued)
	m.put(Action{Kind: Run, Item: it.number, Due: due, MadeUp: madeUp})
}

// lastOf is up to where the epoch that ends lets its fires run: with a record at
// once, without one when they are due, since then it is a guess at the present.
func (m *Machine) lastOf(now time.Time) time.Time {
	if m.set.Monitor {
		return m.until
	}
	return earlier(m.until, now)
}

// finish records that the item has accounted for its epoch.
func (m *Machine) finish(it *item, skips []Skip, now time.Time) {
	if !m.set.Monitor && m.until.After(now) && m.until.Sub(now) <= soon {
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
		skips = m.skip(event.SkipDisabled, it.cursor, m.until)
	}
	m.finish(it, skips, now)
}

// account tells what came due while the item was disabled.
func (m *Machine) account(it *item, now time.Time) {
	if it.phase != idle || !it.known || it.leaving || m.held || m.stopping {
		return
	}
	if m.set.Delayed {
		m.delays.remove(it)
		it.ready = later(it.ready, now)
		return
	}
	if skips := m.skip(event.SkipDisabled, it.cursor, now); len(skips) > 0 {
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
	d := m.decide(misfire.Rule{}, from, upTo)
	if d.Skipped == 0 {
		return nil
	}
	return []Skip{{First: d.First, Last: d.Last, Count: d.Skipped, Reason: why}}
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

// A memo remembers the latest decisions: items mostly share a cursor.
type memo struct {
	entries [2]memoEntry
	next    int
}

type memoEntry struct {
	rule       misfire.Rule
	from, upTo time.Time
	decision   misfire.Decision
	filled     bool
}

func (m *Machine) decide(r misfire.Rule, from, upTo time.Time) misfire.Decision {
	if !from.Before(upTo) {
		return misfire.Decision{}
	}
	for _, e := range m.memo.entries {
		if e.filled && e.rule == r && e.from.Equal(from) && e.upTo.Equal(upTo) {
			return e.decision
		}
	}
	d := misfire.Decide(r, m.set.Fires, from, upTo)
	m.memo.entries[m.memo.next] = memoEntry{rule: r, from: from, upTo: upTo, decision: d, filled: true}
	m.memo.next = 1 - m.memo.next
	return d
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
	d := misfire.Decide(misfire.Rule{}, added{m.set.Fires, x.was, upTo}, x.since, upTo)
	if d.Skipped > 0 {
		m.tell(it, []Skip{{First: d.First, Last: d.Last, Count: d.Skipped, Reason: event.SkipSchedule}})
	}
}

// added is a schedule without the fires of another one, up to an instant.
type added struct {
	misfire.Fires
	was  misfire.Fires
	upTo time.Time
}

// Next implements misfire.Fires.
func (a added) Next(after time.Time) (time.Time, bool) {
	for {
		t, ok := a.Fires.Next(after)
		if !ok || t.After(a.upTo) {
			return t, ok
		}
		if same, ok := a.was.Next(t.Add(-1)); !ok || !same.Equal(t) {
			return t, true
		}
		after = t
	}
}
