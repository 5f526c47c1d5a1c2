package items

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/misfire"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A following is a fire that is begun, as it was decided.
type following struct {
	due   time.Time
	skips []Skip // told with it
	// folded, madeUp, owes and ahead are the item's then.
	folded              int
	madeUp, owes, ahead bool
}

// take makes it the fire in hand of an item with a cursor.
func (it *item) take(f *following, cursor time.Time) {
	it.before, it.folded, it.owes, it.madeUp, it.ahead = lastOf(f.skips, cursor), f.folded, f.owes, f.madeUp, f.ahead
}

// first is the first fire that is to run by a decision, which has one.
func first(it *item, d misfire.Decision, now time.Time) *following {
	f := &following{due: d.Runs[0], skips: skipped(d), folded: d.Folded.Count, owes: len(d.Runs) > 1}
	if d.Folded.Count > 0 {
		f.skips = append(f.skips, Skip{First: d.Folded.First, Last: d.Folded.Last, Count: d.Folded.Count, Into: f.due})
	}
	f.madeUp = f.owes || now.Sub(f.due) > misfire.Prompt || f.due.Before(it.freed)
	return f
}

// following is the fire whose begin goes with the end of the one in hand: one that is owed, which costs
// one commit less, just where there are too many, or one that is near; nil is none.
func (m *Machine) following(it *item, now time.Time) *following {
	if !m.comesNext(it) {
		return nil
	}
	next, more := m.after(it.cursor)
	switch {
	case !more:
	case m.near(next, now):
		return &following{due: next, ahead: true}
	case next.After(now), m.set.Misfire.Policy == misfire.Skip, it.cursor.Before(m.set.Floor):
	default:
		if d := m.decide(it.cursor, now, now); len(d.Runs) > 0 {
			return first(it, d, now)
		}
	}
	return nil
}

// joins reports whether an end and a begin may be one commit, and a fire begun before it is due.
// Where somebody listens to rounds they may not: a round would seem to have started.
func (m *Machine) joins() bool {
	return m.set.Monitor && !m.set.Delayed && !m.set.Rounds && !m.held && !m.stopping && !m.still
}

// comesNext reports whether nothing comes before the item's next fire, which may be begun with an end or
// before it is due.
func (m *Machine) comesNext(it *item) bool {
	if !m.joins() || it.leaving || it.lent || it.unrecorded || it.redo.Owed() || len(m.wary) > 0 {
		return false
	}
	return !m.off(it) && m.wanted(it) == nil
}

// near reports whether an item's next fire is not due yet and may be begun all the same.
func (m *Machine) near(next, now time.Time) bool {
	return m.set.Ahead > 0 && next.After(now) && next.Sub(now) <= m.set.Ahead && next.After(m.set.Floor)
}

// ahead reports whether begins are recorded before they come due.
func (m *Machine) ahead() bool { return m.set.Ahead > 0 && m.joins() }

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
	if m.set.Ahead == 0 || !m.comesNext(it) {
		return
	}
	if due, more := m.after(it.cursor); more && m.near(due, now) && due.Sub(now) <= m.lead() {
		it.take(&following{ahead: true}, it.cursor)
		m.begin(it, due, nil)
	}
}

// recall has what was begun ahead, and is not due yet, given back: something has changed by
// which it may not be to run. What is owed runs: what was folded into it is told so.
func (m *Machine) recall(it *item, now time.Time) {
	switch {
	case it.next != nil: // its begin goes with the end that is being committed
		it.recalled = it.recalled || it.next.ahead
	case !it.ahead || !it.due.After(now):
	case it.phase == queued:
		m.put(Action{Kind: Drop, Item: it.number, Due: it.due})
	case it.phase == beginning:
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
// of the fire due, which End named as the next. What is missed by a schedule that has changed is told once that one
// has returned or is given back: it passes some, too.
func (m *Machine) Followed(n int, through, due time.Time, fence registry.Revision, now time.Time) []Action {
	it := m.inHand(n)
	if it == nil || it.phase != ending || it.next == nil || !it.next.due.Equal(due) {
		return nil
	}
	m.visited++
	next, recalled := it.next, it.recalled
	it.told, it.skips, it.unrecorded, it.cursor = Told(append(slices.Clip(it.skips), next.skips...)), nil, false, through
	m.restIn(it)
	it.take(next, through)
	it.due, it.cursor, it.through, it.recorded, it.recalled = due, due, due, true, recalled
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
