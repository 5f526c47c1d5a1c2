package core

import (
	"slices"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// Changed implements execution.Owner: somebody else wrote the ledger.
func (m *member) Changed(l *ledger.Ledger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own(l)
}

// own takes over what the ledger says this instance owns.
func (m *member) own(l *ledger.Ledger) {
	changed := m.total != l.Total
	m.total = l.Total
	for n, it := range m.items {
		if _, still := l.Items[n]; !still {
			changed = true
			delete(m.items, n)
			m.life.unwatch(m.paths().Disabled(n), registry.Self)
			it.backlog = nil
		}
	}
	for n, rec := range l.Items {
		it := m.items[n]
		if it == nil {
			changed = true
			m.items[n] = &item{number: n, through: rec.Through, leaving: rec.Leaving}
			m.watchDisabled(n)
			continue
		}
		it.leaving = rec.Leaving
		if it.phase == itemIdle && m.held(it) {
			it.through, it.backlog = rec.Through, nil
		}
		m.catchUp(it)
	}
	if changed {
		m.emit(event.ItemsChanged{Job: m.name(), Items: m.numbers(), Total: m.total})
		m.life.scheduler.bump()
	}
	m.launch()
}

func (m *member) watchDisabled(n int) {
	m.life.watch(m.paths().Disabled(n), registry.Self, func(e registry.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		it := m.items[n]
		if it == nil {
			return
		}
		if e.Synced {
			it.known = true
			m.catchUp(it)
			m.launch()
			return
		}
		it.disabled = e.Node.Exists()
	})
}

// numbers returns the owned items in ascending order.
func (m *member) numbers() []int {
	numbers := make([]int, 0, len(m.items))
	for n := range m.items {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}
