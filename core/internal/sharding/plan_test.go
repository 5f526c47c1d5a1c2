package sharding

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

type items = map[int]ledger.Item

var (
	idle    = ledger.Item{Through: at(5)}
	busy    = ledger.Item{Through: at(5), Run: at(5)}
	leaving = ledger.Item{Through: at(5), Leaving: true}
	parting = ledger.Item{Through: at(5), Run: at(5), Leaving: true}
)

// noted is an item whose run at 5 was cut with its owner.
func noted(owner string) ledger.Item {
	return ledger.Item{Through: at(5), Told: ledger.Told{}.With(ledger.Note{Due: at(5), Instance: owner})}
}

func led(epoch, total int, its items) *ledger.Ledger {
	l := ledger.New(epoch, total)
	for n, it := range its {
		l.Set(n, it)
	}
	return l
}

func held(l *ledger.Ledger) *ledger.Ledger {
	l.Held = true
	return l
}

func until(l *ledger.Ledger, s int) *ledger.Ledger {
	l.Until = at(s)
	return held(l)
}

// on is a living, eligible member; off one that may own nothing.
func on(id string, l *ledger.Ledger) Member {
	return Member{ID: id, Eligible: true, Ledger: l, Version: 7}
}

func off(id string, l *ledger.Ledger) Member { return Member{ID: id, Ledger: l, Version: 7} }

func dead(id string, l *ledger.Ledger) Member {
	return Member{ID: id, State: Dead, Ledger: l, Version: 7}
}

func astray(id string, l *ledger.Ledger) Member {
	return Member{ID: id, State: Astray, Ledger: l, Version: 7}
}

// to gives each item to the owner at its index.
func to(owners ...string) assign {
	return func([]string, int, map[string][]int) map[string][]int {
		out := map[string][]int{}
		for n, id := range owners {
			out[id] = append(out[id], n)
		}
		return out
	}
}

func base(epoch, from, to, through int, assigned bool) *layout.Base {
	return &layout.Base{Epoch: epoch, From: from, To: to, Through: at(through), Assigned: assigned}
}

// result is the ledgers after all steps, by id; nil is a dropped one.
func result(steps iter.Seq[Step]) map[string]*ledger.Ledger {
	all := map[string]*ledger.Ledger{}
	for s := range steps {
		for _, x := range s.Ledgers {
			all[x.ID] = x.ledger()
		}
		for _, x := range s.Drop {
			all[x.ID] = nil
		}
	}
	return all
}

func wide() Room {
	return Room{
		Ops: 35, Bytes: 500_000, MaxValue: 256 << 10, LedgerOps: 2, LedgerBytes: 100, MoveBytes: 100,
		MoveOps: func(int) int { return 1 },
	}
}

type want struct {
	Base    *layout.Base
	Moves   []Move
	Waiting []int
	Held    []string
	Drop    []string
	Nudge   []string
	Lost    []int
	Written map[string]*ledger.Ledger
}

type planCase struct {
	name    string
	base    *layout.Base
	total   int
	assign  assign
	members []Member
	want    want
}

func (c planCase) run(t *testing.T, change func(*View)) {
	t.Helper()
	members := slices.Clone(c.members)
	for range 2 { // in both orders
		v := View{Base: c.base, Total: c.total, Monitor: true, Now: at(10), Up: at(2), Members: members, Assign: c.assign}
		if change != nil {
			change(&v)
		}
		p := Derive(v)
		got := want{p.Base, p.Moves, p.Waiting, p.Held, p.Drop, p.Nudge, p.Lost, result(p.Steps(wide()))}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), asText); diff != "" {
			t.Error(diff)
		}
		slices.Reverse(members)
	}
}

// asText compares and shows ledgers as they are written.
var asText = cmp.Transformer("text", func(l *ledger.Ledger) string {
	if l == nil {
		return "dropped"
	}
	return string(l.Encode())
})

