package sharding

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// ledger is what is written, to a ledger without pages, or one that follow has read.
func (w Write) ledger() *ledger.Ledger {
	if l := followed[&w.Value[0]]; l != nil {
		return l.Clone()
	}
	l, err := ledger.Decode(w.Value)
	if err != nil {
		panic(err)
	}
	return l
}

// followed are the ledgers that steps write, by their roots' values.
var followed = map[*byte]*ledger.Ledger{}

// follow reads what steps write, one after the other, with the pages that they do not write.
func (w *world) follow(steps []Step) {
	clear(followed)
	stand := map[string]*ledger.Ledger{}
	for id, m := range w.members {
		stand[id] = m.Ledger
	}
	for _, s := range steps {
		for _, x := range s.Ledgers {
			r, err := ledger.Open(x.Value)
			if err != nil {
				w.Fatalf("%v: %s", err, x.Value)
			}
			stood := map[int]bool{}
			for _, p := range stand[x.ID].Pages() {
				stood[p] = true
			}
			for _, p := range x.Pages {
				if p.New == stood[p.Number] {
					w.Fatalf("page %d of %s: it stands: %v", p.Number, x.ID, stood[p.Number])
				}
				if stood[p.Number] = p.Value != nil; p.Value == nil {
					continue
				}
				if err := r.Page(p.Number, p.Value); err != nil {
					w.Fatalf("page %d of %s: %v", p.Number, x.ID, err)
				}
			}
			r.Reuse(stand[x.ID])
			l, err := r.Ledger()
			if err != nil {
				w.Fatalf("%s: %v: %s", x.ID, err, x.Value)
			}
			maps.DeleteFunc(stood, func(_ int, is bool) bool { return !is })
			if now := l.Pages(); !slices.Equal(now, slices.Sorted(maps.Keys(stood))) {
				w.Fatalf("%s lists the pages %v, and %v stand", x.ID, now, stood)
			}
			stand[x.ID], followed[&x.Value[0]] = l, l
		}
		for _, x := range s.Drop {
			pages := stand[x.ID].Pages()
			for _, p := range x.Pages {
				pages = slices.DeleteFunc(pages, func(n int) bool { return n == p.Number && p.Value == nil })
			}
			if len(pages) > 0 {
				w.Fatalf("%s is dropped, and its pages %v stand", x.ID, pages)
			}
		}
	}
}

// store has the registry hold a ledger as its owner writes it.
func store(m *Member) {
	m.Ledger.Write(int64(m.Version), ledger.Room{Value: 500, Ops: 30, Bytes: 1 << 20})
	m.Ledger.Written()
}

func cost(item int) int { return 1 + item%2 }

func drawRoom(t *rapid.T) Room {
	return Room{
		Ops: rapid.IntRange(9, 20).Draw(t, "ops"), Bytes: rapid.IntRange(2_500, 9_000).Draw(t, "bytes"),
		MaxValue:  rapid.SampledFrom([]int{200, 500, 256 << 10}).Draw(t, "maxValue"),
		LedgerOps: 2, LedgerBytes: 30, MoveOps: cost, MoveBytes: 30, Single: rapid.Bool().Draw(t, "single"),
	}
}

// derive checks what a plan promises of itself.
func (w *world) derive(r Room) (*Plan, []Step) {
	p := Derive(w.view())
	again := w.view()
	again.Now = again.Now.Add(17) // another leader, and its clock
	if q := Derive(again); !cmp.Equal(q.Base, p.Base) || !cmp.Equal(q.Moves, p.Moves) || !cmp.Equal(q.Waiting, p.Waiting) {
		w.Fatalf("one state, two plans: %+v %v\n%+v %v", p.Base, p.Moves, q.Base, q.Moves)
	}
	if len(p.Lost) > 0 {
		w.Fatalf("items %v count as lost", p.Lost)
	}
	steps := slices.Collect(p.Steps(r))
	w.follow(steps)
	if p.Base != nil && (w.base == nil || p.Base.Epoch != w.base.Epoch) {
		if len(steps) != 1 || steps[0].Base == nil || len(steps[0].Ledgers)+len(steps[0].Drop) > 0 {
			w.Fatalf("a new epoch is not written alone: %+v", steps)
		}
		return p, steps
	}
	var moves []Move
	for _, s := range steps {
		moves = append(moves, s.Moves...)
		w.checkSize(r, s)
	}
	slices.SortFunc(moves, func(a, b Move) int { return a.Item - b.Item })
	byItem := slices.SortedFunc(slices.Values(p.Moves), func(a, b Move) int { return a.Item - b.Item })
	if diff := cmp.Diff(byItem, moves, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("the steps do not move what the plan does:\n%s", diff)
	}
	return p, steps
}

