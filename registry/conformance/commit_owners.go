package conformance

import (
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

// nodesGoWithTheirOwners makes, refuses, deletes and makes again, by several sessions, and ends one of them.
func nodesGoWithTheirOwners(t *caseRun) {
	ephemeral, missing := registry.CreateEphemeral, registry.Check(t.path("missing"), registry.AnyVersion)
	for _, end := range []string{"closed", "expired"} {
		owner, other := t.open(), t.open()
		dir := t.path(end)
		t.create(t.s, dir, "")
		at := func(name string) string { return dir + "/" + name }
		var goes, stay []string

		// What is refused has made and unmade nobody's node.
		for i, op := range []registry.Op{
			registry.Delete(at("kept0"), 0), registry.Set(at("kept1"), []byte("x"), 0), registry.Delete(at("kept2"), registry.AnyVersion),
		} {
			t.commit(owner, ephemeral(op.Path, nil))
			by := []registry.Session{owner, owner, other}[i]
			t.refused(by, 1, registry.ErrNotFound, op, missing)
			goes = append(goes, op.Path)
		}
		t.refused(owner, 2, registry.ErrNotFound, ephemeral(at("never0"), nil), ephemeral(at("never1"), nil), missing)
		t.commit(other, registry.Create(at("never0"), nil), ephemeral(at("never1"), nil))
		stay = append(stay, at("never0"), at("never1"))

		// What was deleted, by whom ever, and made again belongs to who did that.
		for i, by := range []registry.Session{owner, other, other, owner} {
			p := at(fmt.Sprint("taken", i))
			t.commit(owner, ephemeral(p, nil))
			t.commit(by, registry.Delete(p, 0))
			maker, again := []registry.Session{other, other, t.s, owner}[i], registry.Create(p, nil)
			if i == 1 {
				again.Kind = registry.OpCreateEphemeral
			}
			t.commit(maker, again)
			stay = append(stay, p)
		}
		mine := at("mine") // the other way round
		t.commit(other, ephemeral(mine, nil))
		t.commit(owner, registry.Delete(mine, 0))
		t.commit(owner, ephemeral(mine, nil))
		goes = append(goes, mine)

		t.sync(owner)
		t.sync(t.s)
		for _, p := range goes {
			if n := t.present(owner, p); !n.Owned || n.Version != 0 {
				t.fatalf("the session that has made it reads %s", show(n))
			}
		}
		was := t.getAll(t.s, stay...)
		if end == "closed" {
			t.mustClose(owner)
		} else {
			t.must("Expire", t.h.Faults().Expire(owner))
		}
		t.goneSoon(t.s, goes...)
		t.still(nil)
		t.sync(t.s)
		for _, n := range was {
			t.unchanged(t.s, n)
		}
	}
}

// thousandGo has one session own more nodes than a service may handle at once.
func thousandGo(t *caseRun) {
	const count = 1200
	owner := t.open()
	var paths []string
	for i := range count {
		paths = append(paths, t.path(fmt.Sprintf("%04d", i)))
	}
	t.ownAll(owner, paths)
	t.mustClose(owner)
	t.sync(t.s)
	if left := t.children(t.s, t.dir); len(left) > 0 {
		t.fatalf("of %d ephemeral nodes of a session %d outlive its Close, %s first", count, len(left), left[0])
	}
	t.commit(t.s, registry.Create(paths[0], nil), registry.CreateEphemeral(paths[count-1], nil))
}

// revisionsOutliveRestart has what tells the newest revision be gone when the service starts again.
func revisionsOutliveRestart(t *caseRun) {
	const count = 8
	ops := func(op func(p string) registry.Op) []registry.Op { return t.each(count, op) }
	t.must("RestartServer", t.h.Faults().RestartServer()) // which its proof shows by nodes of its own
	first := t.open()
	for _, op := range ops(func(p string) registry.Op { return registry.Create(p, nil) }) {
		t.commit(first, op)
	}
	var newest registry.Revision
	for _, op := range ops(func(p string) registry.Op { return registry.Delete(p, 0) }) {
		newest = t.commit(first, op)
	}
	t.must("RestartServer again", t.h.Harness.Faults().RestartServer())
	next := t.open()
	if rev := t.commit(next, registry.Check(t.dir, 0)); rev < newest {
		t.fatalf("checks after the restart have revision %d; a Delete before it had %d", rev, newest)
	}
	for _, op := range ops(func(p string) registry.Op { return registry.Create(p, nil) }) {
		if rev := t.commit(next, op); rev <= newest {
			t.fatalf("a Create after the restart has revision %d; a Delete before it had %d", rev, newest)
		}
		if n := t.present(next, op.Path); n.Created <= newest {
			t.fatalf("after the restart %s was made; revision %d was given before", show(n), newest)
		}
	}
}

// deniedFirst is about commits with more than one operation that is denied, and with one that fails for another reason.
func (t *caseRun) deniedFirst(s registry.Session, open, secret string) {
	denied := []registry.Op{registry.Delete(secret, 7), registry.Create(secret+"/a", nil), registry.Check(secret+"/lock", 0)}
	for i := range denied {
		ops := append([]registry.Op{registry.Create(open+"/a", nil), denied[i]}, denied[(i+1)%3], denied[(i+2)%3], registry.Check(open, 7))
		t.refused(s, 1, registry.ErrDenied, ops...)
	}
	for _, bad := range []registry.Op{registry.Check(open, 7), registry.Set(open, nil, 7)} {
		ops := append([]registry.Op{bad}, denied...)
		_, err := t.try(t.ctx, s, ops...)
		if errors.Is(err, registry.ErrDenied) { // it looks at rights first
			t.isCommitError(err, 1, registry.ErrDenied, ops)
		} else {
			t.isCommitError(err, 0, registry.ErrVersion, ops)
		}
	}
	t.absent(s, open+"/a")
}
