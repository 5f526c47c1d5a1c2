package sharding

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// lead is a leader that derives, writes some steps while members act, and is gone.
func (w *world) lead(t *rapid.T) {
	maxOps := rapid.IntRange(4, 14).Draw(t, "maxOps")
	p := Derive(w.view())
	steps := p.Steps(maxOps, cost)
	if p.Empty() != (len(steps) == 0) {
		t.Fatalf("empty %v, %d steps", p.Empty(), len(steps))
	}
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
	if len(w.eligible()) == 0 && len(s.Moves)+len(s.Ledgers) > 0 && !w.changedMeanwhile() {
		w.Fatalf("written with nobody eligible: %v", s)
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

// changedMeanwhile: eligibility is read once by a leader; what it derived stays valid.
func (w *world) changedMeanwhile() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.members)), func(m *Member) bool { return !m.Live })
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

// checkNotBegun: nothing of the wanted total is assigned while an item of another
// runs with a living owner.
func (w *world) checkNotBegun(s Step) {
	if len(s.Moves) == 0 {
		return
	}
	for _, m := range w.members {
		for n, it := range m.Ledger.Items {
			if m.Live && m.Ledger.Total != w.total && it.Running() {
				w.Fatalf("moves %v while item %d of %d runs", s.Moves, n, m.Ledger.Total)
			}
		}
	}
}

// checkWrite: what runs with a living owner stays as it is but for Leaving, and
// something changes.
func (w *world) checkWrite(m *Member, l *ledger.Ledger) {
	if m.Ledger.Total == l.Total && maps.EqualFunc(m.Ledger.Items, l.Items, same) {
		w.Fatalf("%s is written without a change", m.ID)
	}
	for n, it := range m.Ledger.Items {
		if !it.Running() || !m.Live {
			continue
		}
		now, has := l.Items[n]
		if now.Leaving = it.Leaving; !has || !same(now, it) || l.Total != m.Ledger.Total {
			w.Fatalf("item %d runs at %s and is changed to %+v", n, m.ID, now)
		}
	}
	for n, it := range l.Items {
		if was := m.Ledger.Items[n]; it.Running() && !was.Running() {
			w.Fatalf("item %d does not run and is written as running", n)
		}
	}
}

// checkDropped: no record of the wanted total is lost.
func (w *world) checkDropped(dead *Member) {
	for n := range dead.Ledger.Items {
		if dead.Ledger.Total == w.total && w.owner(n) == nil {
			w.Fatalf("item %d was dropped with %s", n, dead.ID)
		}
	}
}

func (w *world) owner(n int) *Member {
	for _, m := range w.members {
		if _, has := m.Ledger.Items[n]; has && m.Ledger.Total == w.total {
			return m
		}
	}
	return nil
}

// check is what holds at every moment.
func (w *world) check() {
	owner := map[[2]int]string{}
	running := map[int]string{}
	for id, m := range w.members {
		for n, it := range m.Ledger.Items {
			k := [2]int{m.Ledger.Total, n}
			if other, twice := owner[k]; twice {
				w.Fatalf("item %d of %d stands in the ledgers of %s and %s", n, k[0], id, other)
			}
			owner[k] = id
			if it.Through.Before(w.latest[k]) {
				w.Fatalf("item %d of %d went back from %v to %v", n, k[0], w.latest[k], it.Through)
			}
			w.latest[k] = it.Through
			if m.Live && it.Running() {
				running[m.Ledger.Total] = id
			}
		}
	}
	if len(running) > 1 {
		w.Fatalf("items of several totals run: %v", running)
	}
}

// settle lets leaders follow one another until nothing is left to do.
func (w *world) settle(t *rapid.T) {
	maxOps := rapid.IntRange(4, 14).Draw(t, "maxOps")
	for range 50 {
		p := Derive(w.view())
		for _, s := range p.Steps(maxOps, cost) {
			if !w.commit(s, maxOps) {
				t.Fatalf("stale, with nobody else writing")
			}
			w.check()
		}
		if p.Empty() && len(p.Waiting) == 0 {
			w.checkSettled()
			return
		}
		for _, m := range w.members {
			for n, it := range m.Ledger.Items {
				if m.Live && it.Running() && slices.Contains(p.Waiting, n) {
					it.Run = time.Time{}
					w.put(m, n, it)
				}
			}
		}
	}
	t.Fatalf("does not settle: %+v", Derive(w.view()))
}

func (w *world) checkSettled() {
	ids := w.eligible()
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	owners := map[int]string{}
	for id, m := range w.members {
		if !m.Live {
			w.Fatalf("the ledger of %s is left", id)
		}
		for n, it := range m.Ledger.Items {
			if !m.Eligible || m.Ledger.Total != w.total || it.Leaving {
				w.Fatalf("%s still holds item %d of %d: %+v", id, n, m.Ledger.Total, it)
			}
			owners[n] = id
		}
	}
	previous := map[string][]int{}
	for n := range w.total {
		if owners[n] == "" {
			w.Fatalf("item %d has no owner", n)
		}
		previous[owners[n]] = append(previous[owners[n]], n)
	}
	want := w.assign(ids, w.total, previous)
	maps.DeleteFunc(want, func(_ string, items []int) bool { return len(items) == 0 })
	if diff := cmp.Diff(want, previous); diff != "" {
		w.Fatalf("not what the strategy wants:\n%s", diff)
	}
}

// Whatever happens, and wherever leaders are killed, the state is whole at every
// moment and settles.
func TestEveryPrefixOfTheStepsIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"begin": w.begin, "end": w.end, "die": w.die, "join": w.join, "toggle": w.toggle, "total": w.retotal,
			"lead": w.lead, "lead2": w.lead, "lead3": w.lead, "settle": w.settle,
			"": func(*rapid.T) { w.check() },
		})
		w.settle(t)
	})
}

// The same, from one settled state: every prefix of one plan, in turn.
func TestAnyLeaderGoesOnFromAnyPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.settle(t)
		for range 3 {
			w.act(t, "begin")
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				w.act(t, "die")
			case 1:
				w.join(t)
			case 2:
				w.retotal(t)
			default:
				w.act(t, "end")
			}
		}
		steps := Derive(w.view()).Steps(4, cost)
		for k := range len(steps) + 1 {
			fork := w.fork()
			for _, s := range steps[:k] {
				if !fork.commit(s, 4) {
					t.Fatalf("stale, with nobody else writing")
				}
				fork.check()
			}
			fork.settle(t)
		}
	})
}

func (w *world) fork() *world {
	f := *w
	f.members, f.latest = map[string]*Member{}, maps.Clone(w.latest)
	for id, m := range w.members {
		c := *m
		c.Ledger = m.Ledger.Clone()
		f.members[id] = &c
	}
	return &f
}
