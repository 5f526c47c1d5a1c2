package sharding

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// Two registrations of the instance a, and one of two others.
const (
	a1 = "10.0.0.1@-@a-1"
	a2 = "10.0.0.2@-@a-2"
	b1 = "10.0.0.3@-@b-1"
	c1 = "10.0.0.4@-@c-1"
)

// With static sharding an item stays with its instance, and what that ran when it died is lent.
func TestStaticPlans(t *testing.T) {
	in := func(total int) *layout.Base { return base(1, 0, total, 2, true) }
	e := func(total int, its items) *ledger.Ledger { return led(1, total, its) }
	fresh := func() *ledger.Ledger { return led(0, 0, nil) }
	owes := func(lost string, tries int, bound string) ledger.Item {
		return ledger.Item{Through: at(5), Redo: ledger.Redo{Due: at(5), Lost: lost, Tries: tries}, Bound: bound}
	}
	runs := func(tries int, bound string) ledger.Item {
		return ledger.Item{Through: at(5), Run: at(5), Redo: ledger.Redo{Lost: a1, Tries: tries}, Bound: bound}
	}
	lent := ledger.Item{Through: at(5), Bound: "a"}
	partingLent := runs(1, "a")
	partingLent.Leaving = true
	tired := ledger.Item{Through: at(5), Bound: "a", Told: ledger.Told{}.With(ledger.Note{Due: at(5), Instance: b1, Reason: string(event.CutTries)})}
	for _, tt := range []struct {
		planCase
		away        []int
		tell        int
		noted, over bool // over: without failover
	}{
		{planCase: planCase{"who joins gets nothing", in(2), 2, to(b1, b1), []Member{on(a1, e(2, items{0: idle, 1: busy})), on(b1, fresh())}, want{}}},
		{planCase: planCase{"a mark is taken back", in(1), 1, to(b1), []Member{on(a1, e(1, items{0: parting})), on(b1, fresh())}, want{
			Written: map[string]*ledger.Ledger{a1: e(1, items{0: busy})},
		}}},
		{planCase: planCase{"a disabled owner keeps them", in(1), 1, to(b1), []Member{off(a1, e(1, items{0: idle})), on(b1, fresh())}, want{}}, away: []int{0}},
		{planCase: planCase{"a dead owner keeps what it does not run", in(2), 2, to(b1, b1), []Member{dead(a1, e(2, items{0: idle, 1: leaving})), on(b1, fresh())}, want{
			Written: map[string]*ledger.Ledger{a1: e(2, items{0: idle, 1: idle})},
		}}, away: []int{0, 1}},
		{planCase: planCase{"a dead owner's hold is over too", in(1), 1, to(b1), []Member{dead(a1, held(e(1, items{0: idle}))), on(b1, fresh())}, want{
			Written: map[string]*ledger.Ledger{a1: e(1, items{0: idle})},
		}}, away: []int{0}},
		{planCase: planCase{"what it ran is lent", in(2), 2, to(b1, b1), []Member{dead(a1, e(2, items{0: idle, 1: busy})), on(b1, fresh())}, want{
			Moves:   []Move{{1, a1, b1}},
			Written: map[string]*ledger.Ledger{a1: e(2, items{0: idle}), b1: e(2, items{1: owes(a1, 1, "a")})},
		}}, away: []int{0, 1}},
		{planCase: planCase{"to whoever has least, in turn", in(4), 4, nil, []Member{
			dead(a1, e(4, items{0: busy, 1: busy, 2: busy})), on(b1, e(4, items{3: idle})), on(c1, fresh()),
		}, want{
			Moves: []Move{{0, a1, c1}, {1, a1, b1}, {2, a1, c1}}, Drop: []string{a1},
			Written: map[string]*ledger.Ledger{
				a1: nil, b1: e(4, items{1: owes(a1, 1, "a"), 3: idle}), c1: e(4, items{0: owes(a1, 1, "a"), 2: owes(a1, 1, "a")}),
			},
		}}, away: []int{0, 1, 2}},
		{planCase: planCase{"without failover it is cut where it stands, first", in(1), 1, to(b1), []Member{dead(a1, e(1, items{0: busy})), on(b1, fresh())}, want{
			Written: map[string]*ledger.Ledger{a1: e(1, items{0: noted(a1)})},
		}}, away: []int{0}, noted: true, over: true},
		{planCase: planCase{"and told then", in(1), 1, to(b1), []Member{dead(a1, e(1, items{0: noted(a1)})), on(b1, fresh())}, want{
			Written: map[string]*ledger.Ledger{a1: e(1, items{0: idle})},
		}}, away: []int{0}, tell: 1, over: true},
		{planCase: planCase{"the owner is back", in(2), 2, to(b1, b1), []Member{dead(a1, e(2, items{0: idle, 1: noted(a1)})), on(a2, fresh()), on(b1, fresh())}, want{
			Moves: []Move{{0, a1, a2}, {1, a1, a2}}, Drop: []string{a1},
			Written: map[string]*ledger.Ledger{a1: nil, a2: e(2, items{0: idle, 1: noted(a1)})},
		}}},
		{planCase: planCase{"it is back at once: nothing is lent", in(1), 1, to(b1), []Member{dead(a1, e(1, items{0: busy})), on(a2, fresh()), on(b1, fresh())}, want{
			Moves: []Move{{0, a1, a2}}, Drop: []string{a1}, Written: map[string]*ledger.Ledger{a1: nil, a2: e(1, items{0: owes(a1, 1, "")})},
		}}},
		{planCase: planCase{"it is back, and disabled", in(2), 2, to(b1, b1), []Member{dead(a1, e(2, items{0: idle, 1: busy})), off(a2, fresh()), on(b1, fresh())}, want{
			Moves:   []Move{{1, a1, b1}},
			Written: map[string]*ledger.Ledger{a1: e(2, items{0: idle}), b1: e(2, items{1: owes(a1, 1, "a")})},
		}}, away: []int{0, 1}},
		{planCase: planCase{"two of its name: the one that has less", in(2), 2, nil, []Member{
			dead(a1, e(2, items{0: idle})), on(a2, e(2, items{1: idle})), on("10.0.0.9@-@a-9", fresh()),
		}, want{
			Moves: []Move{{0, a1, "10.0.0.9@-@a-9"}}, Drop: []string{a1},
			Written: map[string]*ledger.Ledger{a1: nil, "10.0.0.9@-@a-9": e(2, items{0: idle})},
		}}},
		{planCase: planCase{"what is lent waits, runs, and has ended: it stays", in(3), 3, to(c1, c1, c1), []Member{
			on(b1, e(3, items{0: owes(a1, 1, "a"), 1: runs(1, "a"), 2: lent})), on(c1, fresh()),
		}, want{}}, away: []int{0, 1, 2}},
		{planCase: planCase{"the owner is back: it gets all but what runs", in(3), 3, nil, []Member{
			on(b1, e(3, items{0: owes(a1, 1, "a"), 1: runs(1, "a"), 2: lent})), on(a2, fresh()),
		}, want{
			Moves: []Move{{0, b1, a2}, {2, b1, a2}}, Waiting: []int{1},
			Written: map[string]*ledger.Ledger{b1: e(3, items{1: partingLent}), a2: e(3, items{0: owes(a1, 1, ""), 2: idle})},
		}}},
		{planCase: planCase{"and is gone again before that has ended", in(1), 1, nil, []Member{on(b1, e(1, items{0: partingLent})), on(c1, fresh())}, want{
			Written: map[string]*ledger.Ledger{b1: e(1, items{0: runs(1, "a")})},
		}}, away: []int{0}},
		{planCase: planCase{"a borrower that may begin nothing", in(3), 3, nil, []Member{
			off(b1, e(3, items{0: owes(a1, 1, "a"), 1: runs(1, "a"), 2: lent})), on(c1, fresh()),
		}, want{
			Moves:   []Move{{0, b1, c1}},
			Written: map[string]*ledger.Ledger{b1: e(3, items{1: runs(1, "a"), 2: lent}), c1: e(3, items{0: owes(a1, 1, "a")})},
		}}, away: []int{0, 1, 2}},
		{planCase: planCase{"a borrower dies", in(3), 3, nil, []Member{
			dead(b1, e(3, items{0: owes(a1, 1, "a"), 1: runs(1, "a"), 2: lent})), on(c1, fresh()),
		}, want{
			Moves: []Move{{0, b1, c1}, {1, b1, c1}},
			Written: map[string]*ledger.Ledger{
				b1: e(3, items{2: lent}), c1: e(3, items{0: owes(a1, 1, "a"), 1: owes(b1, 2, "a")}),
			},
		}}, away: []int{0, 1, 2}},
		{planCase: planCase{"the third death of a fire", in(1), 1, nil, []Member{dead(b1, e(1, items{0: runs(2, "a")})), on(c1, fresh())}, want{
			Written: map[string]*ledger.Ledger{b1: e(1, items{0: tired})},
		}}, away: []int{0}, noted: true},
		{planCase: planCase{"owner and borrower were dead, and the owner is back", in(2), 2, nil, []Member{
			dead(b1, e(2, items{0: runs(1, "a"), 1: lent})), on(a2, fresh()), on(c1, fresh()),
		}, want{
			Moves: []Move{{0, b1, a2}, {1, b1, a2}}, Drop: []string{b1},
			Written: map[string]*ledger.Ledger{b1: nil, a2: e(2, items{0: owes(b1, 2, ""), 1: idle})},
		}}},
		{planCase: planCase{"nobody eligible", in(1), 1, nil, []Member{dead(a1, e(1, items{0: busy})), off(b1, fresh())}, want{}}},
		{planCase: planCase{"who is astray keeps its items", in(1), 1, to(b1), []Member{astray(a1, e(1, items{0: busy})), on(b1, fresh())}, want{}}},
		{planCase: planCase{"a new epoch is the strategy's", base(2, 1, 2, 5, false), 2, to(b1, c1), []Member{on(b1, fresh()), on(c1, fresh())}, want{
			Base: base(2, 1, 2, 5, true), Moves: []Move{{0, "", b1}, {1, "", c1}},
			Written: map[string]*ledger.Ledger{b1: led(2, 2, items{0: idle}), c1: led(2, 2, items{1: idle})},
		}}},
		{planCase: planCase{"the epoch ends: nothing is lent or bound any more", base(2, 1, 1, 7, false), 1, nil, []Member{
			dead(a1, e(3, items{0: idle})), on(b1, held(e(3, items{1: lent, 2: owes(a1, 1, "a")}))),
		}, want{
			Moves: []Move{{0, a1, b1}}, Held: []string{b1}, Drop: []string{a1},
			Written: map[string]*ledger.Ledger{a1: nil, b1: until(e(3, items{0: idle, 1: idle, 2: owes(a1, 1, "")}), 7)},
		}}},
		{planCase: planCase{"the epoch ends with a borrower dead", base(2, 1, 1, 7, false), 1, nil, []Member{
			dead(b1, held(e(1, items{0: runs(1, "a")}))), on(c1, fresh()),
		}, want{
			Moves: []Move{{0, b1, c1}}, Held: []string{c1}, Drop: []string{b1},
			Written: map[string]*ledger.Ledger{b1: nil, c1: until(e(1, items{0: owes(b1, 2, "")}), 7)},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.assign == nil {
				tt.assign = to()
			}
			var v View
			tt.run(t, func(w *View) {
				w.Static, w.Failover = true, !tt.over
				v = *w
			})
			p := Derive(v)
			require.Equal(t, tt.away, p.Away)
			require.Len(t, p.Tell, tt.tell)
			require.Equal(t, tt.noted, p.Noted)
		})
	}
}

// Switched off, items move as the strategy wants, those that were lent or bound to the dead too.
func TestStaticShardingSwitchedOff(t *testing.T) {
	in := func(total int) *layout.Base { return base(1, 0, total, 2, true) }
	lent := ledger.Item{Through: at(5), Bound: "a"}
	lentRuns := ledger.Item{Through: at(5), Run: at(5), Bound: "a"}
	e := func(its items) *ledger.Ledger { return led(1, 4, its) }
	planCase{"", in(4), 4, to(b1, c1, c1, c1), []Member{
		dead(a1, e(items{3: idle})), on(b1, e(items{0: lent, 1: lent, 2: lentRuns})), on(c1, led(0, 0, nil)),
	}, want{
		Moves: []Move{{1, b1, c1}, {3, a1, c1}}, Waiting: []int{2}, Drop: []string{a1},
		Written: map[string]*ledger.Ledger{a1: nil, b1: e(items{0: idle, 2: parting}), c1: e(items{1: idle, 3: idle})},
	}}.run(t, func(v *View) { v.Failover = true })
	planCase{"", in(4), 4, to("", "", "", ""), []Member{on(b1, e(items{0: lent, 1: idle, 2: idle, 3: idle}))}, want{
		Written: map[string]*ledger.Ledger{b1: e(items{0: idle, 1: idle, 2: idle, 3: idle})},
	}}.run(t, nil)
}

// Whatever happens, an item stands in one ledger, and one that is bound to an instance is begun
// by no other, but for what runs again.
func TestAStaticPlanSettles(t *testing.T) {
	v := View{Base: base(1, 0, 6, 2, true), Total: 6, Monitor: true, Failover: true, Static: true, Now: at(10), Up: at(2), Assign: scattered}
	v.Members = []Member{
		dead(a1, led(1, 6, items{0: idle, 1: busy, 2: noted(a1)})), on(b1, led(1, 6, items{3: idle, 4: busy})), off(c1, led(1, 6, items{5: parting})),
	}
	for round := range 5 {
		p := Derive(v)
		writes := result(p.Steps(wide()))
		require.Empty(t, p.Lost)
		if len(writes) == 0 {
			require.Positive(t, round)
			require.Equal(t, []int{0, 1, 2, 5}, p.Away)
			rec, _ := p.Record(1, 1)
			require.Equal(t, "a", rec.Bound)
			return
		}
		for i, m := range v.Members {
			if l, written := writes[m.ID]; written {
				v.Members[i].Ledger = l
			}
		}
		stand := map[int]int{}
		for _, m := range v.Members {
			for _, n := range m.Ledger.Numbers() {
				stand[n]++
			}
		}
		for n := range 6 {
			require.Equal(t, 1, stand[n], "item %d", n)
		}
	}
	t.Fatal("does not settle")
}

// What is away is in no round's way; what is to run again holds up its own.
func TestRoundsOfStaticSharding(t *testing.T) {
	idle := ledger.Item{Through: at(5)}
	owner := Member{ID: b1, Ledger: led(1, 2, items{0: idle})}
	for name, c := range map[string]struct {
		rec    ledger.Item
		static bool
		known  bool
	}{
		"bound":                  {idle, true, true},
		"not bound":              {idle, false, false},
		"what it ran is to come": {busy, true, false},
		"it owes":                {ledger.Item{Through: at(5), Redo: ledger.Redo{Due: at(5)}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := View{Static: c.static, Base: base(1, 0, 2, 0, true), Members: []Member{owner, dead(a1, led(1, 2, items{1: c.rec}))}}
			owners, known := v.Rounds()
			require.Equal(t, c.known, known)
			if known {
				require.Equal(t, map[string]ledger.Rounds{b1: owner.Ledger.Rounds()}, owners)
			}
		})
	}
	v := View{Static: true, Base: base(2, 2, 2, 0, false), Members: []Member{owner, dead(a1, led(1, 2, items{1: idle}))}}
	_, known := v.Rounds()
	require.False(t, known, "an epoch that ends is over when others have accounted for it")
}

// A run that somebody asked for waits for nobody who is away; for what begun of it, it does.
func TestWhatARunAwaits(t *testing.T) {
	v := View{
		Base: base(1, 0, 4, 2, true), Total: 4, Monitor: true, Failover: true, Static: true, Now: at(10), Up: at(2), Assign: scattered,
		Members: []Member{
			dead(a1, led(1, 4, items{0: idle, 1: {Through: at(5), Asked: 7}, 2: {Through: at(5), Run: at(6), Request: 7, Asked: 7}})),
			on(b1, led(1, 4, items{3: idle})),
		},
	}
	p := Derive(v)
	require.True(t, p.Awaits(1, 7, map[int]bool{0: true}))
	require.True(t, p.Awaits(1, 8, map[int]bool{0: true, 1: true}))
	for _, n := range []int{1, 2, 3} {
		require.False(t, p.Awaits(1, 7, map[int]bool{0: true, n: true}), n)
	}
	require.False(t, p.Awaits(2, 8, map[int]bool{0: true}), "items of another epoch")
	require.Equal(t, []int{3}, p.Items(b1), "what is lent is not among them")
	require.True(t, slices.ContainsFunc(p.Moves, func(m Move) bool { return m == Move{2, a1, b1} }))
}
