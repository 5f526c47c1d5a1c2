package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

func checkExists(t *caseRun) {
	n := t.create(t.s, t.path("a"), "x")
	t.commit(t.s, registry.Check(n.Path, registry.AnyVersion), registry.Create(t.path("b"), nil))
	t.present(t.s, t.path("b"))
	t.unchanged(t.s, n)
}

func checkMissing(t *caseRun) {
	t.refused(t.s, 0, registry.ErrNotFound, registry.Check(t.path("a"), registry.AnyVersion), registry.Create(t.path("b"), nil))
	t.refused(t.s, 1, registry.ErrNotFound, registry.Create(t.path("b"), nil), registry.Check(t.path("a"), 0))
	t.absent(t.s, t.path("a"), t.path("b"))
}

func checkVersion(t *caseRun) {
	t.create(t.s, t.path("a"), "")
	t.commit(t.s, registry.Set(t.path("a"), nil, 0))
	was := t.present(t.s, t.path("a"))
	t.commit(t.s, registry.Check(was.Path, 1), registry.Create(t.path("b"), nil))
	for _, v := range []registry.Version{0, 2} {
		t.refused(t.s, 0, registry.ErrVersion, registry.Check(was.Path, v), registry.Create(t.path("c"), nil))
	}
	t.unchanged(t.s, was)
	t.absent(t.s, t.path("c"))
}

func checkOnly(t *caseRun) {
	a, b := t.create(t.s, t.path("a"), ""), t.create(t.s, t.path("b"), "")
	t.commit(t.s, registry.Check(a.Path, 0), registry.Check(b.Path, registry.AnyVersion))
	t.refused(t.s, 1, registry.ErrVersion, registry.Check(a.Path, 0), registry.Check(b.Path, 1))
	t.refused(t.s, 1, registry.ErrNotFound, registry.Check(a.Path, 0), registry.Check(t.path("c"), registry.AnyVersion))
	t.unchanged(t.s, a)
	t.unchanged(t.s, b)
}

func createParentAndChild(t *caseRun) {
	grandchildren := map[string]func(string, []byte) registry.Op{"a": registry.Create, "b": registry.CreateEphemeral}
	if t.c.store {
		delete(grandchildren, "b")
	}
	for name, grandchild := range grandchildren {
		top := t.path(name)
		op := grandchild(top+"/b/c", []byte("x"))
		t.commit(t.s, registry.Create(top, nil), registry.Create(top+"/b", nil), op)
		if n := t.present(t.s, op.Path); string(n.Value) != "x" || n.Ephemeral != isEphemeral(op) {
			t.fatalf("the grandchild is %s with value %q", show(n), n.Value)
		}
		t.hasChildren(t.s, top, "b")
	}
}

func deleteChildAndParent(t *caseRun) {
	for _, p := range []string{"a", "a/b", "a/b/c", "a/d"} {
		t.create(t.s, t.path(p), "")
	}
	t.commit(t.s, registry.Delete(t.path("a/b/c"), 0), registry.Delete(t.path("a/b"), 0),
		registry.Delete(t.path("a/d"), registry.AnyVersion), registry.Delete(t.path("a"), 0))
	t.absent(t.s, t.path("a"), t.path("a/b"), t.path("a/b/c"), t.path("a/d"))
	t.hasChildren(t.s, t.dir)
}

func orderMatters(t *caseRun) {
	t.refused(t.s, 0, registry.ErrNoParent, registry.Create(t.path("a/b"), nil), registry.Create(t.path("a"), nil))
	t.absent(t.s, t.path("a"), t.path("a/b"))
	p, c := t.create(t.s, t.path("p"), ""), t.create(t.s, t.path("p/c"), "")
	t.refused(t.s, 0, registry.ErrNotEmpty, registry.Delete(p.Path, 0), registry.Delete(c.Path, 0))
	t.unchanged(t.s, p)
	t.unchanged(t.s, c)
	e := t.create(t.s, t.path("empty"), "")
	t.refused(t.s, 1, registry.ErrNotEmpty, registry.Create(t.path("empty/new"), nil), registry.Delete(e.Path, 0))
	t.unchanged(t.s, e)
	t.absent(t.s, t.path("empty/new"))
}

