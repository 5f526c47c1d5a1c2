package strategy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const (
	a1 = "10.0.0.1@-@a-1"
	a2 = "10.0.0.1@-@a-2"
	b1 = "10.0.0.2@-@b-1"
	c1 = "10.0.0.3@-@c-1"
)

func requireSticky(t *testing.T, want, previous Assignment, total int) {
	t.Helper()
	for _, job := range []string{"", "orders", "\u8ba2\u5355"} { // ties must not matter here
		in := Input{Job: job, Total: total, Previous: previous}
		for id := range want {
			in.Instances = append(in.Instances, id)
		}
		require.Empty(t, cmp.Diff(want, Sticky{}.Assign(in)))
	}
}

func TestStickyRestartKeepsItems(t *testing.T) {
	requireSticky(t, Assignment{a2: {0, 5, 9}, b1: {1, 2, 3}, c1: {4, 6, 7, 8}},
		Assignment{a1: {0, 5, 9}, b1: {1, 2, 3}, c1: {4, 6, 7, 8}}, 10)
}

func TestStickyReturnAfterTakeover(t *testing.T) {
	// a has 0, 3, 6 and leaves; b takes 0 and 6, c takes 3; a returns.
	requireSticky(t, Assignment{a2: {0, 3, 6}, b1: {1, 4, 7}, c1: {2, 5, 8}},
		Assignment{a1: {0, 3, 6}, b1: {0, 1, 4, 6, 7}, c1: {2, 3, 5, 8}}, 9)
}

func TestStickyWithoutMemoryGivesTheLastItems(t *testing.T) {
	requireSticky(t, Assignment{a2: {2, 5}, b1: {0, 1}, c1: {3, 4}},
		Assignment{b1: {0, 1, 2}, c1: {3, 4, 5}}, 6)
}

// What a present instance really runs goes before what only its name had.
func TestStickyHeldBeforeRemembered(t *testing.T) {
	requireSticky(t, Assignment{a2: {4, 5}, b1: {0, 1}, c1: {2, 3}},
		Assignment{a1: {0, 1, 2, 3}, a2: {4, 5}, b1: nil, c1: {2, 3}}, 6)
}

func TestStickyGrowsAndShrinks(t *testing.T) {
	requireSticky(t, Assignment{a1: {0, 2}, b1: {1, 3}}, Assignment{a1: {0}, b1: {1, 3}}, 4)
	requireSticky(t, Assignment{a1: {0}, b1: {1}}, Assignment{a1: {0, 2, -7}, b1: {1, 3, 1 << 40}}, 2)
}

// Two instances share a name: each gets back what was on its server.
func TestStickyNamesakesByServer(t *testing.T) {
	requireSticky(t, Assignment{"10.0.0.1@-@web-x": {1, 2}, "10.0.0.10@-@web-y": {0, 3}},
		Assignment{"10.0.0.1@-@web-a": {1, 2}, "10.0.0.10@-@web-b": {0, 3}}, 4)
}

// Two instances share a name and changed servers: each takes one old share.
func TestStickyNamesakesElsewhere(t *testing.T) {
	for _, job := range []string{"", "orders", "x"} {
		in := Input{Job: job, Total: 4, Instances: []string{"10.0.1.1@-@web-x", "10.0.1.2@-@web-y"},
			Previous: Assignment{"10.0.0.1@-@web-a": {1, 2}, "10.0.0.2@-@web-b": {0, 3}}}
		shares := Sticky{}.Assign(in)
		require.ElementsMatch(t, [][]int{{1, 2}, {0, 3}}, [][]int{shares[in.Instances[0]], shares[in.Instances[1]]})
	}
}

// A namesake with items of its own takes another's only if there is no free one.
func TestStickyNamesakeWithoutItemsFirst(t *testing.T) {
	requireSticky(t, Assignment{"10.0.0.2@-@web-x": {2}, "10.0.0.1@-@web-y": {0}, c1: {1}},
		Assignment{"10.0.0.2@-@web-x": {2}, "10.0.0.3@-@web-z": {0, 1}}, 3)
}

// What an instance holds is not remembered for its namesakes as well.
func TestStickyNamesakeIsNoHeir(t *testing.T) {
	requireSticky(t, Assignment{"10.0.0.1@-@web-x": {0, 1}, "10.0.0.1@-@web-y": {2, 3}},
		Assignment{"10.0.0.1@-@web-x": {0, 1, 2, 3}}, 4)
}

func TestStickyMemoryOfTheHolderItself(t *testing.T) {
	requireSticky(t, Assignment{a2: {1}, b1: {0}},
		Assignment{a1: {0, 1}, a2: {0, 1}, "10.0.0.2@-@b-0": {0}}, 2)
}

func TestStickyFirstMemoryCounts(t *testing.T) {
	requireSticky(t, Assignment{a2: {0}, b1: {2}, c1: {1}},
		Assignment{a1: {0}, "10.0.0.2@-@b-0": {0}, c1: {0, 1, 2}}, 3)
}

func TestStickyBind(t *testing.T) {
	in := Input{Job: "job", Total: 6, Instances: []string{"x2", "y2"}, Previous: Assignment{"x1": {0, 2, 4}, "y1": {1, 3, 5}}}
	byFirst := Sticky{Bind: func(id string) string { return id[:1] }}
	require.Empty(t, cmp.Diff(Assignment{"x2": {0, 2, 4}, "y2": {1, 3, 5}}, byFirst.Assign(in)))

	unbound := Sticky{Bind: func(string) string { return "" }}
	in.Previous["x2"] = []int{5}
	require.Empty(t, cmp.Diff(Assignment{"x2": {0, 1, 5}, "y2": {2, 3, 4}}, unbound.Assign(in)), "only ids count")
}

// Jobs of one item would otherwise all run on the same instance.
func TestStickySpreadsSmallJobs(t *testing.T) {
	in := Input{Total: 1}
	for k := range 10 {
		in.Instances = append(in.Instances, fmt.Sprintf("10.0.0.%d@-@web-%d-x", k, k))
	}
	jobs := map[string]int{}
	for j := range 1000 {
		in.Job = fmt.Sprintf("job-%d", j)
		jobs[Sticky{}.Assign(in).Owners(1)[0]]++
	}
	require.Len(t, jobs, 10)
	for id, n := range jobs {
		require.InDelta(t, 100, n, 40, id) // four standard deviations
	}
}

// Ties are broken the same way for ever: a new version must not move items.
func TestStickyNeverChanges(t *testing.T) {
	got := Sticky{}.Assign(Input{Job: "orders", Instances: []string{a1, b1, c1}, Total: 4})
	require.Empty(t, cmp.Diff(Assignment{a1: {2}, b1: {3}, c1: {0, 1}}, got))
}

func TestStableName(t *testing.T) {
	for id, want := range map[string]string{
		"10.0.0.1@-@web-k3f":        "web",
		"10.0.0.1@-@web-0-k3f":      "web-0",
		"10.0.0.1@-@web@-@0-k3f":    "web@-@0",
		"10.0.0.1@-@\u8ba2\u5355-1": "\u8ba2\u5355",
		"10.0.0.1@-@1234":           "10.0.0.1@-@1234",
		"10.0.0.1@-@-k3f":           "10.0.0.1@-@-k3f",
		"10.0.0.1@-@web-":           "10.0.0.1@-@web-",
		"10.0.0.1@-@":               "10.0.0.1@-@",
		"web-0":                     "web-0",
		"":                          "",
	} {
		require.Equal(t, want, StableName(id), id)
	}
}
