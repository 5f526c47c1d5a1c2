package sharding

import (
	"cmp"
	"maps"
	"slices"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Step is one commit of a plan. After each the state is whole: every item stands in
// one ledger, and a leader that starts from there derives the rest.
type Step struct {
	// Base is written with it; nil when it stays.
	Base *layout.Base
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

// Room is what one step may take.
type Room struct {
	// Ops and Bytes bound the commit; Ops has room for one move and two ledgers.
	Ops, Bytes int
	// LedgerOps and LedgerBytes are what a changed ledger takes, its value aside. A
	// dropped one takes an operation.
	LedgerOps, LedgerBytes int
	// MoveOps and MoveBytes are what the move of an item takes besides the ledgers.
	MoveOps   func(item int) int
	MoveBytes int
	// Single: at most one gainer and one living loser, so that few commits of others
	// can be in the way.
	Single bool
}

// recordBytes is what an item's record may add to a ledger's value.
const recordBytes = 250

// Steps cuts the plan into commits.
func (p *Plan) Steps(r Room) []Step {
	var steps []Step
	if p.Base != nil && !p.last {
		steps = append(steps, Step{Base: p.Base})
		if p.view.Base == nil || p.Base.Epoch != p.view.Base.Epoch {
			return steps // the rest follows from it
		}
	}
	w := &writer{
		plan: p, room: r, now: map[string]*ledger.Ledger{}, version: map[string]registry.Version{},
		dirty: map[string]bool{}, steps: steps,
	}
	for id, m := range p.before {
		if m.Ledger != nil {
			w.now[id], w.version[id] = m.Ledger.Clone(), m.Version
		}
	}
	w.flags()
	moves := slices.Clone(p.Moves)
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Item, b.Item))
	})
	for _, m := range moves {
		w.move(m)
	}
	w.rest()
	if p.last {
		w.need(1, 256)
		w.base = p.Base
	}
	w.flush()
	return w.steps
}

// A writer applies a plan piece by piece to working copies.
type writer struct {
	plan    *Plan
	room    Room
	now     map[string]*ledger.Ledger
	version map[string]registry.Version
	dirty   map[string]bool
	base    *layout.Base
	moves   []Move
	drop    []Write
	ops     int
	bytes   int
	steps   []Step
}

// flags writes what changes without a move: who is held, which items leave or stay.
func (w *writer) flags() {
	for _, id := range w.plan.changed() {
		l, want := w.now[id], w.plan.after[id]
		if l.Epoch != want.Epoch || l.Total != want.Total {
			continue
		}
		flagged := map[int]ledger.Item{}
		for n, rec := range want.All() {
			if was, had := l.Get(n); had && was != rec {
				flagged[n] = rec
			}
		}
		if len(flagged) == 0 && l.Held == want.Held && l.Until.Equal(want.Until) {
			continue
		}
		w.touch(id)
		l = w.now[id]
		l.Held, l.Until = want.Held, want.Until
		for _, n := range slices.Sorted(maps.Keys(flagged)) {
			l.Set(n, flagged[n])
			w.bytes += recordBytes / 10
		}
	}
}

// touch makes the ledger part of the step, which ends first when it is full: call it
// before the ledger is changed.
func (w *writer) touch(id string) {
	if w.dirty[id] {
		return
	}
	size := len(w.now[id].Encode()) + w.room.LedgerBytes
	w.need(w.room.LedgerOps, size)
	if w.room.Single && !w.spare(id) {
		w.flush()
	}
	w.dirty[id] = true
	w.ops += w.room.LedgerOps
	w.bytes += size
}

// spare reports whether a single step has a place for another ledger: the dead write
// nothing, so that theirs are in nobody's way.
func (w *writer) spare(id string) bool {
	living := 0
	for other := range w.dirty {
		if w.plan.before[other].State != Dead {
			living++
		}
	}
	return w.plan.before[id].State == Dead || living < 2
}

// touches returns the ledgers that the move changes and the step does not yet.
func (w *writer) touches(m Move) []string {
	var ids []string
	for _, id := range []string{m.To, m.From} {
		l, known := w.now[id]
		if !known || w.dirty[id] || slices.Contains(ids, id) {
			continue
		}
		if _, holds := l.Get(m.Item); id == m.To || holds {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *writer) move(m Move) {
	ids := w.touches(m)
	ops, bytes := w.room.MoveOps(m.Item)+w.room.LedgerOps*len(ids), w.room.MoveBytes+recordBytes
	for _, id := range ids {
		bytes += len(w.now[id].Encode()) + w.room.LedgerBytes
	}
	w.need(ops, bytes)
	if w.room.Single && len(w.dirty) > 0 && len(ids) > 0 {
		w.flush() // another pair
	}
	for _, id := range w.touches(m) {
		w.touch(id)
	}
	w.ops += w.room.MoveOps(m.Item)
	w.bytes += w.room.MoveBytes + recordBytes
	want := w.plan.after[m.To]
	if to := w.now[m.To]; to.Epoch != want.Epoch || to.Total != want.Total {
		w.now[m.To] = fresh(want, to.Seq) // what it held has ended and is accounted for
	}
	if from, known := w.now[m.From]; known && w.dirty[m.From] && m.From != m.To {
		from.Delete(m.Item)
	}
	rec, _ := want.Get(m.Item)
	w.now[m.To].Set(m.Item, rec)
	w.moves = append(w.moves, m)
}

// fresh returns a ledger without items that is otherwise as wanted.
func fresh(want *ledger.Ledger, seq int64) *ledger.Ledger {
	l := ledger.New(want.Epoch, want.Total)
	l.Held, l.Until, l.Seq = want.Held, want.Until, seq
	return l
}

// rest writes the ledgers that still differ: those that only lost what an epoch before
// gave them. It drops the dead.
func (w *writer) rest() {
	for _, id := range w.plan.changed() {
		if slices.Contains(w.plan.Drop, id) || w.now[id].Equal(w.plan.after[id]) {
			continue
		}
		w.touch(id)
		seq := w.now[id].Seq
		w.now[id] = w.plan.after[id].Clone()
		w.now[id].Seq = seq
	}
	for _, id := range w.plan.Drop {
		if !w.dirty[id] {
			w.need(1, w.room.LedgerBytes)
			w.ops++
			w.bytes += w.room.LedgerBytes
		}
		delete(w.dirty, id)
		w.drop = append(w.drop, Write{ID: id, Version: w.version[id]})
	}
}

// need ends the step when it cannot take so much more.
func (w *writer) need(ops, bytes int) {
	if w.ops+ops > w.room.Ops || w.bytes+bytes > w.room.Bytes {
		w.flush()
	}
}

func (w *writer) flush() {
	if len(w.dirty)+len(w.drop) == 0 && w.base == nil {
		return
	}
	s := Step{Base: w.base, Moves: w.moves, Drop: w.drop}
	for _, id := range slices.Sorted(maps.Keys(w.dirty)) {
		s.Ledgers = append(s.Ledgers, Write{ID: id, Version: w.version[id], Ledger: w.now[id].Clone()})
		w.version[id]++
	}
	clear(w.dirty)
	w.steps = append(w.steps, s)
	w.base, w.moves, w.drop, w.ops, w.bytes = nil, nil, nil, 0, 0
}
