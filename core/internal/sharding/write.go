package sharding

import (
	"maps"
	"slices"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const (
	// recordBytes is what a record of its own may add to a ledger's value, without notes.
	recordBytes = 160
	// itemBytes is what an item may add that shares a record, as often as a bit map is
	// longer than the numbers.
	itemBytes = 25
)

// A writer applies a plan piece by piece to working copies.
type writer struct {
	plan    *Plan
	room    Room
	yield   func(Step) bool
	over    bool                      // no further step is wanted
	now     map[string]*ledger.Ledger // copies, of those that were written
	copied  map[string]bool
	version map[string]registry.Version
	omitted map[string]bool     // ledgers whose notes did not fit
	notes   map[ledger.Told]int // their sizes
	length  map[string]int      // of the values as they stand, as far as they are known

	// Of the step that is being made:
	size   map[string]int // at most, of the ledgers that it writes
	groups map[group]bool // records that it gives to a ledger
	lasts  map[string]int // what last runs add to a ledger
	base   *layout.Base
	moves  []Move
	drop   []Write
	ops    int
	bytes  int
}

type group struct {
	id  string
	rec ledger.Item
}

func newWriter(p *Plan, r Room, yield func(Step) bool) *writer {
	w := &writer{
		plan: p, room: r, yield: yield, now: map[string]*ledger.Ledger{}, copied: map[string]bool{},
		version: map[string]registry.Version{}, omitted: map[string]bool{}, notes: map[ledger.Told]int{},
		length: map[string]int{}, size: map[string]int{}, groups: map[group]bool{}, lasts: map[string]int{},
	}
	for id, m := range p.before {
		if m.Ledger != nil {
			w.now[id], w.version[id] = m.Ledger, m.Version
		}
	}
	return w
}

func (w *writer) dirty(id string) bool {
	_, is := w.size[id]
	return is
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
			if was, had := l.Get(n); had && !was.Same(rec) {
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
			w.grow(id, flagged[n])
			l.Set(n, flagged[n])
		}
	}
}

// grow takes into account that a ledger is given an item with a record. A group of items that is
// there may change from a short bit map to a longer one, once.
func (w *writer) grow(id string, rec ledger.Item) {
	more := itemBytes + w.lastBytes(id, rec.Last)
	rec.Last = ledger.Last{}
	if g := (group{id, rec}); !w.groups[g] {
		w.groups[g] = true
		if sharing := w.now[id].Sharing(rec); sharing > 0 {
			more += min(w.now[id].Total/6, itemBytes*sharing)
		} else {
			more += recordBytes + redoBytes(rec.Redo) + askedBytes(rec) + boundBytes(rec) + w.noteBytes(rec.Told)
		}
	}
	w.size[id] += more
	w.bytes += more
}

// lastBytes is what an item's last run may add: all of them take so much at most.
func (w *writer) lastBytes(id string, last ledger.Last) int {
	if last == (ledger.Last{}) || w.lasts[id] >= ledger.MaxLast {
		return 0
	}
	more := itemBytes
	if g := (group{id, ledger.Item{Last: last}}); !w.groups[g] {
		w.groups[g] = true
		more += recordBytes + min(w.now[id].Total/6, itemBytes*w.now[id].Len())
	}
	w.lasts[id] += more
	return more
}

// redoBytes is what a fire that runs again adds to a record.
func redoBytes(r ledger.Redo) int {
	if r == (ledger.Redo{}) {
		return 0
	}
	return 80 + 2*len(r.Lost) // a name that JSON escapes is rare
}

// askedBytes is what runs that were asked for add to a record.
func askedBytes(rec ledger.Item) int {
	if rec.Asked == 0 && rec.Request == 0 {
		return 0
	}
	return 64
}

// boundBytes is what the name of whom it belongs to adds to a record.
func boundBytes(rec ledger.Item) int {
	if !rec.Lent() {
		return 0
	}
	return 16 + 2*len(rec.Bound) // a name that JSON escapes is rare
}

func (w *writer) noteBytes(t ledger.Told) int {
	if t == (ledger.Told{}) {
		return 0
	}
	size, known := w.notes[t]
	if !known {
		for _, n := range t.Notes() {
			size += 80 + len(n.Instance)
		}
		w.notes[t] = size
	}
	return size
}

// touch makes the ledger part of the step, which ends first when it is full: call it
// before the ledger is changed.
func (w *writer) touch(id string) {
	if w.dirty(id) {
		return
	}
	size := w.valueBytes(id)
	w.need(w.room.LedgerOps, size+w.room.LedgerBytes)
	if w.room.Single && !w.spare(id) {
		w.flush()
	}
	w.mark(id, size)
}

// valueBytes is the length of the value of a ledger that the step does not write yet.
func (w *writer) valueBytes(id string) int {
	size, known := w.length[id]
	if !known {
		size = len(w.now[id].Encode())
		w.length[id] = size
	}
	return size
}

// mark makes the ledger part of the step.
func (w *writer) mark(id string, size int) {
	if !w.copied[id] {
		w.now[id], w.copied[id] = w.now[id].Clone(), true
	}
	w.size[id] = size
	w.ops += w.room.LedgerOps
	w.bytes += size + w.room.LedgerBytes
}

// spare reports whether a single step has a place for another ledger: the dead write
// nothing, so that theirs are in nobody's way.
func (w *writer) spare(id string) bool {
	living := 0
	for other := range w.size {
		if w.plan.before[other].State != Dead {
			living++
		}
	}
	return w.plan.before[id].State == Dead || living < 2
}

