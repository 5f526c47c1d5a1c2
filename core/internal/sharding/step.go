package sharding

import (
	"cmp"
	"maps"
	"slices"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Step is one commit of a plan. After each the state is whole: every item
// stands in one ledger, and a leader that starts from there derives the rest.
type Step struct {
	// Moves are the items whose owner changes in this step.
	Moves []Move
	// Ledgers are the new contents.
	Ledgers []Write
	// Drop are ledgers to delete.
	Drop []Write
}

// A Write is a ledger of an instance at the version it must have.
type Write struct {
	ID      string
	Version registry.Version
	Ledger  *ledger.Ledger
}

// Steps cuts the plan into commits of at most maxOps operations. write is how many
// a changed ledger takes, cost how many the move of an item takes besides the
// ledgers, a dropped ledger is one; maxOps must have room for one move and two ledgers.
func (p *Plan) Steps(maxOps, write int, cost func(item int) int) []Step {
	steps := p.cut(maxOps, write, cost, nil)
	if others := p.others(); len(steps) > 1 && len(others) > 0 {
		return p.cut(maxOps, write, cost, others)
	}
	return steps
}

// others are the living whose ledgers another total loses while they may still
// begin items of it. One commit takes them all at once; before several they must
// be held, lest items of two totals run between two of them.
func (p *Plan) others() []string {
	var ids []string
	for id, l := range p.after {
		was := p.before[id]
		if !was.Live || was.Ledger.Total == p.total || l.Total != p.total {
			continue
		}
		for _, it := range was.Ledger.Items {
			if !it.Leaving {
				ids = append(ids, id)
				break
			}
		}
	}
	slices.Sort(ids)
	return ids
}

func (p *Plan) cut(maxOps, write int, cost func(item int) int, hold []string) []Step {
	w := &writer{
		plan: p, maxOps: maxOps, write: write, now: map[string]*ledger.Ledger{},
		version: map[string]registry.Version{}, dirty: map[string]bool{},
	}
	for id, m := range p.before {
		w.now[id], w.version[id] = m.Ledger.Clone(), m.Version
	}
	w.hold(hold)
	w.flags()
	moves := slices.Clone(p.Moves)
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Item, b.Item))
	})
	for _, m := range moves {
		w.move(m, cost(m.Item))
	}
	w.rest()
	w.flush()
	return w.steps
}

// A writer applies a plan piece by piece to working copies.
type writer struct {
	plan    *Plan
	maxOps  int
	write   int
	now     map[string]*ledger.Ledger
	version map[string]registry.Version
	dirty   map[string]bool
	moves   []Move
	drop    []Write
	ops     int
	steps   []Step
}

// hold marks every item of ids as leaving, before anything else is written.
func (w *writer) hold(ids []string) {
	for _, id := range ids {
		w.touch(id)
		for n, it := range w.now[id].Items {
			it.Leaving = true
			w.now[id].Items[n] = it
		}
	}
	w.flush()
}

// flags writes what changes without a move: items that leave or stay after all.
func (w *writer) flags() {
	for _, id := range w.plan.changed() {
		if w.now[id].Total != w.plan.after[id].Total {
			continue
		}
		flagged := map[int]ledger.Item{}
		for n, it := range w.plan.after[id].Items {
			if was, had := w.now[id].Items[n]; had && !same(was, it) {
				flagged[n] = it
			}
		}
		if len(flagged) > 0 {
			w.touch(id)
			maps.Copy(w.now[id].Items, flagged)
		}
	}
}

// touch makes the ledger part of the step, which ends first when it is full: call
// it before the ledger is changed.
func (w *writer) touch(id string) {
	if !w.dirty[id] {
		w.room(w.write)
		w.dirty[id] = true
		w.ops += w.write
	}
}

// touches returns the ledgers that the move changes and the step does not yet.
func (w *writer) touches(m Move) []string {
	var ids []string
	if !w.dirty[m.To] {
		ids = append(ids, m.To)
	}
	if l, known := w.now[m.From]; known && m.From != m.To && !w.dirty[m.From] {
		// What it held under another total may have been counted before.
		if _, holds := l.Items[m.Item]; holds || l.Total != w.plan.total {
			ids = append(ids, m.From)
		}
	}
	return ids
}

func (w *writer) move(m Move, cost int) {
	w.room(cost + w.write*len(w.touches(m)))
	for _, id := range w.touches(m) {
		w.touch(id)
	}
	w.ops += cost
	for _, id := range []string{m.From, m.To} {
		if l, known := w.now[id]; known && l.Total != w.plan.total {
			w.now[id] = ledger.New(w.plan.total) // what it held has ended and is counted
		}
	}
	if from, known := w.now[m.From]; known {
		delete(from.Items, m.Item)
	}
	w.now[m.To].Items[m.Item] = w.plan.after[m.To].Items[m.Item]
	w.moves = append(w.moves, m)
}

// rest writes the ledgers that only lost what another total gave them, and drops
// the dead.
func (w *writer) rest() {
	for _, id := range w.plan.changed() {
		l, want := w.now[id], w.plan.after[id]
		if slices.Contains(w.plan.Drop, id) || (l.Total == want.Total && maps.EqualFunc(l.Items, want.Items, same)) {
			continue
		}
		w.touch(id)
		w.now[id] = want.Clone()
	}
	for _, id := range w.plan.Drop {
		if !w.dirty[id] {
			w.room(1)
			w.ops++
		}
		delete(w.dirty, id)
		w.drop = append(w.drop, Write{ID: id, Version: w.version[id]})
	}
}

// room ends the step when it cannot take so many operations more.
func (w *writer) room(ops int) {
	if w.ops+ops > w.maxOps {
		w.flush()
	}
}

func (w *writer) flush() {
	if len(w.dirty)+len(w.drop) == 0 {
		return
	}
	s := Step{Moves: w.moves, Drop: w.drop}
	for _, id := range slices.Sorted(maps.Keys(w.dirty)) {
		s.Ledgers = append(s.Ledgers, Write{ID: id, Version: w.version[id], Ledger: w.now[id].Clone()})
		w.version[id]++
	}
	clear(w.dirty)
	w.steps = append(w.steps, s)
	w.moves, w.drop, w.ops = nil, nil, 0
}
