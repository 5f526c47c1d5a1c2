package etcd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
)

func TestKeys(t *testing.T) {
	require.Equal(t, "/elasticron/0/", nodeKey("/"))
	require.Equal(t, "/elasticron/1/shop", nodeKey("/shop"))
	require.Equal(t, "/elasticron/3/shop/hello/config", nodeKey("/shop/hello/config"))
	for path, want := range map[string][2]string{
		"/":      {"/elasticron/1/", "/elasticron/10"},
		"/shop":  {"/elasticron/2/shop/", "/elasticron/2/shop0"},
		"/shop/": {"/elasticron/3/shop//", "/elasticron/3/shop/0"},
	} {
		from, to := childRange(path)
		require.Equal(t, want, [2]string{from, to})
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
		back, ok := nodePath([]byte(nodeKey(a)))
		require.True(t, ok)
		require.Equal(t, a, back)
		from, to := childRange(b)
		inside := from <= nodeKey(a) && nodeKey(a) < to
		require.Equal(t, parentOf(a) == b, inside, "%s below %s", a, b)
		child := b + "/" + segment.Draw(t, "child")
		require.True(t, from <= nodeKey(child) && nodeKey(child) < to)
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
		p := newPlan(ops, 1, nil)
		require.LessOrEqual(t, len(p.compares), 128)
		require.LessOrEqual(t, len(p.compares), 3*len(ops))
		require.LessOrEqual(t, len(p.reads), 128)
		require.LessOrEqual(t, len(p.request().Success), 2*len(ops))
	})
}

// A parent that is known costs one compare, one that is not two and a read.
func TestComparesOfParents(t *testing.T) {
	ops := []registry.Op{registry.Create("/d/a", nil), registry.CreateEphemeral("/d/b", nil)}
	var known incarnations
	p := newPlan(ops, 1, &known)
	require.False(t, p.outdated)
	require.Len(t, p.compares, 4)
	require.Len(t, p.request().Success, 3)

	known.learn("/d", 7)
	p = newPlan(ops, 1, &known)
	require.True(t, p.outdated)
	require.Len(t, p.compares, 3)
	require.Equal(t, createdAt([]byte(nodeKey("/d")), 7), p.compares[0])
	require.Len(t, p.request().Success, 2)
	require.Len(t, p.request().Failure, 3)
}
