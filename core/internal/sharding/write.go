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
	// baseBytes is what the base takes.
	baseBytes = 256
)

// A writer applies a plan piece by piece to working copies.
type writer struct {
	plan    *Plan
	room    Room
	yield   func(Step) bool
	over    bool // no further step is wanted
	dropped map[string]bool
	now     map[string]*ledger.Ledger // copies, of those that were written
	copied  map[string]bool
	version map[string]registry.Version
	omitted map[string]bool     // ledgers whose notes did not fit
	notes   map[ledger.Told]int // their sizes
	length  map[string]int      // of the values as they stand, as far as they are known

	// Of the step that is being made:
	size   map[string]int // at most, of the roots that it writes
	pages  map[part]int   // at most, of their pages that it writes
	groups map[group]bool // records that it gives to a part of a ledger
	lasts  map[part]int   // what last runs add to one
	base   *layout.Base
	moves  []Move
	drop   []Write
	ops    int
	bytes  int
}

// A part is a page of a ledger, or what stands in no page.
type part struct {
	id   string
	page int
}

// root is the page that is none.
const root = ledger.Root

type group struct {
	part
	rec ledger.Item
}

func newWriter(p *Plan, r Room, yield func(Step) bool) *writer {
	w := &writer{
		plan: p, room: r, yield: yield, dropped: map[string]bool{}, now: map[string]*ledger.Ledger{}, copied: map[string]bool{},
		version: map[string]registry.Version{}, omitted: map[string]bool{}, notes: map[ledger.Told]int{},
		length: map[string]int{}, size: map[string]int{}, pages: map[part]int{}, groups: map[group]bool{}, lasts: map[part]int{},
	}
	for _, id := range p.Drop {
		w.dropped[id] = true
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

// A flag is what changes in a ledger without a move: that it is held, and which items leave or stay.
type flag struct {
	id    string
	items []int
}

// flags returns those of the plan, as the ledgers are before any move: an item that moves and is cut for want of
// room has none.
func (w *writer) flags() (flags []flag) {
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
		if len(flagged) > 0 || l.Held != want.Held || !l.Until.Equal(want.Until) {
			flags = append(flags, flag{id, slices.Sorted(maps.Keys(flagged))})
		}
	}
	return flags
}

// amend has a ledger say of itself, and of some of its items, what is wanted; one that is not wanted
// goes. The pages in which they stand may be those of several steps.
func (w *writer) amend(id string, want *ledger.Ledger, items []int) {
	l := w.now[id]
	own := l.Held != want.Held || !l.Until.Equal(want.Until)
	if own || slices.ContainsFunc(items, func(n int) bool { return w.part(id, n).page == root }) {
		w.touch(id) // items may stand in pages from here on
	}
	if own {
		w.now[id].Held, w.now[id].Until = want.Held, want.Until
	}
	pages := map[int][]int{}
	for _, n := range items {
		pages[w.part(id, n).page] = append(pages[w.part(id, n).page], n)
	}
	w.apply(id, want, pages[root])
	delete(pages, root)
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		more := 0
		for _, n := range pages[page] {
			if rec, is := want.Get(n); is {
				more += itemBytes + w.recordSize(rec)
			}
		}
		claims := w.claims(nil, id, pages[page][0])
		if ops, bytes := w.cost(claims); w.full(ops, bytes+more) || (w.room.Single && anew(claims) && !w.spare(id)) {
			w.flush()
			claims = w.claims(nil, id, pages[page][0])
		}
		w.admit(claims)
		w.apply(id, want, pages[page])
	}
}

// apply makes the records of items what is wanted.
func (w *writer) apply(id string, want *ledger.Ledger, items []int) {
	l := w.now[id]
	for _, n := range items {
		if rec, is := want.Get(n); is {
			w.grow(id, n, rec)
			l.Set(n, rec)
		} else {
			l.Delete(n)
		}
	}
}

// part is where an item stands in a ledger, or would.
func (w *writer) part(id string, n int) part {
	if page, is := w.now[id].Page(n); is {
		return part{id, page}
	}
	return part{id, root}
}