// What one epoch wants, in force.
func TestPlans(t *testing.T) {
	in := func(total int) *layout.Base { return base(1, 0, total, 2, true) }
	e := func(total int, its items) *ledger.Ledger { return led(1, total, its) }
	fresh := func() *ledger.Ledger { return led(0, 0, nil) }
	for _, tt := range []planCase{
		{"nothing to do", in(2), 2, to("a", "b"), []Member{on("a", e(2, items{0: idle})), on("b", e(2, items{1: busy}))}, want{}},
		{"who owns nothing need not know the epoch", in(1), 1, to("a"), []Member{on("a", e(1, items{0: idle})), on("b", fresh())}, want{}},
		{"an idle item moves between the living", in(1), 1, to("b"), []Member{on("a", e(1, items{0: idle})), on("b", fresh())}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": e(1, items{}), "b": e(1, items{0: idle})},
		}},
		{"a running one leaves first", in(1), 1, to("b"), []Member{on("a", e(1, items{0: busy})), on("b", fresh())}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"a": e(1, items{0: parting})},
		}},
		{"one that leaves already is waited for", in(1), 1, to("b"), []Member{on("a", e(1, items{0: parting})), on("b", fresh())}, want{
			Waiting: []int{0},
		}},
		{"one that has left moves", in(1), 1, to("b"), []Member{on("a", e(1, items{0: leaving})), on("b", fresh())}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": e(1, items{}), "b": e(1, items{0: idle})},
		}},
		{"a mark is taken back, running", in(1), 1, to("a"), []Member{on("a", e(1, items{0: parting})), on("b", fresh())}, want{
			Written: map[string]*ledger.Ledger{"a": e(1, items{0: busy})},
		}},
		{"a mark is taken back, idle", in(1), 1, to("a"), []Member{on("a", e(1, items{0: leaving}))}, want{
			Written: map[string]*ledger.Ledger{"a": e(1, items{0: idle})},
		}},
		{"notes move along", in(1), 1, to("b"), []Member{on("a", e(1, items{0: noted("x")})), on("b", fresh())}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": e(1, items{}), "b": e(1, items{0: noted("x")})},
		}},
		{"a disabled owner lets go", in(2), 2, to("b", "b"), []Member{off("a", e(2, items{0: idle, 1: busy})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Waiting: []int{1},
			Written: map[string]*ledger.Ledger{"a": e(2, items{1: parting}), "b": e(2, items{0: idle})},
		}},
		{"a dead owner's items move at once, cut or not", in(3), 3, to("b", "b", "b"), []Member{
			dead("a", e(3, items{0: busy, 1: parting, 2: leaving})), on("b", fresh()),
		}, want{
			Moves: []Move{{0, "a", "b"}, {1, "a", "b"}, {2, "a", "b"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": e(3, items{0: noted("a"), 1: noted("a"), 2: idle})},
		}},
		{"nobody eligible: nothing moves", in(2), 2, nil, []Member{dead("a", e(2, items{0: busy})), off("b", e(2, items{1: leaving}))}, want{}},
		{"an empty ledger of the dead goes anyway", in(2), 2, nil, []Member{dead("a", e(2, items{})), off("b", e(2, items{0: idle, 1: leaving}))}, want{
			Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil},
		}},
		{"an item that got lost goes on from now", in(2), 2, to("a", "a"), []Member{on("a", e(2, items{0: idle}))}, want{
			Moves: []Move{{1, "", "a"}}, Lost: []int{1}, Written: map[string]*ledger.Ledger{"a": e(2, items{0: idle, 1: {Through: at(10)}})},
		}},
		{"a missing ledger is asked for, and what stands nowhere waits", in(2), 2, to("a", "a"), []Member{on("a", e(2, items{0: idle})), on("b", nil)}, want{
			Nudge: []string{"b"},
		}},
		{"who is astray keeps its items", in(2), 2, to("b", "b"), []Member{astray("a", e(2, items{0: idle, 1: busy})), on("b", fresh())}, want{}},
		{"astray without a ledger: it is asked for, and what stands nowhere waits", in(2), 2, to("b", "b"), []Member{astray("a", nil), on("b", e(2, items{0: idle}))}, want{
			Nudge: []string{"a"},
		}},
		{"a hold is over", in(1), 1, to("a"), []Member{on("a", held(e(1, items{0: idle})))}, want{
			Written: map[string]*ledger.Ledger{"a": e(1, items{0: idle})},
		}},
		{"a strategy that names nobody, or a stranger", in(3), 3, to("a", "", "x"), []Member{on("a", e(3, items{0: idle})), on("b", e(3, items{1: idle, 2: idle}))}, want{}},
		{"a strategy that names nobody for what is leaving", in(1), 1, to(""), []Member{on("a", e(1, items{0: parting}))}, want{
			Written: map[string]*ledger.Ledger{"a": e(1, items{0: busy})},
		}},
		{"a strategy that names nobody for what the dead had", in(1), 1, to(""), []Member{on("a", fresh()), dead("b", e(1, items{0: busy}))}, want{}},
		{"a copy: the living owner wins", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: busy})), on("b", e(1, items{0: idle}))}, want{
			Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil},
		}},
		{"a copy: what runs wins", in(1), 1, to("a"), []Member{on("a", e(1, items{0: {Through: at(9)}})), on("b", e(1, items{0: busy}))}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"a": e(1, items{}), "b": e(1, items{0: parting})},
		}},
		{"a copy: both run", in(1), 1, to("a"), []Member{on("a", e(1, items{0: busy})), on("b", e(1, items{0: busy}))}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"b": e(1, items{0: parting})},
		}},
		{"a copy: the further one wins", in(1), 1, to("a"), []Member{on("a", e(1, items{0: idle})), on("b", e(1, items{0: {Through: at(6)}}))}, want{
			Moves: []Move{{0, "b", "a"}}, Written: map[string]*ledger.Ledger{"a": e(1, items{0: {Through: at(6)}}), "b": e(1, items{})},
		}},
		{"a copy that runs astray is left alone", in(1), 1, to("a"), []Member{on("a", e(1, items{0: idle})), astray("b", e(1, items{0: busy}))}, want{
			Written: map[string]*ledger.Ledger{"a": e(1, items{})},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, nil) })
	}
}

