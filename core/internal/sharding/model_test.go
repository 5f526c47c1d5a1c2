package sharding

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/strategy"
)

var start = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

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

// A world is the registry as far as the plan sees it, with members that act by
// their ledgers alone: they know neither the wanted total nor each other.
type world struct {
	*rapid.T
	members map[string]*Member
	total   int
	up      time.Time
	clock   int
	born    int
	assign  assign
	latest  map[[2]int]time.Time // Through, by total and item
}

func newWorld(t *rapid.T) *world {
	w := &world{T: t, members: map[string]*Member{}, up: start, latest: map[[2]int]time.Time{}}
	w.total = rapid.IntRange(1, 12).Draw(t, "total")
	w.assign = assigns[rapid.SampledFrom(slices.Sorted(maps.Keys(assigns))).Draw(t, "strategy")]
	for range rapid.IntRange(1, 6).Draw(t, "members") {
		w.join(t)
	}
	return w
}

func (w *world) now() time.Time { w.clock++; return start.Add(time.Duration(w.clock) * time.Second) }

// view is in an order that depends on nothing.
func (w *world) view() View {
	v := View{Total: w.total, Up: w.up, Assign: w.assign}
	for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(w.members))).Draw(w.T, "order") {
		m := *w.members[id]
		m.Ledger = m.Ledger.Clone()
		v.Members = append(v.Members, m)
	}
	return v
}

