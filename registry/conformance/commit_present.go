package conformance

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
)

// checksTellTheNewest checks nodes that are older than the last commit.
func checksTellTheNewest(t *caseRun) {
	writer, other := t.open(), t.open()
	for _, name := range []string{"old", "older", "new"} {
		t.create(writer, t.path(name), "")
	}
	check := func(name string) registry.Op { return registry.Check(t.path(name), registry.AnyVersion) }
	for _, ops := range [][]registry.Op{
		{check("old")}, {registry.Check(t.path("old"), 0)}, {check("older"), check("old")}, {check("new"), check("old")}, {check("old"), check("new")},
	} {
		for _, write := range []registry.Op{
			registry.Set(t.path("new"), nil, registry.AnyVersion), registry.Create(t.path("gone"), nil), registry.Delete(t.path("gone"), 0),
			registry.CreateEphemeral(t.path("gone"), nil), registry.Delete(t.path("gone"), 0),
		} {
			least := t.commit(writer, write)
			for _, s := range []registry.Session{t.s, writer, other} {
				if rev := t.commit(s, ops...); rev < least {
					t.fatalf("a %s was answered at revision %d, and checks of other nodes that were sent after that at %d", write.Kind, least, rev)
				}
			}
		}
	}
}

// A turn is what another session does to a node that the session has read, and what is decided
// by that afterwards: err nil means applied.
type turn struct {
	name   string
	before []registry.Op // paths are names
	change []registry.Op
	ops    map[error][]registry.Op // each is tried on nodes of its own
}

func turns() []turn {
	const a, c, anyOne = "a", "a/c", registry.AnyVersion
	check, set, del := registry.Check, registry.Set, registry.Delete
	create, ephemeral := registry.Create, registry.CreateEphemeral
	return []turn{
		{"set", []registry.Op{create(a, nil)}, []registry.Op{set(a, nil, 0)}, map[error][]registry.Op{
			nil:                 {check(a, 1), check(a, anyOne), set(a, nil, 1), set(a, nil, anyOne), del(a, 1), del(a, anyOne)},
			registry.ErrVersion: {check(a, 0), set(a, nil, 0), del(a, 0)},
			registry.ErrExists:  {create(a, nil), ephemeral(a, nil)},
		}},
		{"deleted", []registry.Op{create(a, nil)}, []registry.Op{del(a, 0)}, map[error][]registry.Op{
			nil: {create(a, nil), ephemeral(a, nil)},
			registry.ErrNotFound: {
				check(a, 0), check(a, anyOne), set(a, nil, 0), set(a, nil, anyOne), del(a, 0), del(a, anyOne),
			},
			registry.ErrNoParent: {create(c, nil), ephemeral(c, nil)},
		}},
		{"created", nil, []registry.Op{create(a, nil)}, map[error][]registry.Op{
			nil: {
				check(a, 0), check(a, anyOne), set(a, nil, 0), set(a, nil, anyOne), del(a, 0), del(a, anyOne),
				create(c, nil), ephemeral(c, nil),
			},
			registry.ErrExists: {create(a, nil), ephemeral(a, nil)},
		}},
		{"created as ephemeral", nil, []registry.Op{ephemeral(a, nil)}, map[error][]registry.Op{
			registry.ErrEphemeralParent: {create(c, nil), ephemeral(c, nil)},
		}},
		{"given a child", []registry.Op{create(a, nil)}, []registry.Op{create(c, nil)}, map[error][]registry.Op{
			nil:                  {check(a, 0), set(a, nil, 0)},
			registry.ErrNotEmpty: {del(a, 0), del(a, anyOne)},
		}},
		{"freed of its child", []registry.Op{create(a, nil), create(c, nil)}, []registry.Op{del(c, 0)}, map[error][]registry.Op{
			nil: {del(a, 0), del(a, anyOne), create(c, nil), ephemeral(c, nil)},
		}},
	}
}

// decidedByThePresent reads what another session then changes, and commits at once.
func decidedByThePresent(t *caseRun) {
	writer, n := t.open(), 0
	for _, turn := range turns() {
		for want, ops := range turn.ops {
			for i := range 3 * len(ops) {
				n++
				t.afterTurn(writer, t.path(fmt.Sprint(n)), turn, ops[i/3], want, i%3)
			}
		}
	}
}

