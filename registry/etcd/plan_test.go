package etcd

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
)

func TestKeys(t *testing.T) {
	require.Equal(t, "/elasticron/0/", string(nodeKey("/")))
	require.Equal(t, "/elasticron/1/shop", string(nodeKey("/shop")))
	require.Equal(t, "/elasticron/3/shop/hello/config", string(nodeKey("/shop/hello/config")))
	for path, want := range map[string][2]string{
		"/":      {"/elasticron/1/", "/elasticron/10"},
		"/shop":  {"/elasticron/2/shop/", "/elasticron/2/shop0"},
		"/shop/": {"/elasticron/3/shop//", "/elasticron/3/shop/0"},
	} {
		from, to := childRange(path)
		require.Equal(t, want, [2]string{string(from), string(to)})
	}
	for _, foreign := range []string{"", "/", "/elasticron", "/elasticron/", "/elasticron/x", "/elasticron/2/a", "/elasticron/1/a/b", "/elasticron/01/a", "/elasticron//a", "/other/1/a"} {
		_, ok := nodePath([]byte(foreign))
		require.False(t, ok, foreign)
	}
}

var segment = rapid.StringMatching(`[!-.0-~]{1,8}`)

func genPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		path := ""
		for _, s := range rapid.SliceOfN(segment, 1, 12).Draw(t, "segments") {
			path += "/" + s
		}
		return path
	})
}

// A key is a child's exactly when its path is one level below.
func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genPath().Draw(t, "a"), genPath().Draw(t, "b")
		back, ok := nodePath(nodeKey(a))
		require.True(t, ok)
		require.Equal(t, a, back)
		from, to := childRange(b)
		key := string(nodeKey(a))
		inside := string(from) <= key && key < string(to)
		require.Equal(t, parentOf(a) == b, inside, "%s below %s", a, b)
		child := b + "/" + segment.Draw(t, "child")
		key = string(nodeKey(child))
		require.True(t, string(from) <= key && key < string(to))
	})
}

// Whatever 40 operations are, they fit etcd's 128 compares and 128 reads.
func TestPortableCommitFitsEtcdAsInstalled(t *testing.T) {
	limits := registry.PortableLimits()
	rapid.Check(t, func(t *rapid.T) {
		var ops []registry.Op
		taken := map[string]bool{}
		for i := range limits.MaxOps {
			dir := fmt.Sprint("/d", rapid.IntRange(0, 40).Draw(t, "dir"))
			path := rapid.SampledFrom([]string{dir, fmt.Sprint(dir, "/", i), fmt.Sprint("/x", i, "/", i)}).Draw(t, "path")
			if taken[path] {
				continue
			}
			taken[path] = true
			kind := registry.OpKind(rapid.IntRange(int(registry.OpCheck), int(registry.OpDelete)).Draw(t, "kind"))
			ops = append(ops, registry.Op{Kind: kind, Path: path})
		}
		p := newPlan(ops, 1, true)
		require.LessOrEqual(t, len(p.compares), 128)
		require.LessOrEqual(t, len(p.compares), 3*len(ops))
		require.LessOrEqual(t, len(p.reads), 128)
		require.LessOrEqual(t, len(p.request().Success), 2*len(ops))
	})
}

// A parent costs two compares and a read, whatever is made below it.
func TestComparesOfParents(t *testing.T) {
	p := newPlan([]registry.Op{registry.Create("/d/a", nil), registry.CreateEphemeral("/d/b", nil)}, 1, true)
	require.Len(t, p.compares, 4)
	require.Len(t, p.request().Success, 2)
	require.Len(t, p.request().Failure, 3)
}

// What can be refused for one reason only reads nothing to find it.
func TestSoleReason(t *testing.T) {
	for _, tc := range []struct {
		op   registry.Op
		want error
	}{
		{registry.Set("/a/b", nil, registry.AnyVersion), registry.ErrNotFound},
		{registry.Check("/a/b", registry.AnyVersion), registry.ErrNotFound},
		{registry.Create("/a", nil), registry.ErrExists},
		{registry.CreateEphemeral("/a", nil), registry.ErrExists},
		{registry.Set("/a", nil, 0), nil},
		{registry.Check("/a", 0), nil},
		{registry.Create("/a/b", nil), nil},
		{registry.Delete("/a", registry.AnyVersion), nil},
	} {
		p := newPlan([]registry.Op{tc.op}, 1, true)
		require.Equal(t, tc.want, p.onlyReason, tc.op)
		if tc.want != nil {
			require.Len(t, p.request().Compare, 1, tc.op)
			require.Empty(t, p.request().Failure, tc.op)
			require.ErrorIs(t, p.failure(nil), tc.want)
			continue
		}
		require.NotEmpty(t, p.request().Failure, tc.op)
	}
	require.NotEmpty(t, newPlan([]registry.Op{registry.Set("/a", nil, -1), registry.Set("/b", nil, -1)}, 1, true).request().Failure)
}