// grow takes into account that a ledger is given an item with a record. A group of items that is
// there may change from a short bit map to a longer one, once.
func (w *writer) grow(id string, n int, rec ledger.Item) {
	at, l := w.part(id, n), w.now[id]
	more := itemBytes + w.lastBytes(at, n, rec.Last)
	rec.Last = ledger.Last{}
	if g := (group{at, rec}); !w.groups[g] {
		w.groups[g] = true
		if sharing := l.Sharing(n, rec); sharing > 0 {
			more += min(l.Span(n)/6, itemBytes*sharing)
		} else {
			more += w.recordSize(rec)
		}
	}
	if at.page == root {
		w.size[id] += more
	} else {
		w.pages[at] += more
	}
	w.bytes += more
}

// recordSize is what a record of its own adds at most.
func (w *writer) recordSize(rec ledger.Item) int {
	return recordBytes + redoBytes(rec.Redo) + askedBytes(rec) + boundBytes(rec) + w.noteBytes(rec.Told)
}

// lastBytes is what an item's last run may add: all of them take so much at most.
func (w *writer) lastBytes(at part, n int, last ledger.Last) int {
	if last == (ledger.Last{}) || w.lasts[at] >= ledger.MaxLast {
		return 0
	}
	l := w.now[at.id]
	more := itemBytes
	if g := (group{at, ledger.Item{Last: last}}); !w.groups[g] {
		w.groups[g] = true
		more += recordBytes + min(l.Span(n)/6, itemBytes*l.Len())
	}
	w.lasts[at] += more
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
	w.relieve(id)
	size := w.valueBytes(id)
	w.need(w.room.LedgerOps, size+w.room.LedgerBytes)
	if w.room.Single && !w.spare(id) {
		w.flush()
	}
	w.mark(id, size)
}

// valueBytes is the length of the value of a ledger that the step does not write yet, without pages.
func (w *writer) valueBytes(id string) int {
	size, known := w.length[id]
	if !known {
		size = len(w.now[id].Standing(w.room.MaxValue))
		w.length[id] = size
	}
	return size
}

