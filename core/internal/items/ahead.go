package items

import (
	"time"

	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// follows returns the fire whose begin may be recorded now though it is not due yet: nothing
// else of the item comes before it.
func (m *Machine) follows(it *item, now time.Time) (time.Time, bool) {
	if !m.ahead() || it.leaving || it.lent || it.unrecorded || m.off(it) || it.redo.Owed() || len(m.wary) > 0 || m.wanted(it) != nil {
		return time.Time{}, false
	}
	next, ok := m.after(it.cursor)
	return next, ok && next.After(now) && next.Sub(now) <= m.set.Ahead && next.After(m.set.Floor)
}

// ahead reports whether begins are recorded before they come due. Where somebody listens to
// rounds they are not: a round would seem to have started.
func (m *Machine) ahead() bool {
	return m.set.Ahead > 0 && m.set.Monitor && !m.set.Delayed && !m.set.Rounds && !m.held && !m.stopping && !m.still
}

// lead is how long before it is due a fire is begun by the timer. Jobs that fire together have
// each their own, in the second half of the time before it.
func (m *Machine) lead() time.Duration {
	return m.set.Ahead - time.Duration(float64(m.set.Ahead/2)*m.spread)
}

// after is the first fire of the schedule after a cursor, which items mostly share.
func (m *Machine) after(cursor time.Time) (time.Time, bool) {
	return m.memo.next.after(cursor, m.set.Fires)
}

// upcoming is the first fire of the schedule after now.
func (m *Machine) upcoming(now time.Time) (time.Time, bool) {
	return m.memo.upcoming.after(now, m.set.Fires)
}

// after is the same for all instants from one on until the fire.
func (x *nextFire) after(t time.Time, fires misfire.Fires) (time.Time, bool) {
	if !x.known || t.Before(x.from) || (x.ok && !t.Before(x.fire)) {
		x.from, x.known = t, true
		x.fire, x.ok = fires.Next(t)
	}
	return x.fire, x.ok
}

// beginAhead takes the next fire of an idle item in hand that owes nothing, if it is near.
func (m *Machine) beginAhead(it *item, now time.Time) {
	due, near := m.follows(it, now)
	if !near || due.Sub(now) > m.lead() || m.withholds() {
		return
	}
	it.before, it.folded, it.owes, it.madeUp = it.cursor, 0, false, false
	it.ahead = true
	m.begin(it, due, nil)
}

// recall has what was begun ahead, and is not due yet, given back: something has changed by
// which it may not be to run.
func (m *Machine) recall(it *item, now time.Time) {
	switch {
	case !it.ahead || !it.due.After(now):
	case it.phase == queued:
		m.put(Action{Kind: Drop, Item: it.number, Due: it.due})
	case it.phase == beginning:
		it.recalled = true
	}
	if !it.next.IsZero() { // with the end that is being committed
		it.recalled = true
	}
}

func (m *Machine) recallAll(now time.Time) {
	for _, n := range m.order {
		m.visited++
		m.recall(m.items[n], now)
	}
}

// begun hands an item to its function whose begin is recorded, or gives it back.
func (m *Machine) begun(it *item, fence registry.Revision) {
	m.enter(it, queued)
	if m.stopping || m.items[it.number] != it || it.recalled || (it.ahead && it.leaving) {
		m.giveBack(it)
	} else {
		m.put(it.run(fence))
	}
}

// Followed says that an End of the item is committed, as Committed does, and with it the begin
// of the fire due, which End named as the next.
func (m *Machine) Followed(n int, through, due time.Time, fence registry.Revision, now time.Time) []Action {
	it := m.inHand(n)
	if it == nil || it.phase != ending || !it.next.Equal(due) {
		return nil
	}
	m.visited++
	recalled := it.recalled
	it.told, it.skips, it.unrecorded, it.cursor = Told(it.skips), nil, false, through
	m.restIn(it)
	m.tellMissed(it)
	it.before, it.folded, it.owes, it.madeUp = through, 0, false, false
	it.due, it.cursor, it.through, it.recorded, it.ahead, it.recalled = due, due, due, true, true, recalled
	m.begun(it, fence)
	m.relieve(now)
	return m.done()
}

// awaits reports whether a fire that is to run again is not due yet, by little: it was begun
// ahead by an owner that has died since.
func (m *Machine) awaits(r ledger.Redo, now time.Time) bool {
	if m.set.Delayed || !ledger.Soon(r.Due, now) {
		return false
	}
	if m.awaited.IsZero() || !m.awaited.After(now) || r.Due.Before(m.awaited) {
		m.awaited = r.Due
	}
	return true
}