// checkSize: a step fits, and with Single touches at most two living ledgers.
func (w *world) checkSize(r Room, s Step) {
	ops, bytes, living := r.LedgerOps*len(s.Ledgers)+len(s.Drop), r.LedgerBytes*(len(s.Ledgers)+len(s.Drop)), 0
	notes := false
	for _, x := range s.Ledgers {
		bytes += len(x.Value)
		ops += len(x.Pages)
		for _, p := range x.Pages {
			bytes += len(p.Value)
		}
		noted := false
		for _, rec := range x.ledger().All() {
			noted = noted || rec.Told != ledger.Told{}
		}
		notes = notes || noted
		if len(x.Value) > r.MaxValue && noted {
			w.Fatalf("a ledger of %d bytes holds notes, %d fit:\n%s", len(x.Value), r.MaxValue, x.Value)
		}
		if w.members[x.ID].State != Dead {
			living++
		}
	}
	for _, x := range s.Drop {
		ops += len(x.Pages)
	}
	for _, mv := range s.Moves {
		ops += r.MoveOps(mv.Item)
		bytes += r.MoveBytes
	}
	if s.Base != nil {
		ops++
	}
	switch {
	case ops > r.Ops, ops == 0:
		w.Fatalf("a step of %d operations, at most %d", ops, r.Ops)
	case bytes > r.Bytes && len(s.Moves) > 1, bytes > r.Bytes && notes:
		w.Fatalf("a step of %d moves and %d bytes, at most %d", len(s.Moves), bytes, r.Bytes)
	case r.Single && living > 2:
		w.Fatalf("a single step with %d living ledgers", living)
	}
}

// commit applies a step as the registry would, and checks what it does.
func (w *world) commit(p *Plan, s Step) bool {
	for _, x := range slices.Concat(s.Ledgers, s.Drop) {
		m := w.members[x.ID]
		if m == nil || m.Ledger == nil || m.Version != x.Version {
			return false // somebody wrote it meanwhile, or it is gone
		}
	}
	w.checkMoves(p, s)
	for _, x := range s.Ledgers {
		w.checkWrite(p, w.members[x.ID], x)
	}
	for _, x := range s.Ledgers {
		m := w.members[x.ID]
		m.Ledger = x.ledger()
		m.Version++
		for _, c := range x.Cut {
			w.tell(itemOf{c.Epoch, c.Item}, c.Note)
		}
	}
	for _, x := range s.Drop {
		m := w.members[x.ID]
		if m.State != Dead {
			w.Fatalf("%s lives and is dropped", x.ID)
		}
		delete(w.members, x.ID)
	}
	for _, mv := range s.Moves {
		if _, has := w.members[mv.To].Ledger.Get(mv.Item); !has {
			w.Fatalf("%v is not at its new owner", mv)
		}
	}
	if s.Base != nil {
		w.setBase(*s.Base)
	}
	w.check()
	return true
}

func (w *world) setBase(b layout.Base) {
	if w.base != nil && b.Epoch != w.base.Epoch {
		if b.Epoch != w.base.Epoch+1 || !w.base.Assigned || b.From != w.base.To {
			w.Fatalf("base %+v after %+v", b, *w.base)
		}
		for id, m := range w.members {
			if l := m.ledger(); m.State != Dead && l.Len() > 0 && !l.Held {
				w.Fatalf("epoch %d while %s is not held", b.Epoch, id)
			}
		}
		for n := range w.base.To {
			if f := w.floor[itemOf{w.base.Epoch, n}]; f.After(b.Through) {
				w.Fatalf("item %d of epoch %d has had %v, and the next starts at %v", n, w.base.Epoch, f, b.Through)
			}
		}
	}
	if b.Assigned {
		for n := range b.To {
			if w.owner(b.Epoch, n) == nil {
				w.Fatalf("assigned, and item %d stands nowhere", n)
			}
		}
	}
	w.base = &b
	w.totals[b.Epoch] = b.To
	w.written++
}

// checkMoves: the living lose only what does not run; an item of an epoch is given to
// somebody only when nothing of the one before is owed.
func (w *world) checkMoves(p *Plan, s Step) {
	for _, mv := range s.Moves {
		epoch := 0
		for _, x := range s.Ledgers {
			if x.ID == mv.To {
				epoch = x.ledger().Epoch
			}
		}
		if epoch == w.base.Epoch {
			w.checkOver(epoch-1, mv)
		}
		if mv.From == "" {
			for id, m := range w.members {
				held := m.ledger()
				if _, has := held.Get(mv.Item); has && held.Epoch == epoch && id != mv.From {
					w.Fatalf("%v in epoch %d, and %s has it", mv, epoch, id)
				}
			}
			continue
		}
		from := w.members[mv.From]
		rec, has := from.Ledger.Get(mv.Item)
		if !has || (from.State == Alive && rec.Running()) || p.before[mv.From].State == Astray {
			w.Fatalf("%v of %+v", mv, rec)
		}
	}
}

