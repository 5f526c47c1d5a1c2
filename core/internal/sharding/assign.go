package sharding

import (
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// assign gives every item of the epoch in force to whom it should belong, as far as it
// can move now.
func (p *Plan) assign() {
	base := p.view.Base
	for id, l := range p.after {
		m := p.before[id]
		if m.State == Astray {
			continue
		}
		if l.Epoch != base.Epoch || l.Total != base.To {
			p.after[id] = ledger.New(base.Epoch, base.To)
			p.after[id].Seq = l.Seq
		}
		if m.State == Alive || p.view.Static { // what stays with the dead is held no longer
			p.after[id].Held, p.after[id].Until = false, time.Time{}
		}
	}
	owners := p.findOwners()
	wanted := p.wanted(p.view.eligible(), owners)
	if wanted != nil {
		p.dropCopies(owners)
		p.start(wanted)
		for n := range base.To {
			p.place(n, owners, wanted[n])
		}
	}
	if !base.Assigned && p.complete(wanted) {
		assigned := *base
		assigned.Assigned = true
		p.Base, p.last = &assigned, true
	}
}

// wanted is to whom the strategy gives each item of the epoch in force; nil where nobody can be asked.
func (p *Plan) wanted(ids []string, owners map[int]string) map[int]string {
	if len(ids) == 0 {
		return nil
	}
	assigned := p.view.Assign(ids, p.view.Base.To, previous(owners))
	if assigned == nil {
		return nil
	}
	wanted := map[int]string{}
	for _, id := range ids { // whoever else a strategy names gets nothing
		for _, n := range assigned[id] {
			wanted[n] = id
		}
	}
	return wanted
}

// complete reports whether every item stands in a ledger. One that the strategy gives to
// nobody need not, and must not be in the way of another total.
func (p *Plan) complete(wanted map[int]string) bool {
	stands := map[int]bool{}
	for _, l := range p.after {
		if l.Epoch == p.view.Base.Epoch {
			for n := range l.All() {
				stands[n] = true
			}
		}
	}
	for n := range p.view.Base.To {
		if !stands[n] && (p.missing || wanted == nil || wanted[n] != "") {
			return false
		}
	}
	return true
}

// findOwners finds each item's owner, and the record that it has.
func (p *Plan) findOwners() map[int]string {
	owners := map[int]string{}
	for _, m := range p.view.Members {
		if !p.ofEpoch(m) {
			continue
		}
		for n, rec := range m.Ledger.All() {
			if m.State == Dead {
				rec = p.orphan(m.ID, rec)
			}
			if p.outranks(m, rec, owners[n], p.records[n]) {
				owners[n], p.records[n] = m.ID, rec
			}
		}
	}
	return owners
}

func (p *Plan) ofEpoch(m Member) bool {
	return m.Ledger != nil && m.Ledger.Epoch == p.view.Base.Epoch && m.Ledger.Total == p.view.Base.To
}

// outranks decides between two ledgers that hold one item, which happens only if
// somebody wrote one from outside: the living owner wins, then the one where the item
// runs, then the one whose record is further.
func (p *Plan) outranks(m Member, rec ledger.Item, other string, has ledger.Item) bool {
	switch {
	case other == "":
		return true
	case (m.State == Dead) != (p.before[other].State == Dead):
		return m.State != Dead
	case rec.Running() != has.Running():
		return rec.Running()
	case !rec.Through.Equal(has.Through):
		return rec.Through.After(has.Through)
	}
	return m.ID < other
}

// start makes records for items that stand in no ledger: a new epoch starts at its
// base. One that stood somewhere before has lost its record: what ran of it is not
// known, so that it goes on from now, and not before the latest fire of the others.
func (p *Plan) start(wanted map[int]string) {
	base := p.view.Base
	latest := base.Through
	if base.Assigned {
		latest = later(latest, p.view.Now)
		for _, rec := range p.records {
			latest = later(latest, rec.Through)
		}
	}
	for n := range base.To {
		if _, known := p.records[n]; known || wanted[n] == "" || p.missing { // it may stand in what is missing
			continue
		}
		if base.Assigned {
			p.Lost = append(p.Lost, n)
		}
		// What was begun of open runs is not known either. None is of an epoch that is not assigned: one that seems to
		// be was asked for before all records of the job were destroyed.
		p.records[n] = ledger.Item{Through: latest, Asked: p.view.Asked}
	}
}

// previous is who owns what, the dead included: one of them may be back under a new id.
func previous(owners map[int]string) map[string][]int {
	owned := map[string][]int{}
	for _, n := range slices.Sorted(maps.Keys(owners)) {
		owned[owners[n]] = append(owned[owners[n]], n)
	}
	return owned
}

// dropCopies takes items out of ledgers that should not hold them. A copy that runs is
// waited for.
func (p *Plan) dropCopies(owners map[int]string) {
	for _, m := range p.view.Members {
		if !p.ofEpoch(m) || m.State == Astray {
			continue
		}
		for n, rec := range m.Ledger.All() {
			switch {
			case owners[n] == m.ID:
			case m.State == Alive && rec.Running():
				p.wait(n, m.ID)
				rec.Leaving = true
				p.after[m.ID].Set(n, rec)
			default:
				p.after[m.ID].Delete(n)
			}
		}
	}
}

// wait notes that an item must end first, and who runs it.
func (p *Plan) wait(n int, owner string) {
	p.Waiting = append(p.Waiting, n)
	p.Ending = append(p.Ending, owner)
}

// place moves item n to the id that should own it, or makes it leave.
func (p *Plan) place(n int, owners map[int]string, to string) {
	from, owned := owners[n]
	rec, known := p.records[n]
	state := p.before[from].State
	if !known || (owned && state == Astray) {
		return
	}
	if rec.Bound = ""; owned && p.view.Static && (state != Dead || !failpoint.Mutant(failpoint.BoundIgnored)) {
		to, rec.Bound = p.bound(n, from)
	}
	switch {
	case owned && from == to && state == Dead:
		p.stay(n, from, rec)
	case to == "" || (owned && from == to):
		if owned && state == Alive {
			rec.Leaving = false
			p.after[from].Set(n, rec)
		}
	case owned && state == Alive && rec.Running():
		p.wait(n, from)
		if rec.Leaving = true; p.view.Static {
			rec.Bound = p.records[n].Bound // whose it is until then
		}
		p.after[from].Set(n, rec)
	default:
		if owned {
			p.after[from].Delete(n)
		} else {
			from = ""
		}
		rec.Leaving = false
		p.after[to].Set(n, rec)
		p.Moves = append(p.Moves, Move{Item: n, From: from, To: to})
	}
}

// Epoch is the epoch that the moves belong to.
func (p *Plan) Epoch() layout.Base {
	if p.view.Base == nil {
		return layout.Base{}
	}
	return *p.view.Base
}