// Commits share a request only when no order of theirs would make a difference.
func TestFootprint(t *testing.T) {
	ops := func(ops ...registry.Op) []registry.Op { return ops }
	for name, tc := range map[string]struct {
		a, b  []registry.Op
		share bool
	}{
		"DifferentNodes":      {ops(registry.Set("/a", nil, 0)), ops(registry.Set("/b", nil, 0)), true},
		"SiblingsAreCreated":  {ops(registry.Create("/d/a", nil)), ops(registry.Create("/d/b", nil)), true},
		"BothCheck":           {ops(registry.Check("/a", 0)), ops(registry.Check("/a", 0), registry.Set("/b", nil, 0)), true},
		"BothSet":             {ops(registry.Set("/a", nil, 0)), ops(registry.Set("/a", nil, 0)), false},
		"CheckedAndSet":       {ops(registry.Check("/a", 0)), ops(registry.Set("/a", nil, 0)), false},
		"SetAndChecked":       {ops(registry.Set("/b", nil, 0), registry.Set("/a", nil, 0)), ops(registry.Check("/a", 0)), false},
		"ParentIsCreated":     {ops(registry.Create("/d", nil)), ops(registry.Create("/d/a", nil)), false},
		"ParentIsDeleted":     {ops(registry.Create("/d/a", nil)), ops(registry.Delete("/d", 0)), false},
		"ChildOfDeleted":      {ops(registry.Delete("/d", 0)), ops(registry.Create("/d/a", nil)), false},
		"ChildDeletedFirst":   {ops(registry.Delete("/d/a", 0)), ops(registry.Delete("/d", 0)), false},
		"ParentDeletedFirst":  {ops(registry.Delete("/d", 0)), ops(registry.Delete("/d/a", 0)), false},
		"GrandchildIsCreated": {ops(registry.Delete("/d", 0)), ops(registry.Create("/d/a/b", nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := footprint{}
			require.True(t, f.add(newPlan(tc.a, 1, true)))
			require.Equal(t, tc.share, f.add(newPlan(tc.b, 1, true)))
		})
	}
}

// A first attempt reads nothing, whatever it consists of.
func TestUnexplainedPlan(t *testing.T) {
	ops := []registry.Op{registry.Delete("/d", 0), registry.Create("/d/new", nil)} // impossible
	for i := range 8 {
		ops = append(ops, registry.Set(fmt.Sprint("/n", i), nil, 0))
	}
	p := newPlan(ops, 1, false)
	require.True(t, p.unexplained)
	require.True(t, p.impossible)
	require.Empty(t, p.reads)
	p = newPlan(ops[1:], 1, false)
	require.True(t, p.unexplained)
	require.Empty(t, p.request().Failure)
	p = newPlan(ops, 1, true)
	require.False(t, p.unexplained)
	require.Len(t, p.reads, len(ops)+1) // the children of what is deleted too
}

// Whatever shares a request, a member as installed takes it.
func TestSharedRequestsFit(t *testing.T) {
	wide := func(i int) *plan {
		var ops []registry.Op
		for j := range maxSharingOps {
			ops = append(ops, registry.Create(fmt.Sprint("/d", i, "/", j, "/n"), nil))
		}
		return newPlan(ops, 1, false)
	}
	narrow := func(i int) *plan {
		return newPlan([]registry.Op{registry.Set(fmt.Sprint("/n", i), nil, 0)}, 1, true)
	}
	heavy := func(i int) *plan {
		return newPlan([]registry.Op{registry.Set(fmt.Sprint("/n", i), make([]byte, 20<<10), 0)}, 1, true)
	}
	for name, tc := range map[string]struct {
		plan func(int) *plan
		want []int
	}{"Wide": {wide, []int{32, 8}}, "Narrow": {narrow, []int{40}}, "Heavy": {heavy, append(slices.Repeat([]int{3}, 13), 1)}} {
		t.Run(name, func(t *testing.T) {
			var joined []int
			add, n := room(), 0
			for i := range 40 {
				if add(tc.plan(i)) {
					n++
					continue
				}
				joined = append(joined, n)
				add, n = room(), 1
				require.True(t, add(tc.plan(i)))
			}
			require.Equal(t, tc.want, append(joined, n))
		})
	}
}

// There is no room for what is too large to share: it goes at once.
func TestLargeCommitsShareNothing(t *testing.T) {
	var many []registry.Op
	for i := range maxSharingOps + 1 {
		many = append(many, registry.Set(fmt.Sprint("/n", i), nil, 0))
	}
	heavy := []registry.Op{registry.Set("/n", make([]byte, maxSharedBytes/2), 0)}
	for _, ops := range [][]registry.Op{many, heavy} {
		require.False(t, room()(newPlan(ops, 1, false)))
	}
	require.True(t, room()(newPlan(many[1:], 1, false)))
}