// With failover, what a dead owner ran is owed again by whoever has the item next.
func TestFailoverPlans(t *testing.T) {
	in := func(total int) *layout.Base { return base(1, 0, total, 2, true) }
	e := func(total int, its items) *ledger.Ledger { return led(1, total, its) }
	fresh := func() *ledger.Ledger { return led(0, 0, nil) }
	redo := func(due int, lost string, tries int) ledger.Redo {
		return ledger.Redo{Due: at(due), Lost: lost, Tries: tries}
	}
	ran := func(lost string, tries int) ledger.Item { // it runs again
		return ledger.Item{Through: at(7), Run: at(5), Redo: ledger.Redo{Lost: lost, Tries: tries}}
	}
	owes := func(lost string, tries int) ledger.Item {
		return ledger.Item{Through: at(7), Redo: redo(5, lost, tries)}
	}
	cutAs := func(lost string, why event.CutReason) ledger.Item {
		return ledger.Item{Through: at(7), Told: ledger.Told{}.With(ledger.Note{Due: at(5), Instance: lost, Reason: string(why)})}
	}
	for _, tt := range []planCase{
		{"what ran is owed", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: busy})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: {Through: at(5), Redo: redo(5, "a", 1)}})},
		}},
		{"the second death counts", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: ran("x", 1)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: owes("a", 2)})},
		}},
		{"the third is the last", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: ran("x", 2)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: cutAs("a", event.CutTries)})},
		}},
		{"what waited counts no death", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: owes("x", 2)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: owes("x", 2)})},
		}},
		{"it moves between the living", in(1), 1, to("b"), []Member{on("a", e(1, items{0: owes("x", 1)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Written: map[string]*ledger.Ledger{"a": e(1, items{}), "b": e(1, items{0: owes("x", 1)})},
		}},
		{"nobody eligible: it stays owed", in(1), 1, nil, []Member{dead("a", e(1, items{0: ran("x", 1)})), off("b", fresh())}, want{}},
		{"the next epoch waits for it", base(2, 1, 1, 7, false), 1, to("b"), []Member{on("a", until(held(e(1, items{0: owes("x", 1)})), 7))}, want{
			Held: []string{"a"},
		}},
		{"the epoch ends with its owner dead", base(2, 1, 1, 7, false), 1, to("b"), []Member{dead("a", until(held(e(1, items{0: ran("x", 1)})), 7)), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Held: []string{"b"}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": until(e(1, items{0: owes("a", 2)}), 7)},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, func(v *View) { v.Failover = true }) })
	}
	down := func(cut bool) planCase {
		is := owes("x", 1)
		if cut {
			is = cutAs("x", event.CutLate)
		}
		return planCase{"", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: owes("x", 1)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: is})},
		}}
	}
	for name, c := range map[string]struct {
		up     int
		window time.Duration
		cut    bool
	}{
		"nobody was up, for too long":  {9, 3 * time.Second, true},
		"nobody was up, for a moment":  {9, 5 * time.Second, false},
		"nobody was up, and no window": {9, 0, false},
		"somebody was up":              {4, 3 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			down(c.cut).run(t, func(v *View) { v.Failover, v.Window, v.Up = true, c.window, at(c.up) })
		})
	}
	t.Run("switched off", func(t *testing.T) {
		planCase{"", in(1), 1, to("b"), []Member{dead("a", e(1, items{0: owes("x", 1)})), on("b", fresh())}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil, "b": e(1, items{0: cutAs("x", event.CutPlain)})},
		}}.run(t, nil)
	})
}

