package sharding

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/core/internal/ledger"
)

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
		p, steps := w.derive(maxOps)
		for _, s := range steps {
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
		_, steps := w.derive(4)
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