// touches returns the ledgers that the move changes and the step does not yet, with the
// sizes of their values.
func (w *writer) touches(m Move) map[string]int {
	sizes := map[string]int{}
	for _, id := range []string{m.To, m.From} {
		l, known := w.now[id]
		if !known || w.dirty(id) {
			continue
		}
		if _, holds := l.Get(m.Item); id == m.To || holds {
			sizes[id] = w.valueBytes(id)
		}
	}
	return sizes
}

// move takes an item from one ledger to another, both in one step.
func (w *writer) move(m Move) {
	want := w.plan.after[m.To]
	rec, _ := want.Get(m.Item)
	sizes := w.touches(m)
	ops, bytes := w.room.MoveOps(m.Item), w.room.MoveBytes+recordBytes+itemBytes+redoBytes(rec.Redo)+boundBytes(rec)+w.noteBytes(rec.Told)+want.Total/6
	if rec.Last != (ledger.Last{}) {
		bytes += min(ledger.MaxLast, recordBytes+itemBytes+want.Total/6)
	}
	for _, size := range sizes {
		ops += w.room.LedgerOps
		bytes += size + w.room.LedgerBytes
	}
	if w.full(ops, bytes) || (w.room.Single && len(w.size) > 0 && len(sizes) > 0) { // another pair
		w.flush()
		sizes = w.touches(m)
	}
	for id, size := range sizes {
		w.mark(id, size)
	}
	w.ops += w.room.MoveOps(m.Item)
	w.bytes += w.room.MoveBytes + itemBytes // from is cut into more ranges
	if to := w.now[m.To]; to.Epoch != want.Epoch || to.Total != want.Total {
		w.now[m.To] = fresh(want, to.Seq) // what it held has ended and is accounted for
	}
	if from, known := w.now[m.From]; known && w.dirty(m.From) && m.From != m.To {
		from.Delete(m.Item)
	}
	w.grow(m.To, rec)
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
		if slices.Contains(w.plan.Drop, id) {
			continue
		}
		want := w.wanted(id)
		if w.over || w.now[id].Equal(want) {
			continue
		}
		w.touch(id)
		want.Seq = w.now[id].Seq
		w.now[id] = want
	}
	for _, id := range w.plan.Drop {
		if !w.dirty(id) {
			w.need(1, w.room.LedgerBytes)
			w.ops++
			w.bytes += w.room.LedgerBytes
		}
		delete(w.size, id)
		w.drop = append(w.drop, Write{ID: id, Version: w.version[id]})
	}
}

// wanted is what the ledger should be, without the notes that a step before had no room for.
func (w *writer) wanted(id string) *ledger.Ledger {
	want := w.plan.after[id].Clone()
	if w.omitted[id] {
		for n, rec := range w.now[id].All() {
			now, has := want.Get(n)
			if has && rec.Told == (ledger.Told{}) {
				now.Told = rec.Told
			}
			if has && !rec.Redo.Owed() {
				now.Redo, now.Request = rec.Redo, rec.Request
			}
			if has {
				want.Set(n, now)
			}
		}
	}
	return want
}

func (w *writer) full(ops, bytes int) bool {
	return w.ops+ops > w.room.Ops || w.bytes+bytes > w.room.Bytes
}

// need ends the step when it cannot take so much more.
func (w *writer) need(ops, bytes int) {
	if w.full(ops, bytes) {
		w.flush()
	}
}

// flush hands out the step, and begins the next.
func (w *writer) flush() {
	if len(w.size)+len(w.drop) == 0 && w.base == nil {
		return
	}
	s := Step{Base: w.base, Moves: w.moves, Ledgers: w.writes(), Drop: w.drop}
	clear(w.size)
	clear(w.groups)
	clear(w.lasts)
	w.base, w.moves, w.drop, w.ops, w.bytes = nil, nil, nil, 0, 0
	w.over = w.over || !w.yield(s)
}

// writes encodes the ledgers of the step. What is too large with its notes is written
// without them.
func (w *writer) writes() []Write {
	writes := make([]Write, 0, len(w.size))
	bytes := w.bytes
	for _, id := range slices.Sorted(maps.Keys(w.size)) {
		x := Write{ID: id, Version: w.version[id], Value: w.now[id].EncodeWithin(w.room.MaxValue)}
		for large := len(x.Value) > w.room.MaxValue; large && w.omit(&x); {
			large = len(x.Value) > w.room.MaxValue
		}
		bytes += len(x.Value) - w.size[id]
		writes = append(writes, x)
		w.version[id]++
	}
	for i := range writes {
		for bytes > w.room.Bytes {
			was := len(writes[i].Value)
			if !w.omit(&writes[i]) {
				break
			}
			bytes += len(writes[i].Value) - was
		}
		w.length[writes[i].ID] = len(writes[i].Value)
	}
	return writes
}

// omit leaves the notes out of a ledger that is written, and when there are none the fires
// that were to run again: they are cut. It reports false when there is nothing to leave out.
func (w *writer) omit(x *Write) bool {
	l := w.now[x.ID]
	without := map[int]ledger.Item{}
	for n, rec := range l.All() {
		if rec.Told != (ledger.Told{}) {
			without[n] = rec
		}
	}
	if len(without) == 0 {
		for n, rec := range l.All() {
			if rec.Redo.Owed() {
				without[n] = cut(rec, event.CutRoom)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(without)) {
		rec := without[n]
		for _, note := range rec.Told.Notes() {
			x.Cut = append(x.Cut, Cut{Epoch: l.Epoch, Item: n, Note: note})
		}
		rec.Told = ledger.Told{}
		l.Set(n, rec)
	}
	w.omitted[x.ID] = w.omitted[x.ID] || len(without) > 0
	x.Value = l.EncodeWithin(w.room.MaxValue)
	return len(without) > 0
}