// relieve has items of a ledger stand in pages that the step does not write yet and that takes more
// than half of a value: in steps of their own, with as many pages as fit one.
func (w *writer) relieve(id string) {
	if w.ends(id) {
		return
	}
	for w.valueBytes(id) > w.room.MaxValue/2 && w.now[id].Heavy(w.room.MaxValue) && w.now[id].InRoot() > 0 {
		w.flush()
		had := len(w.now[id].Pages())
		w.mark(id, w.valueBytes(id))
		w.flush()
		if len(w.now[id].Pages()) == had {
			return // each item takes too much
		}
	}
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

// A claim is a part of a ledger that the step does not write yet, with the length of its value.
type claim struct {
	part
	size int
}

// claims adds what a change of an item of a ledger needs.
func (w *writer) claims(claims []claim, id string, n int) []claim {
	if !w.dirty(id) {
		claims = append(claims, claim{part{id, root}, w.valueBytes(id)})
	}
	if at := w.part(id, n); at.page != root {
		if _, has := w.pages[at]; !has {
			size, _ := w.now[id].Size(at.page)
			claims = append(claims, claim{at, size})
		}
	}
	return claims
}

// cost is what claims take.
func (w *writer) cost(claims []claim) (ops, bytes int) {
	for _, c := range claims {
		if c.page == root {
			ops += w.room.LedgerOps
			bytes += c.size + w.room.LedgerBytes
		} else {
			ops++
			bytes += c.size + w.room.LedgerBytes/2
		}
	}
	return ops, bytes
}

// admit makes what is claimed part of the step.
func (w *writer) admit(claims []claim) {
	for _, c := range claims {
		if c.page == root {
			w.mark(c.id, c.size)
			continue
		}
		w.pages[c.part] = c.size
		w.ops++
		w.bytes += c.size + w.room.LedgerBytes/2
	}
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

// touches returns what of ledgers the move changes and the step does not write yet.
func (w *writer) touches(m Move) (claims []claim) {
	for i, id := range []string{m.To, m.From} {
		l, known := w.now[id]
		if !known || i > 0 && id == m.To {
			continue
		}
		if _, holds := l.Get(m.Item); id == m.To || holds {
			claims = w.claims(claims, id, m.Item)
		}
	}
	return claims
}

// relieved is touches, once the ledgers among them take no more than they should.
func (w *writer) relieved(m Move) []claim {
	for _, c := range w.touches(m) {
		if c.page == root {
			w.relieve(c.id)
		}
	}
	return w.touches(m)
}

// anew reports whether claims are of ledgers that the step does not write yet.
func anew(claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool { return c.page == root })
}

// moveThose makes the moves that are wanted, until nobody asks for steps any more.
func (w *writer) moveThose(moves []Move, wanted func(Move) bool) {
	for _, m := range moves {
		if w.over {
			return
		}
		if wanted(m) {
			w.move(m)
		}
	}
}

// move takes an item from one ledger to another, both in one step.
func (w *writer) move(m Move) {
	want := w.plan.after[m.To]
	rec, _ := want.Get(m.Item)
	if w.ends(m.To) {
		w.leave(m.To) // what it held has ended and is accounted for
	}
	claims := w.relieved(m)
	more := w.recordSize(rec) + itemBytes + w.now[m.To].Span(m.Item)/6
	if rec.Last != (ledger.Last{}) {
		more += min(ledger.MaxLast, recordBytes+itemBytes+w.now[m.To].Span(m.Item)/6)
	}
	ops, bytes := w.cost(claims)
	ops, bytes = ops+w.room.MoveOps(m.Item), bytes+w.room.MoveBytes+more
	if w.full(ops, bytes) || (w.room.Single && len(w.size) > 0 && anew(claims)) || w.overflows(w.part(m.To, m.Item), more) { // another pair
		w.flush()
		claims = w.relieved(m)
	}
	w.admit(claims)
	w.ops += w.room.MoveOps(m.Item)
	w.bytes += w.room.MoveBytes + itemBytes // from is cut into more ranges
	if w.ends(m.To) {
		w.now[m.To] = fresh(want, w.now[m.To])
	}
	if from, known := w.now[m.From]; known && w.dirty(m.From) && m.From != m.To {
		from.Delete(m.Item)
	}
	w.grow(m.To, m.Item, rec)
	w.now[m.To].Set(m.Item, rec)
	w.moves = append(w.moves, m)
}

// overflows reports whether so much more in a part that the step writes may not fit a value: by how long
// it may be, and if so, by how long it is.
func (w *writer) overflows(at part, more int) bool {
	size, written := w.pages[at]
	if at.page == root {
		size, written = w.size[at.id]
	}
	return written && size+more > w.room.MaxValue && w.now[at.id].Bare(at.page)+more > w.room.MaxValue
}

// leave takes the items out of a ledger that has pages, so that it can be replaced or dropped: each page
// that goes takes an operation.
func (w *writer) leave(id string) {
	l := w.now[id]
	if len(l.Pages()) == 0 {
		return
	}
	none := ledger.New(l.Epoch, l.Total)
	none.Held, none.Until = l.Held, l.Until
	w.amend(id, none, l.Numbers())
}

// ends reports whether a ledger is to be replaced as a whole, or dropped.
func (w *writer) ends(id string) bool {
	l, want := w.now[id], w.plan.after[id]
	return want == nil || l.Epoch != want.Epoch || l.Total != want.Total || w.dropped[id]
}

// fresh returns a ledger without items that is otherwise as wanted, and replaces another one.
func fresh(want, before *ledger.Ledger) *ledger.Ledger {
	l := ledger.New(want.Epoch, want.Total)
	l.Held, l.Until = want.Held, want.Until
	l.Follows(before)
	return l
}

// rest writes the ledgers that still differ: those that only lost what an epoch before
// gave them. It drops the dead.
func (w *writer) rest() {
	for _, id := range w.plan.changed() {
		if w.dropped[id] {
			continue
		}
		want := w.wanted(id)
		if w.over || w.now[id].Equal(want) {
			continue
		}
		if w.ends(id) {
			w.leave(id)
			w.touch(id)
			w.now[id] = fresh(want, w.now[id])
		}
		w.amend(id, want, differing(w.now[id], want))
	}
	for _, id := range w.plan.Drop {
		w.leave(id)
		w.discard(id)
	}
}

// discard deletes a ledger in which no page has items.
func (w *writer) discard(id string) {
	l := w.now[id]
	strays := l.Strays() // its other pages are counted already
	w.need(1+strays, w.room.LedgerBytes)
	if w.ops += strays; !w.dirty(id) {
		w.ops++
		w.bytes += w.room.LedgerBytes
	}
	delete(w.size, id)
	x := Write{ID: id, Version: w.version[id]}
	if len(l.Pages()) > 0 {
		x.Pages = l.Write(0, ledger.Room{Value: w.room.MaxValue, Ops: w.room.Ops}).Pages
	}
	w.drop = append(w.drop, x)
}

// differing are the items whose records differ between two ledgers, in order.
func differing(is, want *ledger.Ledger) []int {
	var items []int
	for n, rec := range is.All() {
		if other, has := want.Get(n); !has || !other.Same(rec) {
			items = append(items, n)
		}
	}
	for n := range want.All() {
		if _, has := is.Get(n); !has {
			items = append(items, n)
		}
	}
	slices.Sort(items)
	return items
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
	clear(w.pages)
	clear(w.groups)
	clear(w.lasts)
	w.base, w.moves, w.drop, w.ops, w.bytes = nil, nil, nil, 0, 0
	w.over = w.over || !w.yield(s)
}

// writes encodes what the step writes of ledgers. What is too large with its notes is written
// without them.
func (w *writer) writes() []Write {
	all := make([]writing, 0, len(w.size))
	bytes, spare := w.bytes, w.room.Ops-w.ops
	for _, id := range slices.Sorted(maps.Keys(w.size)) {
		x := writing{Write: Write{ID: id, Version: w.version[id]}}
		size := w.size[id]
		for at, more := range w.pages {
			if at.id == id {
				x.room.Ops++
				size += more
			}
		}
		claimed := x.room.Ops
		x.room = ledger.Room{Value: w.room.MaxValue, Ops: claimed + spare, Bytes: size + max(0, w.room.Bytes-w.bytes)}
		w.encode(&x)
		for x.of.Longest() > w.room.MaxValue {
			if !w.omit(&x, true) {
				break
			}
		}
		added := len(x.Pages) - claimed
		spare -= added
		bytes += x.of.Bytes() - size + max(0, added)*w.room.LedgerBytes/2
		all = append(all, x)
	}
	writes := make([]Write, len(all))
	for i := range all {
		x := &all[i]
		for bytes > w.room.Bytes {
			was := x.of.Bytes()
			if !w.omit(x, false) {
				break
			}
			bytes += x.of.Bytes() - was
		}
		w.now[x.ID].Written()
		w.length[x.ID] = len(x.Value)
		w.version[x.ID]++
		writes[i] = x.Write
	}
	return writes
}

// A writing is a ledger that is being encoded.
type writing struct {
	Write
	room ledger.Room
	of   *ledger.Write
}

func (w *writer) encode(x *writing) {
	x.of = w.now[x.ID].Write(int64(w.version[x.ID])+1, x.room)
	x.Value, x.Pages = x.of.Root, x.of.Pages
}

// omit leaves the notes out of a ledger that is written, and when there are none the fires
// that were to run again: they are cut. It is about values that are too long, or about all that are
// written. It reports false when there is nothing to leave out.
func (w *writer) omit(x *writing, long bool) bool {
	l := w.now[x.ID]
	written := map[int]bool{root: !long || len(x.Value) > w.room.MaxValue}
	for _, p := range x.Pages {
		written[p.Number] = !long || len(p.Value) > w.room.MaxValue
	}
	among := func(n int) bool { return written[w.part(x.ID, n).page] }
	without := map[int]ledger.Item{}
	for n, rec := range l.All() {
		if rec.Told != (ledger.Told{}) && among(n) {
			without[n] = rec
		}
	}
	if len(without) == 0 {
		for n, rec := range l.All() {
			if rec.Redo.Owed() && among(n) {
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
	w.encode(x)
	return len(without) > 0
}
