package sharding

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

var start = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

type assign = func(ids []string, total int, previous map[string][]int) map[string][]int

func by(s strategy.Strategy) assign {
	return func(ids []string, total int, previous map[string][]int) map[string][]int {
		return s.Assign(strategy.Input{Job: "orders", Instances: ids, Total: total, Previous: previous})
	}
}

// scattered gives each item to whoever its hash says; some get none.
func scattered(ids []string, total int, _ map[string][]int) map[string][]int {
	out := map[string][]int{}
	for n := range total {
		h := fnv.New32()
		fmt.Fprint(h, n, ids)
		id := ids[int(h.Sum32())%len(ids)]
		out[id] = append(out[id], n)
	}
	return out
}

var assigns = map[string]assign{"sticky": by(strategy.Sticky{}), "average": by(strategy.AvgAllocation{}), "scattered": scattered}

// A world is the registry as far as the plan sees it, with owners that act by their
// ledgers alone: they know neither the base nor the wanted total nor each other. A fire
// is due each second of its clock.
type world struct {
	*rapid.T
	members map[string]*instance
	base    *layout.Base
	written registry.Version // of the base
	total   int
	delayed bool
	static  bool
	again   bool // what the dead ran runs again
	clock   int
	up      time.Time
	born    int
	assign  assign

	floor   map[itemOf]time.Time // up to where an item's fires have outcomes
	begun   map[fireOf]bool
	cut     map[fireOf]bool // those of the dead; true once told
	totals  map[int]int     // by epoch
	maximum int             // the total at most
}

type itemOf struct{ epoch, item int }

type fireOf struct {
	itemOf
	due int64
}

// An instance is a member and what it keeps when its ledger is taken from it.
type instance struct {
	Member
	kept *ledger.Ledger
}

// ledger is what the registry holds, or the instance where that was taken from it.
func (m *instance) ledger() *ledger.Ledger {
	if m.Ledger == nil {
		return m.kept
	}
	return m.Ledger
}

func newWorld(t *rapid.T) *world {
	w := &world{
		T: t, members: map[string]*instance{}, floor: map[itemOf]time.Time{}, begun: map[fireOf]bool{},
		cut: map[fireOf]bool{}, totals: map[int]int{}, maximum: 8,
	}
	w.total = rapid.IntRange(1, w.maximum).Draw(t, "total")
	w.delayed = rapid.Float64().Draw(t, "delayed") < 0.25
	w.static, w.again = rapid.Bool().Draw(t, "static"), rapid.Bool().Draw(t, "failover")
	w.assign = assigns[rapid.SampledFrom(slices.Sorted(maps.Keys(assigns))).Draw(t, "strategy")]
	w.up = at(0)
	for range rapid.IntRange(1, 5).Draw(t, "members") {
		w.join(t)
	}
	return w
}

func (w *world) now() time.Time { return at(w.clock) }

func (w *world) tick(*rapid.T) { w.clock++ }

// view is in an order that depends on nothing.
func (w *world) view() View {
	v := View{Total: w.total, Monitor: true, Delayed: w.delayed, Static: w.static, Failover: w.again, Now: w.now(), Up: w.up, Assign: w.assign}
	if w.base != nil {
		b := *w.base
		v.Base = &b
	}
	for _, id := range rapid.Permutation(w.ids(func(*instance) bool { return true })).Draw(w.T, "order") {
		m := w.members[id].Member
		if m.Ledger != nil {
			m.Ledger = m.Ledger.Clone()
		}
		v.Members = append(v.Members, m)
	}
	return v
}

