package core

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
)

// tickDelayed begins the items whose delay is over.
func (m *member) tickDelayed() {
	now := m.now()
	m.ticked = now
	d, _ := m.set.Schedule.Delay()
	var disabled []int
	for _, n := range m.numbers() {
		it := m.items[n]
		if it.phase != itemIdle || !it.known || m.held(it) || len(it.backlog) > 0 || it.through.IsZero() {
			continue
		}
		due := it.through.Add(d)
		if due.After(now) {
			continue
		}
		if it.disabled || !m.serverEnabled {
			it.through = now
			disabled = append(disabled, n)
			continue
		}
		it.through = due
		it.backlog = append(it.backlog, due)
	}
	m.account(disabled, now)
	m.skip(disabled, now, event.SkipDisabled, "")
	m.launch()
	m.armDelayed()
}

// armDelayed sets the alarm to the first item whose delay ends.
func (m *member) armDelayed() {
	d, _ := m.set.Schedule.Delay()
	var first time.Time
	for _, it := range m.items {
		if it.phase != itemIdle || !it.known || m.held(it) || it.through.IsZero() {
			continue
		}
		if due := it.through.Add(d); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	m.next, m.never = first, false
	if !first.IsZero() && m.firing {
		m.alarm.Set(first)
	}
}
