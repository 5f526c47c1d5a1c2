package conformance

import (
	"bytes"
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

// each makes n operations on the nodes 0…n-1 of the run.
func (t *caseRun) each(n int, op func(path string) registry.Op) []registry.Op {
	ops := make([]registry.Op, n)
	for i := range ops {
		ops[i] = op(t.path(fmt.Sprintf("%05d", i)))
	}
	return ops
}

func maxOps(t *caseRun) {
	n := t.s.Limits().MaxOps
	if least := registry.PortableLimits().MaxOps; n < least {
		t.fatalf("Limits().MaxOps is %d; portable is %d", n, least)
	}
	n = min(n, t.s.Limits().MaxBytes/(len(t.dir)+16))
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Create(p, []byte("x")) })...)
	if got := t.children(t.s, t.dir); len(got) != n {
		t.fatalf("%d nodes after a commit of %d creates", len(got), n)
	}
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Set(p, []byte("y"), 0) })...)
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Check(p, 1) })...)
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Delete(p, 1) })...)
	t.hasChildren(t.s, t.dir)
}

// portableOps needs the most of what a service spends on an operation: version
// and strict-tree checks under 40 parents.
func portableOps(t *caseRun) {
	n := registry.PortableLimits().MaxOps
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Create(p, nil) })...)
	below := func(name string, op func(string) registry.Op) []registry.Op {
		return t.each(n, func(p string) registry.Op { return op(p + "/" + name) })
	}
	t.commit(t.s, below("p", func(p string) registry.Op { return registry.Create(p, []byte("x")) })...)
	t.commit(t.s, below("e", func(p string) registry.Op { return registry.CreateEphemeral(p, nil) })...)
	t.commit(t.s, below("p", func(p string) registry.Op { return registry.Set(p, []byte("y"), 0) })...)
	t.commit(t.s, below("p", func(p string) registry.Op { return registry.Check(p, 1) })...)
	t.refused(t.s, n-1, registry.ErrExists, append(below("new", func(p string) registry.Op { return registry.Create(p, nil) })[:n-1],
		registry.Create(t.path(fmt.Sprintf("%05d/p", n-1)), nil))...)
	t.commit(t.s, below("p", func(p string) registry.Op { return registry.Delete(p, 1) })...)
	t.commit(t.s, below("e", func(p string) registry.Op { return registry.Delete(p, 0) })...)
	t.commit(t.s, t.each(n, func(p string) registry.Op { return registry.Delete(p, 0) })...)
	t.hasChildren(t.s, t.dir)
}

// filled returns creates whose paths and values take exactly size bytes.
func (t *caseRun) filled(size int) []registry.Op {
	most := t.s.Limits().MaxValue
	var ops []registry.Op
	for i := 0; size > 0; i++ {
		path := t.path(fmt.Sprintf("%05d", i))
		n := max(0, min(most, size-len(path)))
		if rest := size - len(path) - n; rest > 0 && rest < len(path) {
			n -= len(path) // leave room for the last path
		}
		ops = append(ops, registry.Create(path, bytes.Repeat([]byte{byte('a' + i%26)}, n)))
		size -= len(path) + n
	}
	return ops
}

func (t *caseRun) readBack(ops []registry.Op) {
	for _, op := range ops {
		if n := t.present(t.s, op.Path); !bytes.Equal(n.Value, op.Value) {
			t.fatalf("%s: %d bytes were written, other %d came back", op.Path, len(op.Value), len(n.Value))
		}
	}
}

func portableBytes(t *caseRun) {
	ops := t.filled(registry.PortableLimits().MaxBytes)
	t.commit(t.s, ops...)
	t.readBack(ops)
}

func overMaxOps(t *caseRun) {
	n := t.s.Limits().MaxOps + 1
	_, err := t.s.Commit(t.ctx, t.each(n, func(p string) registry.Op { return registry.Create(p, nil) })...)
	t.isInvalid(fmt.Sprintf("commit of %d operations, MaxOps is %d", n, n-1), err)
	t.hasChildren(t.s, t.dir)
}

func overBytes(t *caseRun) {
	limits := t.s.Limits()
	if least := registry.PortableLimits().MaxBytes; limits.MaxBytes < least {
		t.fatalf("Limits().MaxBytes is %d; portable is %d", limits.MaxBytes, least)
	}
	ops := t.filled(limits.MaxBytes)
	if len(ops) <= limits.MaxOps {
		t.commit(t.s, ops...)
		t.readBack(ops)
	}
	over := t.filled(limits.MaxBytes)
	for i := range over {
		over[i].Path = t.path(fmt.Sprintf("o%04d", i)) // as long as before
	}
	last := &over[len(over)-1]
	last.Value = append(last.Value, 'x')
	_, err := t.s.Commit(t.ctx, over...)
	t.isInvalid(fmt.Sprintf("commit of %d bytes, MaxBytes is %d", limits.MaxBytes+1, limits.MaxBytes), err)
	t.absent(t.s, over[0].Path, last.Path)
}