func (w *world) ids(fits func(*instance) bool) []string {
	var ids []string
	for id, m := range w.members {
		if fits(m) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// pick draws an instance that is as it should be.
func (w *world) pick(t *rapid.T, fits func(*instance) bool) *instance {
	ids := w.ids(fits)
	if len(ids) == 0 {
		t.Skip("nobody")
	}
	return w.members[rapid.SampledFrom(ids).Draw(t, "member")]
}

func works(m *instance) bool { return m.State == Alive && m.Ledger != nil }
func alive(m *instance) bool { return m.State != Dead }

func (w *world) join(t *rapid.T) {
	if len(w.members) > 9 {
		t.Skip("enough")
	}
	if len(w.ids(alive)) == 0 {
		w.up = w.now()
	}
	name := fmt.Sprint("web", rapid.IntRange(0, 4).Draw(t, "name"))
	w.put(rapid.Float64().Draw(t, "eligible") < 0.85, name, ledger.New(0, 0))
}

// put registers an instance of a stable name with a ledger.
func (w *world) put(eligible bool, name string, l *ledger.Ledger) {
	w.born++
	id := fmt.Sprintf("10.0.0.%d@-@%s-%d", w.born%7, name, w.born)
	w.members[id] = &instance{Member: Member{ID: id, Eligible: eligible, Ledger: l}}
	l.Anew()
	store(&w.members[id].Member)
}

// die ends a life. One whose ledger is missing registers anew first: else its records
// are gone, and nothing can be promised of them.
func (w *world) die(t *rapid.T) {
	m := w.pick(t, func(m *instance) bool { return alive(m) && m.Ledger != nil })
	m.State, m.Eligible = Dead, false
	for n, rec := range m.Ledger.All() {
		if rec.Running() {
			w.cut[fireOf{itemOf{m.Ledger.Epoch, n}, rec.Run.UnixNano()}] = false
		}
	}
}

// stray takes one of the nodes of a registration away.
func (w *world) stray(t *rapid.T) {
	m := w.pick(t, works)
	m.kept = m.Ledger.Clone()
	m.Eligible = false
	what := rapid.IntRange(0, 3).Draw(t, "missing")
	if what > 0 {
		m.Ledger = nil // missing
	}
	if what != 1 {
		m.State = Astray
	}
}

// back registers anew, with all that the instance has.
func (w *world) back(t *rapid.T) {
	w.anew(w.pick(t, func(m *instance) bool { return m.kept != nil && m.State != Dead }))
}

func (w *world) anew(m *instance) {
	l := m.ledger().Clone() // the leader may have written it since
	for n, rec := range l.All() {
		if rec.Running() {
			rec.Leaving = true
			l.Set(n, rec)
		}
	}
	delete(w.members, m.ID)
	w.put(true, stable(m.ID), l)
}

func (w *world) toggle(t *rapid.T) {
	m := w.pick(t, works)
	m.Eligible = !m.Eligible
}

func (w *world) bind(*rapid.T) { w.static = !w.static }

func (w *world) retotal(t *rapid.T) { w.total = rapid.IntRange(1, w.maximum).Draw(t, "total") }

// may returns the items of an instance with which its owner may do something.
func (w *world) may(m *instance, do func(*ledger.Ledger, ledger.Item) bool) []int {
	var numbers []int
	if works(m) {
		for n, rec := range m.Ledger.All() {
			if do(m.Ledger, rec) {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

// act has an owner do something with one of its items.
func (w *world) act(t *rapid.T, may func(*ledger.Ledger, ledger.Item) bool, do func(m *instance, n int)) {
	m := w.pick(t, func(m *instance) bool { return len(w.may(m, may)) > 0 })
	do(m, rapid.SampledFrom(w.may(m, may)).Draw(t, "item"))
}

// upTo is up to where a ledger lets its owner go on now.
func (w *world) upTo(l *ledger.Ledger) time.Time {
	switch {
	case !l.Held:
		return w.now()
	case l.Until.IsZero(), w.delayed:
		return time.Time{}
	}
	return l.Until
}

func (w *world) begins(l *ledger.Ledger, rec ledger.Item) bool {
	if rec.Redo.Owed() {
		return !rec.Leaving && (!l.Held || !l.Until.IsZero())
	}
	if rec.Lent() {
		return false
	}
	if w.delayed && !l.Held {
		return !rec.Running() && !rec.Leaving
	}
	return !rec.Running() && !rec.Leaving && rec.Through.Before(w.upTo(l))
}

func (w *world) begin(t *rapid.T) { w.act(t, w.begins, w.beginItem) }

func (w *world) beginItem(m *instance, n int) {
	rec, _ := m.Ledger.Get(n)
	w.read(m, n, &rec)
	if rec.Redo.Owed() {
		rec.Run, rec.Redo.Due = rec.Redo.Due, time.Time{}
		w.set(m, n, rec)
		return
	}
	rec.Run = rec.Through.Add(time.Second)
	if w.delayed {
		w.clock++
		rec.Run = later(w.now(), rec.Run)
	}
	f := fireOf{itemOf{m.Ledger.Epoch, n}, rec.Run.UnixNano()}
	if w.begun[f] {
		w.Fatalf("%v begins twice", f)
	}
	w.begun[f] = true
	rec.Through = rec.Run
	w.floor[f.itemOf] = rec.Run
	w.set(m, n, rec)
}

// read has the owner tell the leader's notes, as every commit of it does.
func (w *world) read(m *instance, n int, rec *ledger.Item) {
	for _, note := range rec.Told.Notes() {
		w.tell(itemOf{m.Ledger.Epoch, n}, note)
	}
	rec.Told = ledger.Told{}
}

func (w *world) tell(of itemOf, note ledger.Note) {
	f := fireOf{of, note.Due.UnixNano()}
	if _, is := w.cut[f]; !is {
		w.Fatalf("%v is told as cut by %s, and was not", f, note.Instance)
	}
	w.cut[f] = true
}

func runs(_ *ledger.Ledger, rec ledger.Item) bool { return rec.Running() }

func (w *world) end(t *rapid.T) { w.act(t, runs, w.endItem) }

func (w *world) endItem(m *instance, n int) {
	rec, _ := m.Ledger.Get(n)
	w.read(m, n, &rec)
	if rec.Redo.Tries > 0 {
		w.cut[fireOf{itemOf{m.Ledger.Epoch, n}, rec.Run.UnixNano()}] = true // it has run again
	}
	rec.Run, rec.Redo = time.Time{}, ledger.Redo{}
	w.set(m, n, rec)
}

// giveBack undoes a begin.
func (w *world) giveBack(t *rapid.T) {
	if w.delayed {
		t.Skip("nothing is owed")
	}
	first := func(_ *ledger.Ledger, rec ledger.Item) bool { return rec.Running() && rec.Redo.Tries == 0 }
	w.act(t, first, func(m *instance, n int) {
		rec, _ := m.Ledger.Get(n)
		of := itemOf{m.Ledger.Epoch, n}
		delete(w.begun, fireOf{of, rec.Run.UnixNano()})
		rec.Through, rec.Run = rec.Run.Add(-time.Second), time.Time{}
		w.floor[of] = rec.Through
		w.set(m, n, rec)
	})
}

// accounts: an owner skips what came due, or tells the notes when nothing is owed.
func (w *world) accounts(l *ledger.Ledger, rec ledger.Item) bool {
	last := l.Held && !l.Until.IsZero()
	if rec.Redo.Owed() || rec.Lent() {
		return false
	}
	return !rec.Running() && !rec.Leaving && (!l.Held || last) &&
		(rec.Told != (ledger.Told{}) || (!w.delayed && rec.Through.Before(w.upTo(l))))
}

func (w *world) account(t *rapid.T) { w.act(t, w.accounts, w.accountItem) }

func (w *world) accountItem(m *instance, n int) {
	rec, _ := m.Ledger.Get(n)
	w.read(m, n, &rec)
	rec.Through = later(rec.Through, w.upTo(m.Ledger))
	w.floor[itemOf{m.Ledger.Epoch, n}] = rec.Through
	w.set(m, n, rec)
}

func (w *world) set(m *instance, n int, rec ledger.Item) {
	m.Ledger.Set(n, rec)
	m.Version++
	store(&m.Member)
}