// checkOver: no item of the epoch runs, is noted, or owes a fire up to the base.
func (w *world) checkOver(epoch int, mv Move) {
	for id, m := range w.members {
		held := m.ledger()
		if held.Epoch != epoch {
			continue
		}
		for n, rec := range held.All() {
			if rec.Running() || rec.Told != (ledger.Told{}) {
				w.Fatalf("%v while item %d of epoch %d at %s is %+v", mv, n, epoch, id, rec)
			}
		}
	}
	for n := range w.totals[epoch] {
		if f := w.floor[itemOf{epoch, n}]; !w.delayed && f.Before(w.base.Through) {
			w.Fatalf("%v while item %d of epoch %d is at %v, and the base at %v", mv, n, epoch, f, w.base.Through)
		}
	}
}

// checkWrite: something changes; what runs with a living owner stays as it is.
func (w *world) checkWrite(p *Plan, m *instance, x Write) {
	l := x.ledger()
	if m.Ledger.Equal(l) && len(m.Ledger.Pages()) >= len(l.Pages()) {
		w.Fatalf("%s is written without a change", m.ID)
	}
	for n, rec := range m.Ledger.All() {
		if !rec.Running() || m.State == Dead {
			continue
		}
		now, has := l.Get(n)
		now.Bound = rec.Bound // whose it is, whoever runs it
		if now.Leaving = rec.Leaving; !has || now != rec || l.Epoch != m.Ledger.Epoch {
			w.Fatalf("item %d runs at %s and is changed to %+v", n, m.ID, now)
		}
	}
	for n, rec := range l.All() {
		if was, _ := m.Ledger.Get(n); rec.Running() && !was.Running() {
			w.Fatalf("item %d does not run and is written as running", n)
		}
	}
	if p.before[m.ID].State == Astray {
		w.Fatalf("%s is astray and written", m.ID)
	}
}

func (w *world) owner(epoch, n int) *instance {
	for _, m := range w.members {
		held := m.ledger()
		if _, has := held.Get(n); has && held.Epoch == epoch {
			return m
		}
	}
	return nil
}

// check is what holds at every moment.
func (w *world) check() {
	owner := map[itemOf]string{}
	for id, m := range w.members {
		held := m.ledger()
		for n, rec := range held.All() {
			k := itemOf{held.Epoch, n}
			if other, twice := owner[k]; twice {
				w.Fatalf("item %d of epoch %d stands in the ledgers of %s and %s", n, k.epoch, id, other)
			}
			owner[k] = id
			floor, known := w.floor[k]
			if !known && !rec.Through.Equal(w.base.Through) {
				w.Fatalf("item %d of epoch %d starts at %v, its base is %+v", n, k.epoch, rec.Through, w.base)
			}
			if known && !rec.Through.Equal(floor) {
				w.Fatalf("item %d of epoch %d went from %v to %v", n, k.epoch, floor, rec.Through)
			}
			w.floor[k] = rec.Through
		}
	}
}

// lead is a leader that derives, writes some steps while others act, and is gone.
func (w *world) lead(t *rapid.T) {
	p, steps := w.derive(drawRoom(t))
	w.tellAll(p)
	for _, s := range steps[:rapid.IntRange(0, len(steps)).Draw(t, "steps")] {
		if !w.commit(p, s) {
			return
		}
		if rapid.Float64().Draw(t, "meanwhile") < 0.3 {
			w.some(rapid.SampledFrom([]string{"begin", "end", "account", "die", "stray"}).Draw(t, "what"))
		}
	}
}

// tellAll tells what the plan takes out of the ledgers of the dead.
func (w *world) tellAll(p *Plan) {
	for _, c := range p.Tell {
		w.tell(itemOf{c.Epoch, c.Item}, c.Note)
	}
}

// some does something that may find nobody to do it.
func (w *world) some(what string) {
	can := map[string]bool{"die": true, "stray": true}
	for _, m := range w.members {
		can["begin"] = can["begin"] || len(w.may(m, w.begins)) > 0
		can["end"] = can["end"] || len(w.may(m, runs)) > 0
		can["account"] = can["account"] || len(w.may(m, w.accounts)) > 0
	}
	if len(w.ids(works)) > 0 && can[what] {
		map[string]func(*rapid.T){"begin": w.begin, "end": w.end, "account": w.account, "die": w.die, "stray": w.stray}[what](w.T)
	}
}