// afterTurn reads in one of three ways.
func (t *caseRun) afterTurn(writer registry.Session, dir string, turn turn, op registry.Op, want error, way int) {
	at := func(ops ...registry.Op) []registry.Op {
		ops = slices.Clone(ops)
		for i := range ops {
			ops[i].Path = dir + "/" + ops[i].Path
		}
		return ops
	}
	t.commit(writer, append([]registry.Op{registry.Create(dir, nil)}, at(turn.before...)...)...)
	t.sync(t.s)
	get := func() { t.getAll(t.s, dir+"/a/c", dir+"/a") }
	if way == 1 { // what is read last may be what is kept
		get()
	}
	t.children(t.s, dir)
	if len(turn.before) > 0 {
		t.children(t.s, dir+"/a")
	}
	if way != 1 {
		get()
	}
	t.commit(writer, at(turn.change...)...)
	ops := at(op)
	if way == 2 { // with another, it is no less fresh
		ops = append(ops, registry.Check(t.dir, registry.AnyVersion))
	}
	_, err := t.try(t.ctx, t.s, ops...)
	switch {
	case want != nil:
		t.isCommitError(err, 0, want, ops)
	case err != nil:
		t.fatalf("commit(%s) failed with %v; before its call the node had been %s, which the session had read before that",
			describe(ops), err, turn.name)
	}
}

// parentsAndChildrenRace has a parent deleted while it is given a child.
func parentsAndChildrenRace(t *caseRun) {
	rounds, other := t.times(60), t.open()
	for i := range rounds {
		p := t.path(fmt.Sprint(i))
		t.commit(t.s, registry.Create(p, nil))
		child := registry.Create(p+"/c", nil)
		if i%2 == 1 {
			child = registry.CreateEphemeral(p+"/c", nil)
		}
		var applied atomic.Int32
		var both sync.WaitGroup
		both.Go(func() { t.counts(&applied, registry.ErrNotEmpty, t.s, registry.Delete(p, 0)) })
		both.Go(func() { t.counts(&applied, registry.ErrNoParent, other, child) })
		both.Wait()
		t.sync(t.s)
		nodes := t.getAll(t.s, p, child.Path)
		if applied.Load() != 1 || nodes[0].Exists() != nodes[1].Exists() {
			t.fatalf("of a Delete of a node and a create below it %d were applied; what is left: %s, %s",
				applied.Load(), show(nodes[0]), show(nodes[1]))
		}
	}
}

// alikeInOneCommit has names in one commit that must not be taken for one.
func alikeInOneCommit(t *caseRun) {
	names := alike()
	most := min(t.s.Limits().MaxOps, len(names))
	for _, some := range [][]string{names[:most], names[len(names)-most:]} {
		all := func(op func(path string) registry.Op) []registry.Op {
			ops := make([]registry.Op, len(some))
			for i, name := range some {
				ops[i] = op(t.path(name))
			}
			return ops
		}
		t.commit(t.s, all(func(p string) registry.Op { return registry.Create(p, []byte(p)) })...)
		t.commit(t.s, all(func(p string) registry.Op { return registry.Check(p, 0) })...)
		t.commit(t.s, all(func(p string) registry.Op { return registry.Set(p, []byte(p+" set"), 0) })...)
		for _, name := range some {
			if n := t.present(t.s, t.path(name)); string(n.Value) != n.Path+" set" || n.Version != 1 {
				t.fatalf("after commits of %d names that differ in some byte %q is %s with value %q", most, name, show(n), n.Value)
			}
		}
		t.commit(t.s, all(func(p string) registry.Op { return registry.CreateEphemeral(p+"/child", nil) })...)
		t.commit(t.s, all(func(p string) registry.Op { return registry.Delete(p+"/child", 0) })...)
		t.commit(t.s, all(func(p string) registry.Op { return registry.Delete(p, 1) })...)
		t.hasChildren(t.s, t.dir)
	}
}