// A run that was asked for, and is open, does not begin again where nobody knows whether it began: an item whose record
// is new counts all up to now as begun.
func TestNewRecordsCountRunsAsBegun(t *testing.T) {
	for _, assigned := range []bool{false, true} {
		p := Derive(View{
			Base: base(1, 0, 1, 1, assigned), Total: 1, Monitor: true, Now: at(10), Up: at(2), Assign: to("a"), Asked: 7,
			Members: []Member{on("a", led(1, 1, nil))},
		})
		rec, held := p.Record(1, 0)
		require.True(t, held)
		require.EqualValues(t, 7, rec.Asked)
	}
}

// How epochs begin.
func TestBases(t *testing.T) {
	for _, tt := range []planCase{
		{"the first", nil, 3, nil, []Member{on("a", led(0, 0, nil))}, want{Base: base(1, 0, 3, 2, false)}},
		{"the first after ledgers that are empty", nil, 3, nil, []Member{on("a", led(4, 2, nil)), dead("b", led(6, 2, nil))}, want{
			Base: base(7, 0, 3, 2, false), Drop: []string{"b"},
		}},
		{"made again from the ledgers", nil, 3, nil, []Member{on("a", led(4, 2, items{0: idle})), on("b", led(4, 2, items{1: {Through: at(4), Run: at(6)}}))}, want{
			Base: base(4, 0, 2, 6, true),
		}},
		{"made again: an epoch before is still owed", nil, 3, nil, []Member{
			on("a", until(led(3, 5, items{0: idle}), 4)), on("b", led(4, 2, items{1: {Through: at(6)}})),
		}, want{Base: base(4, 0, 2, 4, true)}},
		{"one that lags behind the ledgers is made again", base(2, 1, 5, 1, true), 3, nil, []Member{on("a", led(4, 2, items{0: idle}))}, want{
			Base: base(4, 0, 2, 5, true),
		}},
		{"one that is ahead stays, and its items begin", base(3, 1, 1, 1, false), 1, to("a"), []Member{on("a", led(1, 1, nil))}, want{
			Base: base(3, 1, 1, 1, true), Moves: []Move{{0, "", "a"}},
			Written: map[string]*ledger.Ledger{"a": led(3, 1, items{0: {Through: at(1)}})},
		}},
		{"another total before anybody has an item", base(3, 1, 5, 1, false), 2, nil, []Member{off("a", led(2, 1, nil))}, want{Base: base(3, 1, 2, 1, false)}},
		{"another total, and somebody may have an item", base(3, 1, 5, 1, false), 2, nil, []Member{off("a", nil)}, want{Nudge: []string{"a"}}},
		{"another total while items are being given: they are given first", base(3, 1, 2, 1, false), 1, to("a", "a"), []Member{on("a", led(3, 2, items{0: idle}))}, want{
			Base: base(3, 1, 2, 1, true), Moves: []Move{{1, "", "a"}},
			Written: map[string]*ledger.Ledger{"a": led(3, 2, items{0: idle, 1: {Through: at(1)}})},
		}},
		{"items are given while a ledger is missing: they may stand there", base(3, 1, 2, 1, false), 2, to("a", "a"), []Member{on("a", led(3, 2, items{0: idle})), on("b", nil)}, want{
			Nudge: []string{"b"},
		}},
		{"another total holds the living", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", led(1, 2, items{0: busy})), off("b", led(1, 2, items{1: idle})), on("c", led(1, 2, nil)), dead("d", led(1, 2, nil)),
		}, want{
			Held: []string{"a", "b"}, Waiting: []int{0}, Drop: []string{"d"},
			Written: map[string]*ledger.Ledger{"a": held(led(1, 2, items{0: busy})), "b": held(led(1, 2, items{1: idle})), "d": nil},
		}},
		{"one that is not held is waited for", base(1, 0, 2, 1, true), 3, nil, []Member{on("a", held(led(1, 2, items{0: idle}))), on("b", led(1, 2, items{1: idle}))}, want{
			Held: []string{"a", "b"}, Written: map[string]*ledger.Ledger{"b": held(led(1, 2, items{1: idle}))},
		}},
		{"one that is astray is waited for", base(1, 0, 2, 1, true), 3, nil, []Member{on("a", held(led(1, 2, items{0: idle}))), astray("b", held(led(1, 2, items{1: idle})))}, want{
			Held: []string{"a"},
		}},
		{"one whose ledger is missing is waited for", base(1, 0, 2, 1, true), 3, nil, []Member{on("a", held(led(1, 2, items{0: idle}))), on("b", nil)}, want{
			Held: []string{"a"}, Nudge: []string{"b"},
		}},
		{"all held: the epoch ends at the latest run", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", held(led(1, 2, items{0: {Through: at(6), Run: at(7)}}))), dead("b", led(1, 2, items{1: idle})),
		}, want{Base: base(2, 2, 3, 7, false), Held: []string{"a"}, Waiting: []int{0}}},
		{"all held: the epoch ends at the latest record of the dead", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", held(led(1, 2, items{0: idle}))), dead("b", led(1, 2, items{1: {Through: at(8)}})),
		}, want{Base: base(2, 2, 3, 8, false), Held: []string{"a"}}},
		{"all held, and the records of an item got lost: the epoch ends now", base(1, 0, 3, 1, true), 4, to("a", "b", "", ""), []Member{
			on("a", held(led(1, 3, items{0: idle}))), on("b", led(1, 3, items{})),
		}, want{Base: base(2, 3, 4, 10, false), Held: []string{"a"}, Lost: []int{1}}},
		{"all records got lost: the epoch ends now", base(1, 0, 2, 1, true), 3, to("a", "a", ""), []Member{on("a", led(1, 2, nil))}, want{
			Base: base(2, 2, 3, 10, false), Lost: []int{0, 1},
		}},
		{"all records got lost, and nobody is eligible", base(1, 0, 2, 1, true), 3, nil, []Member{off("a", led(1, 2, nil))}, want{
			Base: base(2, 2, 3, 10, false), Lost: []int{0, 1},
		}},
		{"a record got lost where another's is later than now", base(1, 0, 2, 1, true), 3, to("a", "a", ""), []Member{
			on("a", held(led(1, 2, items{0: {Through: at(12)}}))),
		}, want{Base: base(2, 2, 3, 12, false), Held: []string{"a"}, Lost: []int{1}}},
		{"an item that is given to nobody is not lost", base(1, 0, 3, 1, true), 4, to("a", "a", "", ""), []Member{
			on("a", held(led(1, 3, items{0: idle, 1: idle}))),
		}, want{Base: base(2, 3, 4, 5, false), Held: []string{"a"}}},
		{"all are dead", base(1, 0, 2, 1, true), 3, nil, []Member{dead("b", led(1, 2, items{0: idle, 1: idle}))}, want{Base: base(2, 2, 3, 5, false)}},
		{"no epoch ends before it began", base(1, 0, 1, 9, true), 3, nil, []Member{on("a", held(led(1, 1, items{0: idle})))}, want{
			Base: base(2, 1, 3, 9, false), Held: []string{"a"},
		}},
		{"a clock far ahead does not count, and what it ran was until now", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", held(led(1, 2, items{0: idle, 1: {Through: at(10).Add(ledger.Believable)}}))),
		}, want{Base: base(2, 2, 3, 10, false), Held: []string{"a"}}},
		{"one beside what was recorded later than now", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", held(led(1, 2, items{0: {Through: at(12)}, 1: {Through: at(10).Add(ledger.Believable)}}))),
		}, want{Base: base(2, 2, 3, 12, false), Held: []string{"a"}}},
		{"nearly so far counts", base(1, 0, 2, 1, true), 3, nil, []Member{
			on("a", held(led(1, 2, items{0: idle, 1: {Through: at(9).Add(ledger.Believable)}}))),
		}, want{Base: &layout.Base{Epoch: 2, From: 2, To: 3, Through: at(9).Add(ledger.Believable)}, Held: []string{"a"}}},
		{"an epoch that began far ahead ends now, where records were set back", &layout.Base{Epoch: 1, To: 2, Through: at(20).Add(ledger.Believable), Assigned: true}, 3, nil, []Member{
			on("a", held(led(1, 2, items{0: {Through: at(8)}, 1: {Through: at(20).Add(ledger.Believable)}}))),
		}, want{Base: base(2, 2, 3, 10, false), Held: []string{"a"}}},
		{"all clocks were far ahead: they count", base(1, 0, 1, 1, true), 3, nil, []Member{
			on("a", held(led(1, 1, items{0: {Through: at(10).Add(ledger.Believable)}}))),
		}, want{Base: &layout.Base{Epoch: 2, From: 1, To: 3, Through: at(10).Add(ledger.Believable)}, Held: []string{"a"}}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, nil) })
	}
	known := base(4, 5, 2, 1, true) // the base as it was seen last
	for _, tt := range []planCase{
		{"made again as it was", nil, 3, nil, []Member{on("a", led(4, 2, items{0: idle})), on("b", led(4, 2, items{1: {Through: at(4), Run: at(6)}}))}, want{Base: known}},
		{"made again as it was: all ledgers are missing too", nil, 3, nil, []Member{on("a", nil)}, want{Base: known, Nudge: []string{"a"}}},
		{"made again as it was: the epoch before is still owed", nil, 3, nil, []Member{on("a", until(led(3, 5, items{0: idle}), 1))}, want{Base: known}},
		{"one of an epoch before is written over", base(2, 1, 5, 1, true), 3, nil, []Member{on("a", led(4, 2, items{0: idle}))}, want{Base: known}},
		{"the ledgers know of a later epoch", nil, 3, nil, []Member{on("a", led(5, 3, items{0: idle}))}, want{Base: base(5, 0, 3, 5, true)}},
		{"the ledgers know of another total", nil, 3, nil, []Member{on("a", led(4, 3, items{0: idle}))}, want{Base: base(4, 0, 3, 5, true)}},
		{"one that is in force stays", base(4, 5, 2, 3, true), 2, to("a", "a"), []Member{on("a", led(4, 2, items{0: idle, 1: idle}))}, want{}},
		{"one of a later epoch stays", base(5, 2, 3, 3, true), 3, to("a", "a", "a"), []Member{on("a", led(5, 3, items{0: idle, 1: idle, 2: idle}))}, want{}},
	} {
		t.Run("known: "+tt.name, func(t *testing.T) {
			tt.run(t, func(v *View) { v.Known = func() *layout.Base { b := *known; return &b } })
		})
	}
	t.Run("none is known", func(t *testing.T) {
		planCase{base: nil, total: 3, members: []Member{on("a", led(0, 0, nil))}, want: want{Base: base(1, 0, 3, 2, false)}}.run(
			t, func(v *View) { v.Known = func() *layout.Base { return nil } })
	})
	t.Run("a fixed delay waits for what runs", func(t *testing.T) {
		running := on("a", held(led(1, 1, items{0: busy})))
		planCase{base: base(1, 0, 1, 1, true), total: 3, members: []Member{running}, want: want{
			Held: []string{"a"}, Waiting: []int{0},
		}}.run(t, func(v *View) { v.Delayed = true })
	})
	t.Run("without records an epoch ends when all have heard of it", func(t *testing.T) {
		planCase{base: base(1, 0, 1, 1, true), total: 3, members: []Member{on("a", held(led(1, 1, items{0: idle})))}, want: want{
			Base: base(2, 1, 3, 12, false), Held: []string{"a"},
		}}.run(t, func(v *View) { v.Monitor = false })
	})
}