// settle lets leaders follow one another, and owners do what they owe, until nothing is
// left to do.
func (w *world) settle(t *rapid.T) {
	r := drawRoom(t)
	for _, id := range w.ids(func(m *instance) bool { return m.kept != nil && m.State != Dead }) {
		w.anew(w.members[id])
	}
	for round := range 40 {
		p, steps := w.derive(r)
		w.tellAll(p)
		for _, s := range steps {
			if !w.commit(p, s) {
				t.Fatalf("stale, with nobody else writing")
			}
		}
		if len(steps) == 0 && !w.calm() {
			w.checkSettled()
			return
		}
		if round == 39 {
			t.Fatalf("does not settle: %+v\n%s", p, w.dump())
		}
	}
}

func (w *world) dump() string {
	out := ""
	for id, m := range w.members {
		out += id + " " + string(rune('0'+m.State)) + " "
		if m.Ledger != nil {
			out += string(m.Ledger.Encode())
		}
		out += "\n"
	}
	return out
}

// calm ends what runs and accounts for what is owed; it reports whether anything was.
func (w *world) calm() bool {
	did := false
	for _, id := range w.ids(works) {
		m := w.members[id]
		again := func(_ *ledger.Ledger, rec ledger.Item) bool { return rec.Redo.Owed() && w.begins(m.Ledger, rec) }
		for _, n := range w.may(m, again) {
			w.beginItem(m, n)
			did = true
		}
		for _, n := range w.may(m, runs) {
			w.endItem(m, n)
			did = true
		}
		for _, n := range w.may(m, w.accounts) {
			w.accountItem(m, n)
			did = true
		}
	}
	return did
}

func (w *world) checkSettled() {
	ids := w.ids(func(m *instance) bool { return works(m) && m.Eligible })
	if len(ids) == 0 {
		return
	}
	if w.base.To != w.total || !w.base.Assigned {
		w.Fatalf("the base is %+v, and %d are wanted", *w.base, w.total)
	}
	owned := map[string][]int{}
	for n := range w.total {
		m := w.owner(w.base.Epoch, n)
		if m == nil || (!m.Eligible && !w.static) {
			w.Fatalf("item %d has no owner", n)
		}
		w.checkBound(m, n)
		owned[m.ID] = append(owned[m.ID], n)
	}
	for id, m := range w.members {
		if (m.State == Dead && !w.static) || (m.Ledger.Len() > 0 && m.Ledger.Epoch != w.base.Epoch) {
			w.Fatalf("the ledger of %s is left: %s", id, m.Ledger.Encode())
		}
		for n, rec := range m.Ledger.All() {
			if rec.Leaving || m.Ledger.Held {
				w.Fatalf("%s cannot begin item %d: %+v", id, n, rec)
			}
		}
	}
	want := w.assign(ids, w.total, owned)
	maps.DeleteFunc(want, func(_ string, items []int) bool { return len(items) == 0 })
	if diff := cmp.Diff(want, owned); diff != "" && !w.static {
		w.Fatalf("not what the strategy wants:\n%s", diff)
	}
	for f, told := range w.cut {
		if !told {
			w.Fatalf("%v was cut, and nobody was told", f)
		}
	}
}

// checkBound: an item is at its own instance, but where that is away, or may begin nothing. Then
// nothing of it is owed.
func (w *world) checkBound(m *instance, n int) {
	rec, _ := m.Ledger.Get(n)
	if !w.static {
		if rec.Lent() {
			w.Fatalf("item %d is lent to %s: %+v", n, m.ID, rec)
		}
		return
	}
	if m.State == Alive && !rec.Lent() {
		return
	}
	name := rec.Bound
	if name == "" {
		name = stable(m.ID)
	}
	home := w.ids(func(m *instance) bool { return works(m) && m.Eligible && stable(m.ID) == name })
	if len(home) > 0 || rec.Running() || rec.Redo.Owed() || (m.State == Dead && rec.Told != (ledger.Told{})) {
		w.Fatalf("item %d of %s is at %s, and %v are there: %+v", n, name, m.ID, home, rec)
	}
}

// Whatever happens, and wherever leaders are killed, the state is whole at every moment
// and settles. Findings 2 and 9.
func TestEveryPrefixOfTheStepsIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"tick": w.tick, "begin": w.begin, "end": w.end, "account": w.account, "giveBack": w.giveBack,
			"die": w.die, "join": w.join, "stray": w.stray, "again": w.back, "toggle": w.toggle, "total": w.retotal, "bind": w.bind,
			"lead": w.lead, "lead2": w.lead, "lead3": w.lead, "lead4": w.lead, "settle": w.settle,
			"": func(*rapid.T) { w.check() },
		})
		w.settle(t)
	})
}
