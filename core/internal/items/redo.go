package items

import (
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/lazymap"
)

// waryTries is after how many deaths a fire begins only when it has a place and is the
// only one of its kind here: should it kill this instance too, it takes no other with it.
const waryTries = 2

// offerRedo begins the fire that runs again, before anything else of its item.
func (m *Machine) offerRedo(it *item, now time.Time) {
	switch {
	case it.disabled:
		m.cutRedo(it, event.CutDisabled)
	case !m.set.Failover || !m.set.Monitor:
		m.cutRedo(it, event.CutOff)
	case m.holdsBack(it), m.awaits(it.redo, now):
	case !m.serverEnabled, m.foreign: // the leader moves it, or somebody enables it, or leads again
	case !it.redo.Due.After(m.set.Floor):
		m.cutRedo(it, event.CutElasticJob)
	case it.redo.Tries >= waryTries && !m.hasRoomAlone():
		lazymap.Set(&m.wary, it.number, it)
	default:
		m.redo(it)
	}
}

func (m *Machine) redo(it *item) {
	if delete(m.wary, it.number); it.redo.Tries >= waryTries {
		m.alone = it
	}
	// What came due since was owed before it began: it is no overrun.
	it.before, it.folded, it.owes, it.madeUp = it.cursor, 0, true, false
	it.due, it.recorded, it.redoing, it.skips = it.redo.Due, true, true, nil
	m.enter(it, beginning)
	m.put(Action{
		Kind: Begin, Item: it.number, Due: it.due, Redo: true, Lost: it.redo.Lost, Tries: it.redo.Tries, Request: it.request,
	})
}

// cutRedo records that the fire does not run again.
func (m *Machine) cutRedo(it *item, why event.CutReason) {
	delete(m.wary, it.number)
	it.before, it.redoing, it.cut = it.cursor, true, why
	m.enter(it, accounting)
	m.put(Action{
		Kind: CutRedo, Item: it.number, Due: it.redo.Due, Through: it.cursor, Redo: true, Lost: it.redo.Lost, Tries: it.redo.Tries, Cut: why,
		Request: it.request,
	})
}

// hasRoomAlone reports whether a fire may begin that does so only with a place, and as the only one of its kind.
func (m *Machine) hasRoomAlone() bool { return m.alone == nil && !m.full() }

// mayBeWary reports whether one that waits for that may begin.
func (m *Machine) mayBeWary() bool { return len(m.wary) > 0 && m.hasRoomAlone() }

// full reports whether an item that begins would wait for a place.
func (m *Machine) full() bool { return m.places > 0 && m.busy+len(m.blocked) >= m.places }

// withholds reports whether a scheduled fire does not begin now: it would wait for a place
// for which a fire that runs again has waited longer.
func (m *Machine) withholds() bool {
	if len(m.wary) == 0 || m.alone != nil || !m.full() {
		return false
	}
	m.withheld = true
	return true
}

// relieve offers what waits for a place to be free, or for the only one of its kind to end.
func (m *Machine) relieve(now time.Time) {
	if m.mayBeWary() {
		for _, n := range slices.Sorted(maps.Keys(m.wary)) {
			if it := m.wary[n]; m.items[n] == it {
				m.visited++
				m.offer(it, now)
			}
			if !m.mayBeWary() { // the others wait on: each item that ends comes here
				break
			}
		}
	}
	if m.withheld {
		m.withheld = false
		m.offerAll(now)
	}
}
