package memory_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A model is the tree once more, as plainly as can be: a copy for each commit.
type model struct {
	nodes    map[string]registry.Node
	revision registry.Revision
}

// commit returns the index of the operation that fails and why, or -1.
func (m *model) commit(ops []registry.Op) (int, error) {
	next := maps.Clone(m.nodes)
	rev, wrote := m.revision+1, false
	for i, op := range ops {
		if err := m.apply(next, op, rev); err != nil {
			return i, err
		}
		wrote = wrote || op.Kind != registry.OpCheck
	}
	if m.nodes = next; wrote {
		m.revision = rev
	}
	return -1, nil
}

func (m *model) apply(nodes map[string]registry.Node, op registry.Op, rev registry.Revision) error {
	n, exists := nodes[op.Path]
	if op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral {
		parent := op.Path[:strings.LastIndex(op.Path, "/")]
		p, ok := nodes[parent]
		switch {
		case exists:
			return registry.ErrExists
		case !ok && parent != "":
			return registry.ErrNoParent
		case p.Ephemeral:
			return registry.ErrEphemeralParent
		}
		e := op.Kind == registry.OpCreateEphemeral
		nodes[op.Path] = registry.Node{Path: op.Path, Value: op.Value, Created: rev, Modified: rev, Ephemeral: e, Owned: e}
		return nil
	}
	switch {
	case !exists:
		return registry.ErrNotFound
	case op.Version != registry.AnyVersion && op.Version != n.Version:
		return registry.ErrVersion
	}
	switch op.Kind {
	case registry.OpSet:
		n.Value, n.Version, n.Modified = op.Value, n.Version+1, rev
		nodes[op.Path] = n
	case registry.OpDelete:
		if len(children(nodes, op.Path)) > 0 {
			return registry.ErrNotEmpty
		}
		delete(nodes, op.Path)
	}
	return nil
}

func children(nodes map[string]registry.Node, dir string) []string {
	var names []string
	for _, path := range slices.Sorted(maps.Keys(nodes)) {
		if name, below := strings.CutPrefix(path, dir+"/"); below && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

func (m *model) dump() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(m.nodes)) {
		e := ""
		if m.nodes[path].Ephemeral {
			e = "E "
		}
		fmt.Fprintf(&b, "%s %s%q\n", path, e, m.nodes[path].Value)
	}
	return b.String()
}

func genOp(t *rapid.T) registry.Op {
	return registry.Op{
		Kind: registry.OpKind(rapid.IntRange(int(registry.OpCheck), int(registry.OpDelete)).Draw(t, "kind")),
		Path: rapid.SampledFrom([]string{
			"/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/ab/c", "/e", "/e/f",
		}).Draw(t, "path"),
		Value:   []byte(rapid.StringN(0, 3, -1).Draw(t, "value")),
		Version: registry.Version(rapid.IntRange(-1, 2).Draw(t, "version")),
	}
}

func TestTreeLikeModel(t *testing.T) {
	ctx := context.Background()
	byPath := func(op registry.Op) string { return op.Path }
	rapid.Check(t, func(t *rapid.T) {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry("test")
		defer reg.Close()
		ses, err := reg.Open(ctx)
		require.NoError(t, err)
		m := &model{nodes: map[string]registry.Node{}, revision: 1}
		for range rapid.IntRange(1, 30).Draw(t, "commits") {
			ops := rapid.SliceOfNDistinct(rapid.Custom(genOp), 1, 6, byPath).Draw(t, "ops")
			index, cause := m.commit(ops)
			rev, err := ses.Commit(ctx, ops...)
			if index < 0 {
				require.NoError(t, err)
				require.Equal(t, m.revision, rev)
			} else {
				var failure *registry.CommitError
				require.ErrorAs(t, err, &failure, "%v", err)
				require.Equal(t, index, failure.Index)
				require.Equal(t, ops[index], failure.Op)
				require.ErrorIs(t, err, cause)
			}
			sameTree(t, m, srv, ses)
		}
	})
}

func sameTree(t *rapid.T, m *model, srv *memory.Server, ses registry.Session) {
	ctx := context.Background()
	require.Equal(t, m.dump(), srv.Dump())
	for _, path := range []string{"", "/a", "/a/b", "/ab", "/e"} {
		names, err := ses.Children(ctx, strings.TrimSuffix(path+"/", "/")+map[bool]string{true: "/"}[path == ""])
		if _, exists := m.nodes[path]; !exists && path != "" {
			require.ErrorIs(t, err, registry.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, children(m.nodes, path), names)
	}
	for path, want := range m.nodes {
		nodes, err := ses.Get(ctx, path, path+"/none")
		require.NoError(t, err)
		empty := cmp.Transformer("text", func(b []byte) string { return string(b) })
		require.Empty(t, cmp.Diff([]registry.Node{want, {Path: path + "/none"}}, nodes, empty))
	}
}