// pick draws a member that is as it should be, or nil.
func (w *world) pick(t *rapid.T, fits func(*Member) bool) *Member {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(w.members)) {
		if fits(w.members[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip("nobody")
	}
	return w.members[rapid.SampledFrom(ids).Draw(t, "member")]
}

func live(m *Member) bool { return m.Live }

func (w *world) join(t *rapid.T) {
	if len(w.members) > 12 {
		t.Skip("enough")
	}
	alive := false
	for _, m := range w.members {
		alive = alive || m.Live
	}
	if !alive {
		w.up = w.now()
	}
	w.born++
	id := fmt.Sprintf("10.0.0.%d@-@web-%d", w.born%7, w.born)
	w.members[id] = &Member{ID: id, Live: true, Eligible: rapid.Float64().Draw(t, "eligible") < 0.9, Ledger: ledger.New(0)}
}

func (w *world) die(t *rapid.T) {
	m := w.pick(t, live)
	m.Live, m.Eligible = false, false
}

func (w *world) toggle(t *rapid.T) {
	m := w.pick(t, live)
	m.Eligible = !m.Eligible
}

func (w *world) retotal(t *rapid.T) { w.total = rapid.IntRange(1, 12).Draw(t, "total") }

// item draws one of the member's items.
func (w *world) item(t *rapid.T, fits func(*Member, ledger.Item) bool) (*Member, int) {
	m := w.pick(t, func(m *Member) bool {
		for _, it := range m.Ledger.Items {
			if m.Live && fits(m, it) {
				return true
			}
		}
		return false
	})
	numbers := slices.DeleteFunc(m.Ledger.Numbers(), func(n int) bool { return !fits(m, m.Ledger.Items[n]) })
	return m, rapid.SampledFrom(numbers).Draw(t, "item")
}

func (w *world) begin(t *rapid.T) {
	m, n := w.item(t, func(_ *Member, it ledger.Item) bool { return !it.Running() && !it.Leaving })
	due := w.now()
	w.put(m, n, ledger.Item{Through: due, Run: due})
}

func (w *world) end(t *rapid.T) {
	m, n := w.item(t, func(_ *Member, it ledger.Item) bool { return it.Running() })
	it := m.Ledger.Items[n]
	it.Run = time.Time{}
	w.put(m, n, it)
}

func (w *world) put(m *Member, n int, it ledger.Item) {
	m.Ledger.Items[n] = it
	m.Version++
}

func cost(item int) int { return 1 + item%2 }

// derive checks what a plan promises of itself.
func (w *world) derive(maxOps int) (*Plan, []Step) {
	p := Derive(w.view())
	steps := p.Steps(maxOps, 1, cost)
	if p.Empty() != (len(steps) == 0) {
		w.Fatalf("empty %v, %d steps", p.Empty(), len(steps))
	}
	var moves []Move
	for _, s := range steps {
		moves = append(moves, s.Moves...)
		if len(w.eligible()) == 0 && len(s.Moves)+len(s.Ledgers) > 0 {
			w.Fatalf("written with nobody eligible: %v", s)
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return a.Item - b.Item })
	if diff := cmp.Diff(p.Moves, moves, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("the steps do not move what the plan does:\n%s", diff)
	}
	return p, steps
}

// lead is a leader that derives, writes some steps while members act, and is gone.
func (w *world) lead(t *rapid.T) {
	maxOps := rapid.IntRange(4, 14).Draw(t, "maxOps")
	_, steps := w.derive(maxOps)
	for _, s := range steps[:rapid.IntRange(0, len(steps)).Draw(t, "steps")] {
		if !w.commit(s, maxOps) {
			return
		}
		w.check()
		if rapid.Float64().Draw(t, "act") < 0.3 {
			w.act(t, rapid.SampledFrom([]string{"begin", "end", "die"}).Draw(t, "what"))
			w.check()
		}
	}
}

// act is an action that may find nothing to act on.
func (w *world) act(t *rapid.T, what string) {
	fits := map[string]func(*Member, ledger.Item) bool{
		"begin": func(_ *Member, it ledger.Item) bool { return !it.Running() && !it.Leaving },
		"end":   func(_ *Member, it ledger.Item) bool { return it.Running() },
		"die":   func(*Member, ledger.Item) bool { return true },
	}[what]
	for _, m := range w.members {
		for _, it := range m.Ledger.Items {
			if m.Live && fits(m, it) {
				map[string]func(*rapid.T){"begin": w.begin, "end": w.end, "die": w.die}[what](t)
				return
			}
		}
	}
}

// commit applies a step as the registry would, and checks what it does.
func (w *world) commit(s Step, maxOps int) bool {
	ops := len(s.Ledgers) + len(s.Drop)
	for _, mv := range s.Moves {
		ops += cost(mv.Item)
	}
	if ops > maxOps || ops == 0 {
		w.Fatalf("a step of %d operations, at most %d", ops, maxOps)
	}
	for _, x := range slices.Concat(s.Ledgers, s.Drop) {
		if m := w.members[x.ID]; m == nil || m.Version != x.Version {
			if m == nil {
				w.Fatalf("%s is written, which is gone", x.ID)
			}
			return false // somebody wrote it meanwhile
		}
	}
	w.checkNotBegun(s)
	for _, x := range s.Ledgers {
		w.checkWrite(w.members[x.ID], x.Ledger)
	}
	for _, x := range s.Ledgers {
		w.members[x.ID].Ledger = x.Ledger.Clone()
		w.members[x.ID].Version++
	}
	for _, x := range s.Drop {
		m := w.members[x.ID]
		if m.Live {
			w.Fatalf("%s lives and is dropped", x.ID)
		}
		delete(w.members, x.ID)
		w.checkDropped(m)
	}
	for _, mv := range s.Moves {
		to, from := w.members[mv.To], w.members[mv.From]
		if _, has := to.Ledger.Items[mv.Item]; !has || to.Ledger.Total != w.total {
			w.Fatalf("%v is not at its new owner", mv)
		}
		if from != nil {
			if _, has := from.Ledger.Items[mv.Item]; has && from.Ledger.Total == w.total && mv.From != mv.To {
				w.Fatalf("%v is still at its owner", mv)
			}
		}
	}
	return true
}

func (w *world) eligible() []string {
	var ids []string
	for id, m := range w.members {
		if m.Live && m.Eligible {
			ids = append(ids, id)
		}
	}
	return ids
}
