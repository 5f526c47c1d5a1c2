package conformance

import (
	"fmt"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

var listCases = []testCase{
	{name: "ChildrenEmpty", rules: "R79", run: childrenEmpty, place: "Store.Children",
		rule: "a node without children, ephemeral ones included, lists none, without error"},
	{name: "ChildrenSorted", rules: "R80", run: childrenSorted, place: "Store.Children",
		rule: "Children returns names, not paths, sorted by bytes"},
	{name: "ChildrenOneLevelOnly", rules: "R79", run: childrenOneLevel, place: "Store.Children",
		rule: "Children lists one level below, nothing deeper and not the node itself"},
	{name: "ChildrenPrefixSibling", rules: "R79", run: childrenPrefixSibling, place: "Store.Children",
		rule: "/a/x is no child of /ab, nor the other way round"},
	{name: "ChildrenMissingDir", rules: "R36", run: childrenMissing, place: "Store.Children",
		rule: "Children of what does not exist fails with ErrNotFound"},
	{name: "ChildrenRoot", rules: "R4", run: childrenRoot, place: "package doc, The tree",
		rule: "the root always exists and can be listed"},
	{name: "ChildrenFollowDeletes", rules: "R79", run: childrenFollowDeletes, place: "Store.Children; package doc, Guarantees: reads",
		rule: "what this session has deleted or created is gone from, or in, its next list"},
	{name: "ListsAreFresh", rules: "R21 R22 R23 R24", run: listsAreFresh, place: "Store.Children; package doc, Guarantees: reads",
		rule: "after Sync, an event, a Get or an own commit that shows a change Children shows it too, and Get what Children has shown"},
	{name: "List10k", rules: "R76 R79", run: list10k, needs: alone, place: "Store.Children",
		rule: "a directory of 10,000 names is listed whole and sorted, and so is the one above it"},
	{name: "ListDuringChurnNoTornNode", rules: "R78", run: churnNoTornNode, place: "Store.Get",
		rule: "each node is consistent in itself, however fast others write"},
}

func (t *caseRun) hasChildren(s registry.Session, path string, want ...string) {
	if got := t.children(s, path); !slices.Equal(got, want) {
		t.fatalf("children of %s are %q; want %q", path, got, want)
	}
}

func childrenEmpty(t *caseRun) {
	t.hasChildren(t.s, t.dir)
	t.commit(t.s, registry.CreateEphemeral(t.path("e"), nil))
	t.hasChildren(t.s, t.path("e"))
	t.hasChildren(t.s, t.dir, "e")
}

func childrenSorted(t *caseRun) {
	want := []string{"!", "-", "0", "10", "9", "A", "Z", "_", "a", "a-", "a.b", "ab", "b", "z", "ä", "Ω", "日"}
	for _, i := range []int{5, 0, 16, 9, 3, 12, 1, 14, 7, 10, 2, 15, 4, 11, 6, 13, 8} {
		t.create(t.s, t.path(want[i]), "")
	}
	t.hasChildren(t.s, t.dir, want...)
}

func childrenOneLevel(t *caseRun) {
	for _, p := range []string{"a", "a/b", "a/b/c", "a/b/c/d", "e"} {
		t.create(t.s, t.path(p), "")
	}
	t.hasChildren(t.s, t.dir, "a", "e")
	t.hasChildren(t.s, t.path("a"), "b")
	t.hasChildren(t.s, t.path("a/b"), "c")
	t.hasChildren(t.s, t.path("a/b/c/d"))
}

func childrenPrefixSibling(t *caseRun) {
	for _, p := range []string{"a", "ab", "a-", "a/x", "ab/y", "a-/z"} {
		t.create(t.s, t.path(p), "")
	}
	t.hasChildren(t.s, t.path("a"), "x")
	t.hasChildren(t.s, t.path("ab"), "y")
	t.hasChildren(t.s, t.path("a-"), "z")
	t.commit(t.s, registry.Delete(t.path("a/x"), registry.AnyVersion))
	t.hasChildren(t.s, t.path("a"))
	t.commit(t.s, registry.Delete(t.path("a"), registry.AnyVersion))
	t.hasChildren(t.s, t.path("ab"), "y")
}

func childrenMissing(t *caseRun) {
	for _, p := range []string{t.path("none"), t.path("none/deeper")} {
		names, err := t.s.Children(t.ctx, p)
		t.step("Children(%s) = %q, %v", p, names, err)
		t.isError(err, registry.ErrNotFound)
	}
}

func childrenRoot(t *caseRun) {
	names := t.children(t.s, "/")
	if !slices.Contains(names, t.dir[1:]) {
		t.fatalf("the %d children of / lack %q", len(names), t.dir[1:])
	}
	if !slices.IsSorted(names) {
		t.fatalf("the children of / are not sorted: %q", names)
	}
}

func childrenFollowDeletes(t *caseRun) {
	for i := range 20 {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		t.commit(t.s, registry.Create(t.path(a), nil), registry.CreateEphemeral(t.path(b), nil))
		t.hasChildren(t.s, t.dir, a, b)
		t.commit(t.s, registry.Delete(t.path(a), 0), registry.Delete(t.path(b), 0))
		t.hasChildren(t.s, t.dir)
	}
}

func list10k(t *caseRun) {
	want := make([]string, 10_000)
	paths := make([]string, len(want))
	for i := range want {
		want[i] = fmt.Sprintf("job-%05d", i)
		paths[(i*7919)%len(want)] = t.path("jobs/" + want[i])
	}
	for _, name := range []string{"before", "jobs", "later"} {
		t.create(t.s, t.path(name), "")
	}
	t.createAll(t.s, paths)
	t.hasChildren(t.s, t.dir, "before", "jobs", "later")
	got := t.children(t.s, t.path("jobs"))
	if len(got) != len(want) {
		t.fatalf("%d names; want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.fatalf("name %d is %q; want %q", i, got[i], want[i])
		}
	}
}

// churnNoTornNode has a writer whose values name the version they stand at.
func churnNoTornNode(t *caseRun) {
	const nodes = 5
	rounds, writer := t.times(60), t.open()
	paths := make([]string, nodes)
	for i := range paths {
		paths[i] = t.path(fmt.Sprint(i))
		t.create(writer, paths[i], "0")
	}
	t.sync(t.s)
	var wg sync.WaitGroup
	wg.Go(func() {
		for v := range rounds {
			for _, p := range paths {
				if _, err := writer.Commit(t.ctx, registry.Set(p, fmt.Append(nil, v+1), registry.Version(v))); err != nil {
					t.errorf("writer: Set(%s) at version %d: %v", p, v, err)
					return
				}
			}
		}
	})
	defer wg.Wait()
	for done := false; !done && !t.Failed(); {
		done = true
		for _, n := range t.getAll(t.s, paths...) {
			if string(n.Value) != fmt.Sprint(n.Version) {
				t.fatalf("%s at version %d holds the value of version %s", n.Path, n.Version, n.Value)
			}
			done = done && n.Version == registry.Version(rounds)
		}
	}
}