func orderOfKinds(t *caseRun) {
	if !t.c.store {
		t.refused(t.s, 1, registry.ErrEphemeralParent,
			registry.CreateEphemeral(t.path("e"), nil), registry.Create(t.path("e/c"), nil))
	}
	p := t.create(t.s, t.path("p"), "")
	t.refused(t.s, 1, registry.ErrNoParent, registry.Delete(p.Path, 0), registry.Create(t.path("p/c"), nil))
	t.unchanged(t.s, p)
	t.commit(t.s, registry.Create(t.path("p/c"), nil), registry.Set(p.Path, []byte("x"), 0), registry.Create(t.path("p/d"), nil))
	t.hasChildren(t.s, p.Path, "c", "d")
	t.refused(t.s, 1, registry.ErrNotEmpty, registry.Delete(t.path("p/c"), 0), registry.Delete(p.Path, 1))
	t.hasChildren(t.s, p.Path, "c", "d")
}

func duplicatePath(t *caseRun) {
	n := t.create(t.s, t.path("a"), "")
	for _, ops := range [][]registry.Op{
		{registry.Create(t.path("b"), nil), registry.Create(t.path("b"), nil)},
		{registry.Check(n.Path, 0), registry.Set(n.Path, []byte("x"), 0)},
		{registry.Set(n.Path, []byte("x"), 0), registry.Set(n.Path, []byte("y"), 1)},
		{registry.Delete(n.Path, 0), registry.Create(n.Path, nil)},
		{registry.Check(n.Path, 0), registry.Create(t.path("b"), nil), registry.Check(n.Path, 0)},
	} {
		_, err := t.s.Commit(t.ctx, ops...)
		t.isInvalid("commit("+describe(ops)+")", err)
	}
	t.unchanged(t.s, n)
	t.absent(t.s, t.path("b"))
}

func emptyCommit(t *caseRun) {
	rev, err := t.s.Commit(t.ctx)
	t.isInvalid(fmt.Sprintf("commit() at revision %d", rev), err)
}

func invalidOp(t *caseRun) {
	n := t.create(t.s, t.path("a"), "")
	for _, op := range []registry.Op{
		{}, {Path: n.Path}, {Kind: 99, Path: n.Path}, {Kind: registry.OpDelete + 1, Path: n.Path},
		registry.Set(n.Path, nil, -2), registry.Delete(n.Path, -7), registry.Check(n.Path, -2),
	} {
		_, err := t.s.Commit(t.ctx, registry.Create(t.path("b"), nil), op)
		t.isInvalid(fmt.Sprintf("commit with %+v", op), err)
	}
	t.unchanged(t.s, n)
	t.absent(t.s, t.path("b"))
}

func commitOnLost(t *caseRun) {
	other := t.open()
	if err := t.s.Close(t.ctx); err != nil {
		t.fatalf("Close: %v", err)
	}
	for _, op := range []registry.Op{registry.Create(t.path("a"), nil), registry.CreateEphemeral(t.path("b"), nil)} {
		_, err := t.try(t.ctx, t.s, op)
		t.isError(err, registry.ErrSessionLost)
	}
	t.sync(other)
	t.absent(other, t.path("a"), t.path("b"))
}

func contextCancelled(t *caseRun) {
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	late, cancelLate := context.WithTimeout(t.ctx, -1)
	defer cancelLate()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		_, err := t.try(ctx, t.s, registry.Create(t.path("a"), nil))
		t.isError(err, want)
		if errors.Is(err, registry.ErrUncertain) || errors.Is(err, registry.ErrUnavailable) {
			t.fatalf("error %v; want the plain error of the context", err)
		}
	}
	t.commit(t.s, registry.Create(t.path("b"), nil))
	t.hasChildren(t.s, t.dir, "b")
}
