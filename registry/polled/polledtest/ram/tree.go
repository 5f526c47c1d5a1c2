package ram

import (
	"path"
	"slices"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// A tree is the nodes by directory and name, without the root, and the revision
// that wrote last. The zero value is empty.
type tree struct {
	dirs     map[string]map[string]polled.Node
	revision registry.Revision
}

func (t *tree) get(p string) (polled.Node, bool) {
	n, exists := t.dirs[path.Dir(p)][path.Base(p)]
	return n, exists
}

// put writes a node, or removes it when it is nil, and returns what undoes that.
func (t *tree) put(p string, n *polled.Node) (undo func()) {
	dir, name := path.Dir(p), path.Base(p)
	before, existed := t.dirs[dir][name]
	switch {
	case n == nil:
		delete(t.dirs[dir], name)
		if len(t.dirs[dir]) == 0 {
			delete(t.dirs, dir)
		}
	case t.dirs == nil:
		t.dirs = map[string]map[string]polled.Node{dir: {name: *n}}
	case t.dirs[dir] == nil:
		t.dirs[dir] = map[string]polled.Node{name: *n}
	default:
		t.dirs[dir][name] = *n
	}
	return func() {
		if existed {
			t.put(p, &before)
		} else {
			t.put(p, nil)
		}
	}
}

// commit applies ops under one new revision, or changes nothing.
func (t *tree) commit(session string, ops []registry.Op) error {
	var done []func()
	t.revision++
	for i, op := range ops {
		undo, err := t.apply(session, op)
		if err != nil {
			for _, undo := range slices.Backward(done) {
				undo()
			}
			t.revision--
			return &registry.CommitError{Index: i, Err: err}
		}
		done = append(done, undo)
	}
	return nil
}

// apply makes one operation, which sees the ones before it.
func (t *tree) apply(session string, op registry.Op) (undo func(), err error) {
	n, exists := t.get(op.Path)
	creates := op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral
	switch {
	case creates:
		return t.create(session, op)
	case !exists:
		return nil, registry.ErrNotFound
	case op.Version != registry.AnyVersion && op.Version != n.Version:
		return nil, registry.ErrVersion
	case op.Kind == registry.OpSet:
		n.Value, n.Version, n.Modified = slices.Clone(op.Value), n.Version+1, t.revision
		return t.put(op.Path, &n), nil
	case op.Kind == registry.OpCheck:
		return func() {}, nil
	case len(t.dirs[op.Path]) > 0:
		return nil, registry.ErrNotEmpty
	}
	return t.put(op.Path, nil), nil
}

func (t *tree) create(session string, op registry.Op) (undo func(), err error) {
	dir := path.Dir(op.Path)
	parent, found := t.get(dir)
	switch _, exists := t.get(op.Path); {
	case exists:
		return nil, registry.ErrExists
	case !found && dir != "/":
		return nil, registry.ErrNoParent
	case parent.Owner != "":
		return nil, registry.ErrEphemeralParent
	}
	n := polled.Node{Node: registry.Node{
		Path: op.Path, Value: slices.Clone(op.Value), Created: t.revision, Modified: t.revision,
	}}
	if op.Kind == registry.OpCreateEphemeral {
		n.Owner = session
	}
	return t.put(op.Path, &n), nil
}

// dropOwned removes what a session leaves behind, and returns the paths.
func (t *tree) dropOwned(session string) (owned []string) {
	for _, nodes := range t.dirs {
		for _, n := range nodes {
			if n.Owner == session {
				owned = append(owned, n.Path)
			}
		}
	}
	for _, p := range owned {
		t.put(p, nil)
	}
	if len(owned) > 0 {
		t.revision++
	}
	return owned
}
