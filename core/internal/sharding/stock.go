package sharding

import (
	"time"

	"github.com/elasticron/elasticron/core/internal/ledger"
)

// takeStock finds each item's owner among ledgers of the wanted total, and the
// records that items start from.
func (p *Plan) takeStock(v View) map[int]string {
	owners := map[int]string{}
	var latest time.Time
	for _, m := range v.Members {
		for n, it := range m.Ledger.Items {
			if !m.Live {
				it = p.bury(it)
			}
			if it.Through.After(latest) {
				latest = it.Through
			}
			if m.Ledger.Total == v.Total && p.outranks(m, it, owners[n], p.records[n]) {
				owners[n], p.records[n] = m.ID, it
			}
		}
	}
	// An item without a record starts where the job stands: after the latest fire
	// of the others, or when the job came up.
	if latest.IsZero() {
		latest = v.Up
	}
	for n := range v.Total {
		if _, known := p.records[n]; !known {
			p.records[n] = ledger.Item{Through: latest}
		}
	}
	return owners
}

// outranks decides between two ledgers that hold one item, which happens only if
// somebody wrote one from outside: the living owner wins, then the one where the
// item runs, then the one whose record is further.
func (p *Plan) outranks(m Member, it ledger.Item, other string, rec ledger.Item) bool {
	switch {
	case other == "":
		return true
	case m.Live != p.before[other].Live:
		return m.Live
	case it.Running() != rec.Running():
		return it.Running()
	case !it.Through.Equal(rec.Through):
		return it.Through.After(rec.Through)
	}
	return m.ID < other
}

// bury returns the record that a dead owner's item starts from.
func (p *Plan) bury(it ledger.Item) ledger.Item {
	if it.Through.Before(p.up) && !it.Through.IsZero() {
		it.Through = p.up
	}
	return ledger.Item{Through: it.Through}
}

// mourn notes what the death of its owner cost an item that moves.
func (p *Plan) mourn(n int, it ledger.Item) {
	if it.Running() {
		p.Orphans[n] = it.Run
	}
	if it.Through.Before(p.up) && !it.Through.IsZero() {
		p.Cold[n] = it.Through
	}
}
