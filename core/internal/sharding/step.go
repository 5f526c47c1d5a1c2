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

// Steps cuts the plan into commits of at most maxOps operations. cost is how many
// operations the move of an item takes besides the ledgers.
func (p *Plan) Steps(maxOps int, cost func(item int) int) []Step {
	w := &writer{plan: p, now: map[string]*ledger.Ledger{}, version: map[string]registry.Version{}}
	for id, m := range p.before {
		w.now[id], w.version[id] = m.Ledger.Clone(), m.Version
	}
	w.flags()
	moves := slices.Clone(p.Moves)
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Item, b.Item))
	})
	for _, m := range moves {
		need := cost(m.Item) + len(w.touches(m))
		if w.ops+need > maxOps {
			w.flush()
			need = cost(m.Item) + len(w.touches(m))
		}
		w.ops += need
		w.move(m)
	}
	w.rest(maxOps)
	w.flush()
	return w.steps
}

// A writer applies a plan piece by piece to working copies.
type writer struct {
	plan    *Plan
	now     map[string]*ledger.Ledger
	version map[string]registry.Version
	dirty   map[string]bool
	moves   []Move
	drop    []Write
	ops     int
	steps   []Step
}

// flags writes what changes without a move: items that leave or stay after all.
func (w *writer) flags() {
	for _, id := range w.plan.changed() {
		for n, it := range w.plan.after[id].Items {
			was, had := w.now[id].Items[n]
			if had && w.now[id].Total == w.plan.after[id].Total && !same(was, it) {
				w.now[id].Items[n] = it
				w.touch(id)
			}
		}
	}
}

func (w *writer) touch(id string) {
	if w.dirty == nil {
		w.dirty = map[string]bool{}
	}
	if !w.dirty[id] {
		w.dirty[id] = true
		w.ops++
	}
}

// touches returns the ledgers that the move changes and the step does not yet.
func (w *writer) touches(m Move) []string {
	var ids []string
	for _, id := range []string{m.To, m.From} {
		if _, known := w.now[id]; known && !w.dirty[id] && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *writer) move(m Move) {
	for _, id := range w.touches(m) {
		if w.dirty == nil {
			w.dirty = map[string]bool{}
		}
		w.dirty[id] = true
	}
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
func (w *writer) rest(maxOps int) {
	for _, id := range w.plan.changed() {
		l, want := w.now[id], w.plan.after[id]
		if slices.Contains(w.plan.Drop, id) || (l.Total == want.Total && maps.EqualFunc(l.Items, want.Items, same)) {
			continue
		}
		w.room(maxOps)
		w.now[id] = want.Clone()
		w.touch(id)
	}
	for _, id := range w.plan.Drop {
		if !w.dirty[id] {
			w.room(maxOps)
			w.ops++
		}
		delete(w.dirty, id)
		w.drop = append(w.drop, Write{ID: id, Version: w.version[id]})
	}
}

func (w *writer) room(maxOps int) {
	if w.ops+1 > maxOps {
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
	w.steps = append(w.steps, s)
	w.dirty, w.moves, w.drop, w.ops = nil, nil, nil, 0
}
