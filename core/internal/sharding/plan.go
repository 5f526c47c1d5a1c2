package sharding

import (
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Member is an instance with a ledger.
type Member struct {
	ID string
	// Live: its life exists. Eligible: it may own items.
	Live, Eligible bool
	Ledger         *ledger.Ledger
	Version        registry.Version
}

// A View is all that the plan depends on.
type View struct {
	// Total is the sharding total count that is wanted.
	Total int
	// Members are all that have a ledger, in any order.
	Members []Member
	// Up is since when the job has had a live instance without a break: fires
	// before it were due to nobody.
	Up time.Time
	// Assign maps the eligible ids to items; previous is what all ids own now, the
	// dead and the disabled included.
	Assign func(ids []string, total int, previous map[string][]int) map[string][]int
}

// A Move is one item's change of owner; "" is nobody.
type Move struct {
	Item     int
	From, To string
}

// A Plan is the difference between what is and what should be.
type Plan struct {
	// Moves are the items that change owner, by item.
	Moves []Move
	// Waiting are the items that must end first, in the Leaving state.
	Waiting []int
	// Orphans are items that move and ran when their owner died, with the fire
	// that was cut.
	Orphans map[int]time.Time
	// Cold are items that move from dead owners: their fires from the given
	// instant up to View.Up were due to nobody.
	Cold map[int]time.Time
	// Drop are the ids of dead members whose ledgers are empty after the moves.
	Drop []string

	total   int
	up      time.Time
	before  map[string]Member
	after   map[string]*ledger.Ledger
	records map[int]ledger.Item
	former  map[int]string // who owned the items of the same numbers under other totals
}

// Empty reports whether there is nothing to write.
func (p *Plan) Empty() bool { return len(p.changed()) == 0 && len(p.Drop) == 0 }

// Derive compares what is with what should be.
func Derive(v View) *Plan {
	p := &Plan{
		total: v.Total, up: v.Up, Orphans: map[int]time.Time{}, Cold: map[int]time.Time{},
		before: map[string]Member{}, after: map[string]*ledger.Ledger{}, records: map[int]ledger.Item{},
	}
	for _, m := range v.Members {
		p.before[m.ID] = m
		p.after[m.ID] = m.Ledger.Clone()
	}
	owners := p.takeStock(v)
	ids := eligible(v)
	switch {
	case len(ids) == 0: // nobody to give anything to: all stays
	case p.holdOthers(v):
	default:
		p.assign(v, ids, owners)
	}
	p.dropDead(v)
	slices.SortFunc(p.Moves, func(a, b Move) int { return a.Item - b.Item })
	slices.Sort(p.Waiting)
	p.Waiting = slices.Compact(p.Waiting)
	return p
}

func eligible(v View) []string {
	var ids []string
	for _, m := range v.Members {
		if m.Live && m.Eligible {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// holdOthers makes the living let go of items of another total. It reports
// whether one of them still runs, so that nothing may be assigned yet.
func (p *Plan) holdOthers(v View) bool {
	for _, m := range v.Members {
		if !m.Live || m.Ledger.Total == v.Total {
			continue
		}
		for n, it := range m.Ledger.Items {
			if it.Running() {
				p.Waiting = append(p.Waiting, n)
			}
		}
	}
	if len(p.Waiting) == 0 {
		return false
	}
	for _, m := range v.Members {
		if m.Live && m.Ledger.Total != v.Total {
			for n, it := range m.Ledger.Items {
				it.Leaving = true
				p.after[m.ID].Items[n] = it
			}
		}
	}
	return true
}

// assign gives every item to whom it should belong, as far as it can move now.
func (p *Plan) assign(v View, ids []string, owners map[int]string) {
	for id, m := range p.before {
		if m.Ledger.Total != v.Total {
			p.after[id] = ledger.New(v.Total)
		}
	}
	p.dropCopies(v, owners)
	p.former = former(v)
	wanted, assigned := map[int]string{}, v.Assign(ids, v.Total, p.previous(owners))
	for _, id := range ids { // whoever else a strategy names gets nothing
		for _, n := range assigned[id] {
			wanted[n] = id
		}
	}
	for n := range v.Total {
		p.place(n, owners, wanted[n])
	}
}

// previous is who owns what, the dead included: one of them may be back under a
// new id.
func (p *Plan) previous(owners map[int]string) map[string][]int {
	previous := map[string][]int{}
	for n, id := range owners {
		previous[id] = append(previous[id], n)
	}
	for id := range previous {
		slices.Sort(previous[id])
	}
	return previous
}

// dropCopies takes items out of ledgers that should not hold them. A copy that
// runs is waited for.
func (p *Plan) dropCopies(v View, owners map[int]string) {
	for _, m := range v.Members {
		if m.Ledger.Total != v.Total {
			continue
		}
		for n, it := range m.Ledger.Items {
			switch {
			case owners[n] == m.ID:
			case m.Live && it.Running():
				p.Waiting = append(p.Waiting, n)
				it.Leaving = true
				p.after[m.ID].Items[n] = it
			default:
				delete(p.after[m.ID].Items, n)
			}
		}
	}
}

func former(v View) map[int]string {
	owners := map[int]string{}
	for _, m := range v.Members {
		if m.Ledger.Total == v.Total {
			continue
		}
		for n := range m.Ledger.Items {
			if id, twice := owners[n]; !twice || m.ID < id {
				owners[n] = m.ID
			}
		}
	}
	return owners
}

// place moves item n to the id that should own it, or makes it leave.
func (p *Plan) place(n int, owners map[int]string, to string) {
	from, owned := owners[n]
	rec := p.records[n]
	live := owned && p.before[from].Live
	switch {
	case to == "" || (live && from == to):
		if live && rec.Leaving {
			rec.Leaving = false
			p.after[from].Items[n] = rec
		}
	case live && rec.Running():
		p.Waiting = append(p.Waiting, n)
		rec.Leaving = true
		p.after[from].Items[n] = rec
	default:
		if !owned {
			from = p.former[n]
		} else {
			delete(p.after[from].Items, n)
			if !live {
				p.mourn(n, p.before[from].Ledger.Items[n])
			}
		}
		rec.Leaving = false
		p.after[to].Items[n] = rec
		p.Moves = append(p.Moves, Move{Item: n, From: from, To: to})
	}
}

func (p *Plan) dropDead(v View) {
	for _, m := range v.Members {
		if !m.Live && len(p.after[m.ID].Items) == 0 {
			p.Drop = append(p.Drop, m.ID)
		}
	}
	slices.Sort(p.Drop)
}

// changed returns the ids, dead ones excepted that are dropped, whose ledgers differ.
func (p *Plan) changed() []string {
	var ids []string
	for id, l := range p.after {
		was := p.before[id].Ledger
		if len(l.Items)+len(was.Items) == 0 {
			continue // who owns nothing need not know the total
		}
		if l.Total != was.Total || !maps.EqualFunc(l.Items, was.Items, same) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func same(a, b ledger.Item) bool {
	return a.Through.Equal(b.Through) && a.Run.Equal(b.Run) && a.Leaving == b.Leaving
}
