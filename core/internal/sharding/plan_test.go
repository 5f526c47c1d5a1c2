package sharding

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/ledger"
)

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

type items = map[int]ledger.Item

var (
	idle    = ledger.Item{Through: at(5)}
	runs    = ledger.Item{Through: at(5), Run: at(5)}
	leaving = ledger.Item{Through: at(5), Leaving: true}
	parting = ledger.Item{Through: at(5), Run: at(5), Leaving: true}
)

// on is a living, eligible member; off one that may own nothing; dead one without a life.
func on(id string, total int, its items) Member {
	return Member{ID: id, Live: true, Eligible: true, Ledger: &ledger.Ledger{Total: total, Items: its}, Version: 7}
}

func off(id string, total int, its items) Member {
	m := on(id, total, its)
	m.Eligible = false
	return m
}

func dead(id string, total int, its items) Member {
	m := off(id, total, its)
	m.Live = false
	return m
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

// written is the ledgers after all steps, by id; nil is a dropped one.
func written(steps []Step) map[string]*ledger.Ledger {
	all := map[string]*ledger.Ledger{}
	for _, s := range steps {
		for _, x := range s.Ledgers {
			all[x.ID] = x.Ledger
		}
		for _, x := range s.Drop {
			all[x.ID] = nil
		}
	}
	return all
}

func TestPlans(t *testing.T) {
	type want struct {
		Moves   []Move
		Waiting []int
		Drop    []string
		Orphans map[int]time.Time
		Cold    map[int]time.Time
		Written map[string]*ledger.Ledger
	}
	led := func(total int, its items) *ledger.Ledger { return &ledger.Ledger{Total: total, Items: its} }
	tests := []struct {
		name    string
		total   int
		assign  assign
		members []Member
		want    want
	}{
		{"nothing to do", 2, to("a", "b"), []Member{on("a", 2, items{0: idle}), on("b", 2, items{1: runs})}, want{}},
		{"who owns nothing need not know the total", 1, to("a"), []Member{on("a", 1, items{0: idle}), on("b", 0, items{})}, want{}},
		{"a new job starts where it came up", 2, to("a", "b"), []Member{on("a", 0, items{}), on("b", 0, items{})}, want{
			Moves:   []Move{{0, "", "a"}, {1, "", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(2, items{0: {Through: at(2)}}), "b": led(2, items{1: {Through: at(2)}})},
		}},
		{"an idle item moves between the living", 1, to("b"), []Member{on("a", 1, items{0: idle}), on("b", 0, items{})}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(1, items{}), "b": led(1, items{0: idle})},
		}},
		{"a running one leaves first", 1, to("b"), []Member{on("a", 1, items{0: runs}), on("b", 0, items{})}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"a": led(1, items{0: parting})},
		}},
		{"one that leaves already is waited for", 1, to("b"), []Member{on("a", 1, items{0: parting}), on("b", 0, items{})}, want{Waiting: []int{0}}},
		{"one that has left moves", 1, to("b"), []Member{on("a", 1, items{0: leaving}), on("b", 0, items{})}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(1, items{}), "b": led(1, items{0: idle})},
		}},
		{"one that shall stay after all stays", 1, to("a"), []Member{on("a", 1, items{0: parting}), on("b", 0, items{})}, want{
			Written: map[string]*ledger.Ledger{"a": led(1, items{0: runs})},
		}},
		{"a disabled owner lets go", 2, to("b", "b"), []Member{off("a", 2, items{0: idle, 1: runs}), on("b", 0, items{})}, want{
			Moves: []Move{{0, "a", "b"}}, Waiting: []int{1},
			Written: map[string]*ledger.Ledger{"a": led(2, items{1: parting}), "b": led(2, items{0: idle})},
		}},
		{"a dead owner's items move at once, cut or not", 2, to("b", "b"), []Member{dead("a", 2, items{0: runs, 1: parting}), on("b", 0, items{})}, want{
			Moves: []Move{{0, "a", "b"}, {1, "a", "b"}}, Drop: []string{"a"}, Orphans: map[int]time.Time{0: at(5), 1: at(5)},
			Written: map[string]*ledger.Ledger{"a": nil, "b": led(2, items{0: idle, 1: idle})},
		}},
		{"what came due while nobody lived is due to nobody", 3, to("b", "b", "b"), []Member{
			dead("a", 3, items{0: {Through: at(1)}, 1: {Through: at(1), Run: at(1)}, 2: {}}), on("b", 0, items{}),
		}, want{
			Moves: []Move{{0, "a", "b"}, {1, "a", "b"}, {2, "a", "b"}}, Drop: []string{"a"},
			Orphans: map[int]time.Time{1: at(1)}, Cold: map[int]time.Time{0: at(1), 1: at(1)},
			Written: map[string]*ledger.Ledger{"a": nil, "b": led(3, items{0: {Through: at(2)}, 1: {Through: at(2)}, 2: {}})},
		}},
		{"the living keep what they are behind with", 1, to("b"), []Member{on("a", 1, items{0: {Through: at(1)}}), on("b", 0, items{})}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(1, items{}), "b": led(1, items{0: {Through: at(1)}})},
		}},
		{"an item that got lost starts after the latest fire", 2, to("a", "a"), []Member{on("a", 2, items{0: idle})}, want{
			Moves: []Move{{1, "", "a"}}, Written: map[string]*ledger.Ledger{"a": led(2, items{0: idle, 1: idle})},
		}},
		{"nobody eligible: nothing moves", 2, nil, []Member{dead("a", 2, items{0: runs}), off("b", 2, items{1: leaving})}, want{}},
		{"nobody eligible: another total stays in force", 3, nil, []Member{off("b", 2, items{0: idle, 1: runs})}, want{}},
		{"an empty ledger of the dead goes anyway", 2, nil, []Member{dead("a", 2, items{}), off("b", 2, items{1: idle})}, want{
			Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil},
		}},
		{"a changed total waits for what runs, and holds the rest", 1, to("a"), []Member{
			on("a", 2, items{0: idle}), on("b", 2, items{1: runs}), dead("c", 1, items{0: idle}),
		}, want{
			Waiting: []int{1}, Written: map[string]*ledger.Ledger{"a": led(2, items{0: leaving}), "b": led(2, items{1: parting})},
		}},
		{"a changed total, nothing running", 1, to("b"), []Member{on("a", 2, items{0: leaving}), on("b", 2, items{1: {Through: at(9)}})}, want{
			Moves:   []Move{{0, "a", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(1, items{}), "b": led(1, items{0: {Through: at(9)}})},
		}},
		{"a changed total does not wait for the dead", 1, to("b"), []Member{dead("a", 2, items{0: runs}), on("b", 2, items{1: idle})}, want{
			Moves: []Move{{0, "a", "b"}}, Drop: []string{"a"},
			Written: map[string]*ledger.Ledger{"a": nil, "b": led(1, items{0: idle})},
		}},
		{"a total that is changed back in the middle", 2, to("a", "b"), []Member{on("a", 2, items{0: parting}), on("b", 3, items{1: idle})}, want{
			Moves:   []Move{{1, "b", "b"}},
			Written: map[string]*ledger.Ledger{"a": led(2, items{0: runs}), "b": led(2, items{1: idle})},
		}},
		{"a copy from outside: the living owner wins", 1, to("b"), []Member{dead("a", 1, items{0: runs}), on("b", 1, items{0: idle})}, want{
			Drop: []string{"a"}, Written: map[string]*ledger.Ledger{"a": nil},
		}},
		{"a copy from outside: what runs wins", 1, to("a"), []Member{on("a", 1, items{0: {Through: at(9)}}), on("b", 1, items{0: runs})}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"a": led(1, items{}), "b": led(1, items{0: parting})},
		}},
		{"a copy from outside: both run", 1, to("a"), []Member{on("a", 1, items{0: runs}), on("b", 1, items{0: runs})}, want{
			Waiting: []int{0}, Written: map[string]*ledger.Ledger{"b": led(1, items{0: parting})},
		}},
		{"a strategy that forgets an item, or names a stranger", 3, to("a", "", "x"), []Member{on("a", 3, items{0: idle}), on("b", 3, items{1: idle, 2: idle})}, want{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // in both orders
				v := View{Total: tt.total, Members: tt.members, Up: at(2), Assign: tt.assign}
				p := Derive(v)
				steps := p.Steps(36, 1, func(int) int { return 1 })
				require.Equal(t, len(steps) == 0, p.Empty())
				require.LessOrEqual(t, len(steps), 1)
				got := want{p.Moves, p.Waiting, p.Drop, p.Orphans, p.Cold, written(steps)}
				if len(got.Written) == 0 {
					got.Written = nil
				}
				if diff := cmp.Diff(tt.want, got, emptyIsNil); diff != "" {
					t.Error(diff)
				}
				slices.Reverse(tt.members)
			}
		})
	}
}

