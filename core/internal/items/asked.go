package items

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// An Ask is a run that somebody asked for, and that is open.
type Ask struct {
	// Number counts the runs of the job.
	Number int64
	// Epoch is that of the items.
	Epoch int
	// At is its instant, which no fire has.
	At time.Time
	// Items are those that run for it.
	Items map[int]bool
}

// Asked says which runs are open, in ascending order; every other one up to the number known
// is closed.
func (m *Machine) Asked(open []Ask, known int64, now time.Time) []Action {
	m.asks, m.askedUpTo = open, max(m.askedUpTo, known)
	if len(open) > 0 {
		for _, n := range m.order {
			if it := m.items[n]; m.wanted(it) != nil {
				m.recall(it, now)
			}
		}
	}
	m.offerAll(now)
	return m.done()
}

// AskedUpTo is the highest number of which the machine knows whether it is open.
func (m *Machine) AskedUpTo() int64 { return m.askedUpTo }

// Closed is up to which number every run is closed: what records say of those means nothing.
func (m *Machine) Closed() int64 {
	if len(m.asks) > 0 {
		return m.asks[0].Number - 1
	}
	return m.askedUpTo
}

// wanted returns the first open run that an item has still to begin, or nil.
func (m *Machine) wanted(it *item) *Ask {
	for i := range m.asks {
		if a := &m.asks[i]; a.Number > it.asked && a.Number > it.shut && a.Epoch == m.epoch && a.Items[it.number] {
			return a
		}
	}
	return nil
}

// ask begins a run that was asked for. The cursor stays: what comes due meanwhile is missed.
func (m *Machine) ask(it *item, a *Ask) {
	it.before, it.folded, it.owes, it.madeUp = it.cursor, 0, true, false
	it.due, it.recorded, it.skips = a.At, true, nil
	it.request, it.askedBefore, it.asked = a.Number, it.asked, a.Number
	m.enter(it, beginning)
	m.put(Action{Kind: Begin, Item: it.number, Due: it.due, Request: it.request, Asked: it.askedBefore})
}

// isOpen reports whether a run is open, and whether that is known.
func (m *Machine) isOpen(number int64) (open, known bool) {
	for i := range m.asks {
		if m.asks[i].Number == number {
			return true, true
		}
	}
	return false, number <= m.askedUpTo
}

// holdsBack reports whether the fire that is to run again is of a run that was asked for and
// is not open here: it waits until it is known, and is cut when it is closed.
func (m *Machine) holdsBack(it *item) bool {
	if it.request == 0 {
		return false
	}
	open, known := m.isOpen(it.request)
	if it.request <= it.shut { // its begin was refused
		open, known = false, true
	}
	if !open && known {
		m.cutRedo(it, event.CutClosed)
	}
	return !open
}