func sameRevision(t *caseRun) {
	t.create(t.s, t.path("set"), "")
	t.commit(t.s, registry.Create(t.path("a"), nil), registry.Set(t.path("set"), []byte("x"), 0),
		registry.CreateEphemeral(t.path("b"), nil), registry.Create(t.path("a/c"), nil))
	nodes := t.getAll(t.s, t.path("a"), t.path("b"), t.path("a/c"), t.path("set"))
	for _, n := range nodes {
		if n.Modified != nodes[0].Modified {
			t.fatalf("one commit wrote %s and %s", show(nodes[0]), show(n))
		}
		if n.Path != t.path("set") && n.Created != nodes[0].Created {
			t.fatalf("one commit created %s and %s", show(nodes[0]), show(n))
		}
	}
}

func revisionIsModified(t *caseRun) {
	t.create(t.s, t.path("set"), "")
	for i := range 3 {
		name := fmt.Sprint("a", i)
		rev := t.commit(t.s, registry.Create(t.path(name), nil), registry.Set(t.path("set"), nil, registry.Version(i)),
			registry.CreateEphemeral(t.path("e"+name), nil))
		for _, n := range t.getAll(t.s, t.path(name), t.path("set"), t.path("e"+name)) {
			if n.Modified != rev {
				t.fatalf("Commit returned %d and wrote %s", rev, show(n))
			}
		}
		rev = t.commit(t.s, registry.Set(t.path(name), []byte("alone"), 0))
		if n := t.present(t.s, t.path(name)); n.Modified != rev || rev == 0 {
			t.fatalf("Commit of one Set returned %d and wrote %s", rev, show(n))
		}
	}
}

func ephemeralInCommit(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.commit(t.s, registry.Check(t.dir, registry.AnyVersion), registry.CreateEphemeral(t.path("e"), []byte("x")), registry.Set(t.path("a"), nil, 0))
	if n := t.present(t.s, t.path("e")); !n.Ephemeral || !n.Owned || string(n.Value) != "x" {
		t.fatalf("the ephemeral node reads as %s", show(n))
	}
	t.refused(t.s, 1, registry.ErrVersion, registry.CreateEphemeral(t.path("f"), nil), registry.Set(t.path("a"), nil, 0))
	t.absent(t.s, t.path("f"))
	t.commit(t.s, registry.Delete(t.path("e"), 0))
	t.absent(t.s, t.path("e"))
}

func ephemeralMixed(t *caseRun) {
	owner := t.open()
	t.commit(owner, registry.Create(t.path("p1"), nil), registry.CreateEphemeral(t.path("e1"), nil),
		registry.Create(t.path("p2"), nil), registry.CreateEphemeral(t.path("p2/e2"), nil))
	for _, n := range t.getAll(owner, t.path("p1"), t.path("e1"), t.path("p2"), t.path("p2/e2")) {
		if want := n.Path == t.path("e1") || n.Path == t.path("p2/e2"); !n.Exists() || n.Ephemeral != want {
			t.fatalf("%s; ephemeral should be %v", show(n), want)
		}
	}
	if err := owner.Close(t.ctx); err != nil {
		t.fatalf("Close: %v", err)
	}
	t.sync(t.s)
	t.absent(t.s, t.path("e1"), t.path("p2/e2"))
	t.present(t.s, t.path("p1"))
	t.present(t.s, t.path("p2"))
}

func setKeepsEphemeral(t *caseRun) {
	owner := t.open()
	store := t.store(t.registry())
	paths := []string{t.path("own"), t.path("other"), t.path("any"), t.path("one of several"), t.path("store")}
	for _, p := range paths {
		t.commit(owner, registry.CreateEphemeral(p, nil))
	}
	t.sync(t.s)
	t.commit(owner, registry.Set(paths[0], []byte("x"), 0))
	t.commit(t.s, registry.Set(paths[1], []byte("x"), 0))
	t.commit(t.s, registry.Set(paths[2], []byte("x"), registry.AnyVersion))
	t.commit(t.s, registry.Create(t.path("p"), nil), registry.Set(paths[3], []byte("x"), 0), registry.Set(t.dir, nil, 0))
	if _, err := store.Commit(t.ctx, registry.Set(paths[4], []byte("x"), 0)); err != nil {
		t.fatalf("a store's commit: %v", err)
	}
	t.sync(owner)
	for _, n := range t.getAll(owner, paths...) {
		if !n.Ephemeral || !n.Owned || n.Version != 1 {
			t.fatalf("after a Set the owner reads %s", show(n))
		}
	}
	for _, n := range t.getAll(t.s, paths...) {
		if !n.Ephemeral || n.Owned {
			t.fatalf("after a Set another session reads %s", show(n))
		}
	}
	if err := owner.Close(t.ctx); err != nil {
		t.fatalf("Close: %v", err)
	}
	t.sync(t.s)
	t.absent(t.s, paths...)
}
