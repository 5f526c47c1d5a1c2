package memory

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/elasticron/elasticron/registry"
)

// A node is what the server stores at one path.
type node struct {
	path     string
	value    []byte // replaced, never changed in place
	version  registry.Version
	created  registry.Revision
	modified registry.Revision
	owner    *life // of an ephemeral node
	children map[string]*node
	sorted   []string // names of children; nil when it must be made again
}

// A tree holds the nodes. Server.mu guards it.
type tree struct {
	nodes    map[string]*node
	revision registry.Revision
	denied   map[string]int // paths that nobody may touch, nor what is below
}

func newTree() tree {
	return tree{
		denied:   map[string]int{},
		nodes:    map[string]*node{"/": {path: "/", created: 1, modified: 1}},
		revision: 1,
	}
}

// A change is one applied operation, with what is needed to take it back.
type change struct {
	kind registry.OpKind
	node *node
	old  node // OpSet: the state before
}

func (t *tree) read(path string, reader *life) registry.Node {
	n, ok := t.nodes[path]
	if !ok {
		return registry.Node{Path: path}
	}
	return registry.Node{
		Path: path, Value: slices.Clone(n.value), Version: n.version, Created: n.created, Modified: n.modified,
		Ephemeral: n.owner != nil, Owned: n.owner != nil && n.owner == reader,
	}
}

// list returns the sorted names below path; the slice is the tree's own.
func (t *tree) list(path string) ([]string, bool) {
	n, ok := t.nodes[path]
	if !ok {
		return nil, false
	}
	if n.sorted == nil && len(n.children) > 0 {
		n.sorted = slices.Sorted(maps.Keys(n.children))
	}
	return n.sorted, true
}

// commit applies ops for l, all or none. The values become the tree's.
func (t *tree) commit(l *life, ops []registry.Op) (registry.Revision, []change, error) {
	done := make([]change, 0, len(ops))
	for i, op := range ops {
		c, err := t.apply(l, op)
		if err != nil {
			for _, c := range slices.Backward(done) {
				t.undo(c)
			}
			return 0, nil, &registry.CommitError{Index: i, Op: op, Err: err}
		}
		if c.node != nil {
			done = append(done, c)
		}
	}
	if len(done) > 0 {
		t.revision++
	}
	return t.revision, done, nil
}

// refuses says whether nobody may touch path.
func (t *tree) refuses(path string) bool {
	for denied := range t.denied {
		if path == denied || denied == "/" || strings.HasPrefix(path, denied+"/") {
			return true
		}
	}
	return false
}

func (t *tree) apply(l *life, op registry.Op) (change, error) {
	if t.refuses(op.Path) {
		return change{}, registry.ErrDenied
	}
	n, exists := t.nodes[op.Path]
	switch op.Kind {
	case registry.OpCreate, registry.OpCreateEphemeral:
		return t.create(l, op, exists)
	}
	if !exists {
		return change{}, registry.ErrNotFound
	}
	if op.Version != registry.AnyVersion && op.Version != n.version {
		return change{}, registry.ErrVersion
	}
	switch op.Kind {
	case registry.OpSet:
		c := change{kind: registry.OpSet, node: n, old: *n}
		n.value, n.version, n.modified = op.Value, n.version+1, t.revision+1
		return c, nil
	case registry.OpDelete:
		if len(n.children) > 0 {
			return change{}, registry.ErrNotEmpty
		}
		t.detach(n)
		return change{kind: registry.OpDelete, node: n}, nil
	}
	return change{}, nil
}

func (t *tree) create(l *life, op registry.Op, exists bool) (change, error) {
	parent, ok := t.nodes[path.Dir(op.Path)]
	switch {
	case exists:
		return change{}, registry.ErrExists
	case !ok:
		return change{}, registry.ErrNoParent
	case parent.owner != nil:
		return change{}, registry.ErrEphemeralParent
	}
	n := &node{path: op.Path, value: op.Value, created: t.revision + 1, modified: t.revision + 1}
	if op.Kind == registry.OpCreateEphemeral {
		n.owner = l
	}
	t.attach(n)
	return change{kind: op.Kind, node: n}, nil
}

func (t *tree) undo(c change) {
	switch c.kind {
	case registry.OpSet:
		c.node.value, c.node.version, c.node.modified = c.old.value, c.old.version, c.old.modified
	case registry.OpDelete:
		t.attach(c.node)
	default:
		t.detach(c.node)
	}
}

func (t *tree) attach(n *node) {
	parent := t.nodes[path.Dir(n.path)]
	if parent.children == nil {
		parent.children = make(map[string]*node)
	}
	parent.children[path.Base(n.path)], parent.sorted = n, nil
	t.nodes[n.path] = n
	if n.owner != nil {
		n.owner.nodes[n.path] = struct{}{}
	}
}

func (t *tree) detach(n *node) {
	parent := t.nodes[path.Dir(n.path)]
	delete(parent.children, path.Base(n.path))
	parent.sorted = nil
	delete(t.nodes, n.path)
	if n.owner != nil {
		delete(n.owner.nodes, n.path)
	}
}

// removeOwned removes the ephemeral nodes of l in one revision.
func (t *tree) removeOwned(l *life) []change {
	var gone []change
	for _, path := range slices.Sorted(maps.Keys(l.nodes)) {
		n := t.nodes[path]
		t.detach(n)
		gone = append(gone, change{kind: registry.OpDelete, node: n})
	}
	if len(gone) > 0 {
		t.revision++
	}
	return gone
}