var emptyIsNil = cmp.FilterValues(func(a, b map[int]time.Time) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

// Derive keeps its input, and Steps may be cut again.
func TestAPlanChangesNothingItWasGiven(t *testing.T) {
	v := View{Total: 2, Up: at(2), Assign: to("b", "b"), Members: []Member{on("a", 3, items{0: idle, 2: idle}), on("b", 3, items{1: idle})}}
	p := Derive(v)
	first := p.Steps(4, 1, cost)
	require.Greater(t, len(first), 1)
	require.Empty(t, cmp.Diff(first, p.Steps(4, 1, cost)))
	require.Equal(t, items{0: idle, 2: idle}, v.Members[0].Ledger.Items)
	require.Equal(t, 3, v.Members[1].Ledger.Total)
}

// More members than fit one commit have running items when the total changes:
// the marks take several commits.
func TestMarksOfManyMembersAreCut(t *testing.T) {
	v := crowd(100, 100)
	for i := range v.Members {
		for n := range v.Members[i].Ledger.Items {
			v.Members[i].Ledger.Items[n] = runs
		}
	}
	v.Total = 50
	p := Derive(v)
	steps := p.Steps(36, 1, cost)
	require.Len(t, steps, 3)
	require.Len(t, written(steps), 100)
	require.Len(t, p.Waiting, 100)
	for _, s := range steps {
		require.LessOrEqual(t, len(s.Ledgers), 36)
	}
}

// A change of total that takes several commits first holds whoever could begin an
// item of the old total between two of them; one that fits one commit does not.
func TestATotalChangedInSeveralCommitsIsHeldFirst(t *testing.T) {
	few := crowd(3, 6)
	few.Total = 5
	require.Len(t, Derive(few).Steps(36, 1, cost), 1)
	many := crowd(50, 100)
	many.Total = 99
	steps := Derive(many).Steps(36, 1, cost)
	held := map[string]bool{}
	for _, s := range steps {
		if len(s.Moves) > 0 {
			require.Len(t, held, 50, "items move before all are held")
			continue
		}
		for _, x := range s.Ledgers {
			for n, it := range x.Ledger.Items {
				require.True(t, it.Leaving || x.Ledger.Total == 99, fmt.Sprint(x.ID, n))
			}
			held[x.ID] = true
		}
	}
	last := written(steps)
	for _, m := range many.Members {
		for _, it := range last[m.ID].Items {
			require.False(t, it.Leaving)
		}
	}
}

// One of 100 members leaves: only the items that move are written, in chunks.
func TestOnlyWhatMovesIsWritten(t *testing.T) {
	v := crowd(100, 10_000)
	v.Members[50].Live, v.Members[50].Eligible = false, false
	p := Derive(v)
	require.Len(t, p.Moves, 100)
	steps := p.Steps(36, 1, func(int) int { return 1 })
	require.LessOrEqual(t, len(steps), 6)
	ledgers := 0
	for _, s := range steps {
		ledgers += len(s.Ledgers)
	}
	require.LessOrEqual(t, ledgers, 99+len(steps)+5, "each gainer once, but where a chunk ends; the dead one once a chunk")
	require.Len(t, written(steps), 100)
}
