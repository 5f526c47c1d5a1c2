package core

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// missed are fires that came due together.
type missed struct {
	recent      []time.Time // the latest, at most makeUpLimit
	dropped     int         // how many are older
	lastDropped time.Time
}

func (f missed) last(otherwise time.Time) time.Time {
	if len(f.recent) == 0 {
		return otherwise
	}
	return f.recent[len(f.recent)-1]
}

// countLimit bounds the fires that are counted one by one: past it a count is a
// lower bound.
const countLimit = 100_000

// between returns the fires after one instant up to another.
func (m *member) between(after, upTo time.Time) (f missed) {
	for t := after; ; {
		next, ok := m.set.Schedule.Next(t)
		if !ok || next.After(upTo) {
			return f
		}
		if f.dropped == countLimit {
			if last, ok := m.set.Schedule.Prev(upTo.Add(1), next); ok {
				next = last
			}
		}
		t = next
		if f.recent = append(f.recent, next); len(f.recent) > makeUpLimit {
			f.lastDropped, f.dropped = f.recent[0], f.dropped+1
			f.recent = f.recent[1:]
		}
	}
}

// offerDropped tells every item that could have run of fires that are too many.
func (m *member) offerDropped(first time.Time, f missed) {
	var items []int
	for _, n := range m.numbers() {
		if it := m.items[n]; it.known && !m.held(it) && it.through.Before(f.lastDropped) {
			it.through = f.lastDropped
			items = append(items, n)
		}
	}
	if len(items) > 0 {
		e := skipped(m.name(), items, f.lastDropped, event.SkipMissed, "since "+first.String())
		e.Count = f.dropped + 1
		m.emit(e)
	}
}

// catchUp makes up the fires that came due before the item could be offered them.
func (m *member) catchUp(it *item) {
	if !m.firing || !it.known || m.held(it) || it.phase != itemIdle {
		return
	}
	if it.through.IsZero() {
		it.through = m.ticked
	}
	if _, fixed := m.set.Schedule.Delay(); fixed {
		m.armDelayed()
		return
	}
	f := m.between(it.through, m.ticked)
	if len(f.recent) == 0 {
		return
	}
	why, count, last := event.SkipMissed, f.dropped, f.lastDropped
	if it.disabled || !m.serverEnabled {
		why, count, last = event.SkipDisabled, f.dropped+len(f.recent), f.last(last)
		f.recent = nil
	}
	if count > 0 {
		it.through = last
		e := skipped(m.name(), []int{it.number}, last, why, "")
		e.Count = count
		m.emit(e)
		m.account([]int{it.number}, last)
	}
	for _, t := range f.recent {
		m.enqueue(it, t)
	}
}