// How epochs end: base 2 is in force, from 9 on, and items of epoch 1 stand in ledgers.
func TestEnds(t *testing.T) {
	in := base(2, 3, 2, 9, false)
	e1 := func(its items) *ledger.Ledger { return led(1, 3, its) }
	over := ledger.Item{Through: at(9)}
	for _, tt := range []planCase{
		{"owners are told up to where", in, 2, nil, []Member{on("a", held(e1(items{0: idle, 1: busy}))), on("b", held(e1(items{2: over})))}, want{
			Held: []string{"a"}, Waiting: []int{1},
			Written: map[string]*ledger.Ledger{"a": until(e1(items{0: idle, 1: busy}), 9), "b": until(e1(items{2: over}), 9)},
		}},
		{"told, and it owes", in, 2, nil, []Member{on("a", until(e1(items{0: idle}), 9))}, want{Held: []string{"a"}}},
		{"what has the mark of leaving stays, or it could not be accounted for", in, 2, nil, []Member{on("a", held(e1(items{0: leaving, 1: parting})))}, want{
			Held: []string{"a"}, Waiting: []int{1}, Written: map[string]*ledger.Ledger{"a": until(e1(items{0: idle, 1: busy}), 9)},
		}},
		{"an item that has a note owes", in, 2, nil, []Member{on("a", until(e1(items{0: {Through: at(9), Told: noted("x").Told}}), 9))}, want{Held: []string{"a"}}},
		{"one astray is waited for", in, 2, to("b", "b"), []Member{astray("a", e1(items{0: over})), on("b", led(0, 0, nil))}, want{}},
		{"one whose ledger is missing is waited for", in, 2, to("b", "b"), []Member{on("a", nil), on("b", e1(items{0: over}))}, want{
			Nudge: []string{"a"}, Written: map[string]*ledger.Ledger{"b": until(e1(items{0: over}), 9)},
		}},
		{"the dead leave what they owe, with notes, to all in turn", in, 2, nil, []Member{
			dead("a", held(e1(items{0: busy, 1: idle, 2: leaving}))), on("b", led(0, 0, nil)), on("c", led(2, 2, nil)), off("d", led(0, 0, nil)),
		}, want{
			Moves: []Move{{0, "a", "b"}, {1, "a", "c"}, {2, "a", "b"}}, Drop: []string{"a"}, Held: []string{"b", "c"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": until(e1(items{0: noted("a"), 2: idle}), 9), "c": until(e1(items{1: idle}), 9)},
		}},
		{"to somebody who owes of it as well", in, 2, nil, []Member{dead("a", e1(items{0: idle})), on("b", held(e1(items{1: busy})))}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"}, Held: []string{"b"}, Waiting: []int{1},
			Written: map[string]*ledger.Ledger{"a": nil, "b": until(e1(items{0: idle, 1: busy}), 9)},
		}},
		{"what the dead have accounted for goes with them", in, 2, to("b", "b"), []Member{dead("a", e1(items{0: over, 1: over, 2: over})), on("b", led(0, 0, nil))}, want{
			Base: base(2, 3, 2, 9, true), Moves: []Move{{0, "", "b"}, {1, "", "b"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": led(2, 2, items{0: over, 1: over})},
		}},
		{"nobody eligible: what the dead owe waits", in, 2, nil, []Member{dead("a", e1(items{0: idle, 1: over})), off("b", led(0, 0, nil))}, want{
			Written: map[string]*ledger.Ledger{"a": e1(items{0: idle})},
		}},
		{"nothing is owed: the next begins at its base", in, 2, to("a", "b"), []Member{
			on("a", until(e1(items{0: over, 1: {Through: at(11)}}), 9)), on("b", led(0, 0, nil)), on("c", until(e1(items{2: over}), 9)),
		}, want{
			Base: base(2, 3, 2, 9, true), Moves: []Move{{0, "", "a"}, {1, "", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(2, 2, items{0: over}), "b": led(2, 2, items{1: over}), "c": led(2, 2, nil)},
		}},
		{"nothing is owed, and nobody is eligible", in, 2, nil, []Member{off("a", until(e1(items{0: over, 1: over, 2: over}), 9))}, want{
			Written: map[string]*ledger.Ledger{"a": led(2, 2, nil)},
		}},
		{"the next has begun for some", in, 2, to("a", "b"), []Member{on("a", led(2, 2, items{0: over})), on("b", until(e1(items{2: over}), 9))}, want{
			Base: base(2, 3, 2, 9, true), Moves: []Move{{1, "", "b"}}, Written: map[string]*ledger.Ledger{"b": led(2, 2, items{1: over})},
		}},
		{"a copy of what a living owner owes goes", in, 2, nil, []Member{dead("a", e1(items{0: busy})), on("b", until(e1(items{0: idle}), 9))}, want{
			Held: []string{"b"}, Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil},
		}},
		{"once the next has begun nothing of the dead counts", in, 2, to("b", "c"), []Member{
			dead("a", e1(items{0: idle, 1: idle})), on("b", led(2, 2, items{0: over})), on("c", led(2, 2, nil)),
		}, want{
			Base: base(2, 3, 2, 9, true), Moves: []Move{{1, "", "c"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "c": led(2, 2, items{1: over})},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, nil) })
	}
	t.Run("of a fixed delay nothing is owed but ends and notes", func(t *testing.T) {
		planCase{base: in, total: 2, assign: to("b", "b"), members: []Member{
			on("a", until(e1(items{0: idle}), 9)), on("b", until(e1(items{1: busy}), 9)), dead("c", e1(items{2: idle})),
		}, want: want{
			Held: []string{"b"}, Waiting: []int{1}, Drop: []string{"c"}, Written: map[string]*ledger.Ledger{"c": nil},
		}}.run(t, func(v *View) { v.Delayed = true })
	})
}

// A strategy that forgets an item does not keep the total from changing: the item is
// nobody's.
func TestAnItemThatAStrategyForgetsHoldsNothingUp(t *testing.T) {
	v := View{Base: base(1, 0, 2, 2, false), Total: 2, Monitor: true, Now: at(10), Up: at(2), Assign: to("a", ""), Members: []Member{on("a", led(0, 0, nil))}}
	p := Derive(v)
	require.Equal(t, base(1, 0, 2, 2, true), p.Base)
	v.Base, v.Members = p.Base, []Member{on("a", result(p.Steps(wide()))["a"])}
	p = Derive(v)
	require.Empty(t, slices.Collect(p.Steps(wide())))
	require.Empty(t, p.Lost)
}

// Derive keeps its input, and Steps may be cut again.
func TestAPlanChangesNothingItWasGiven(t *testing.T) {
	v := View{
		Base: base(1, 0, 3, 2, true), Total: 3, Monitor: true, Now: at(10), Up: at(2), Assign: to("b", "b", "a"),
		Members: []Member{dead("c", led(1, 3, items{0: busy})), on("a", led(1, 3, items{1: idle})), on("b", led(1, 3, items{2: idle}))},
	}
	before := fmt.Sprint(v.Base, v.Members[0].Ledger, v.Members[1].Ledger, v.Members[2].Ledger)
	p := Derive(v)
	r := wide()
	r.Ops, r.MaxValue = 5, 100
	first := slices.Collect(p.Steps(r))
	require.Greater(t, len(first), 1)
	require.Empty(t, cmp.Diff(first, slices.Collect(p.Steps(r))))
	require.Equal(t, before, fmt.Sprint(v.Base, v.Members[0].Ledger, v.Members[1].Ledger, v.Members[2].Ledger))
	require.Equal(t, "c", v.Members[0].ID)
}

// Dropped with its last item, or in a step of its own, a ledger of the dead is deleted at
// the version that it has by then.
func TestTheDeadAreDroppedAtTheirLastVersion(t *testing.T) {
	r := wide()
	r.Ops = 5
	p := Derive(View{
		Base: base(1, 0, 4, 2, true), Total: 4, Monitor: true, Now: at(10), Assign: to("b", "b", "b", "b"),
		Members: []Member{dead("a", led(1, 4, items{0: idle, 1: idle, 2: idle, 3: idle})), on("b", led(0, 0, nil))},
	})
	steps := slices.Collect(p.Steps(r))
	last := steps[len(steps)-1]
	require.Len(t, last.Drop, 1)
	writes := 0
	for _, s := range steps {
		for _, x := range s.Ledgers {
			if x.ID == "a" {
				writes++
			}
		}
	}
	require.EqualValues(t, 7+writes, last.Drop[0].Version)
}

// What a dead instance owned comes before what the living give and keep, and waits for nobody's ledger but that
// of who gets it.
func TestOrphansComeFirst(t *testing.T) {
	v := View{
		Total: 5, Base: base(1, 0, 5, 0, true), Assign: to("c", "a", "b", "b", "c"),
		Members: []Member{
			on("a", led(1, 5, items{0: busy, 1: leaving, 2: idle})), on("b", led(1, 5, items{3: leaving})),
			on("c", led(1, 5, nil)), dead("d", led(1, 5, items{4: idle})),
		},
	}
	for _, single := range []bool{false, true} {
		r := wide()
		r.Single = single
		var steps []Step
		for s := range Derive(v).Steps(r) {
			steps = append(steps, s)
		}
		require.Equal(t, Move{Item: 4, From: "d", To: "c"}, steps[0].Moves[0])
		if !single {
			require.Len(t, steps, 1)
			continue
		}
		require.Len(t, steps[0].Moves, 1)
		for _, x := range steps[0].Ledgers {
			require.Contains(t, []string{"c", "d"}, x.ID)
		}
	}
}
