package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func rapidSequential(t *caseRun) {
	hits := map[Fate]int{} // 0: drops
	explore(t, plan[move]{
		steps:   movesOf(),
		simpler: simplerMove,
		try: func(t *caseRun, _ []registry.Session, moves []move) {
			q := newSequential(t, hits)
			for _, m := range moves {
				q.move(m)
			}
		},
	})
	for _, fate := range []Fate{0, AnswerLost, RequestLost} {
		if hits[fate] == 0 {
			t.void("no fault of the kind %s has hit", fate)
		}
	}
}

// sequential holds one session against a model of one.
type sequential struct {
	*caseRun
	model   registry.Session
	record  registry.Node         // what settles an uncertain commit
	shaky   bool                  // a connection broke: any commit may be uncertain now
	matches map[[2]int64]struct{} // revisions of the model and what they are here
	hits    map[Fate]int
	fate    Fate
	met     func() bool // of a fate that has not met a commit yet
}

func newSequential(t *caseRun, hits map[Fate]int) *sequential {
	reg := memory.NewServer(memory.Config{SessionTimeout: time.Hour}).Registry("model")
	t.Cleanup(func() { _ = reg.Close() })
	model, err := reg.Open(t.ctx)
	if err != nil {
		t.fatalf("Open of the model: %v", err)
	}
	q := &sequential{caseRun: t, model: model, record: registry.Node{Path: t.path("record")}, matches: map[[2]int64]struct{}{}, hits: hits}
	if err := registry.EnsurePath(t.ctx, model, q.record.Path); err != nil {
		t.fatalf("EnsurePath of the model: %v", err)
	}
	t.settled("create "+q.record.Path, func() error { return registry.EnsurePath(t.ctx, t.s, q.record.Path) })
	return q
}

// settled repeats what is idempotent until no connection breaks it.
func (t *caseRun) settled(what string, call func() error) {
	t.eventually(what, func() string {
		err := call()
		switch {
		case err == nil:
			return ""
		case errors.Is(err, registry.ErrUncertain), errors.Is(err, registry.ErrUnavailable):
			return err.Error()
		}
		t.fatalf("%s: %v", what, err)
		return ""
	})
}

func (q *sequential) move(m move) {
	switch m.kind {
	case moveDrop:
		q.drop(q.s)
		q.shaky = true
		q.hits[0]++
	case moveList:
		q.list(m.path)
	case moveCommit:
		q.commitBoth(m)
		q.same()
	}
}

// list compares the children of one path.
func (q *sequential) list(below string) {
	path := q.dir
	if below != "" {
		path = q.path(below)
	}
	got, err := q.s.Children(q.ctx, path)
	want, wantErr := q.model.Children(q.ctx, path)
	q.step("Children(%s) = %q, %v", path, got, err)
	if classOf(err) != classOf(wantErr) || !slices.Equal(got, want) {
		q.fatalf("Children(%s) = %q, %v; the model has %q, %v", path, got, err, want, wantErr)
	}
}

// commitBoth commits here and, once it is known what came of it, to the model. A
// commit that a fault may meet sets the record too, so that a conflicting write
// can settle it.
func (q *sequential) commitBoth(m move) {
	ops := q.opsOn(q.model, m.ops)
	settles := m.fate != 0 || q.shaky
	if settles {
		id := fmt.Appendf(nil, "commit at version %d", q.record.Version)
		ops = append(ops, registry.Set(q.record.Path, id, q.record.Version))
	}
	rev, err := q.commitUnder(m.fate, ops)
	switch {
	case errors.Is(err, registry.ErrUncertain) && settles:
		q.shaky = true
		if !q.settle(ops[len(ops)-1].Value) {
			return
		}
		if _, err := q.model.Commit(q.ctx, ops...); err != nil {
			q.fatalf("commit(%s) was applied; the model refuses it: %v", describe(ops), err)
		}
	case errors.Is(err, registry.ErrUnavailable) && q.shaky:
	default:
		q.agree(ops, rev, err)
	}
}

// commitUnder commits under a fate, which must meet it, unless an operation of it
// is refused: an adapter may find that out by a request that commits nothing. The
// fate then waits for the next commit.
func (q *sequential) commitUnder(fate Fate, ops []registry.Op) (registry.Revision, error) {
	if fate == 0 && q.met == nil {
		return q.try(q.ctx, q.s, ops...)
	}
	if q.met == nil {
		q.present(q.s, q.dir) // a broken connection is made again: the commit is sent
		met, err := q.h.Faults().NextCommit(q.s, fate)
		q.must("NextCommit: "+fate.String(), err)
		q.met, q.fate = met, fate
	}
	rev, err := q.try(q.ctx, q.s, ops...)
	q.shaky = true
	switch {
	case q.met():
		q.met = nil
		q.hits[q.fate]++
		q.isUncertain(err)
	case classOf(err) == "" && !errors.Is(err, registry.ErrUnavailable) && !errors.Is(err, registry.ErrUncertain):
		q.void("the fault has not met the commit")
	}
	return rev, err
}

// settle finds out what became of an uncertain commit by the rule of the
// contract: a conflicting write that is answered, or seen, rules it out for good.
func (q *sequential) settle(id []byte) (applied bool) {
	own := fmt.Appendf(nil, "settled at version %d", q.record.Version)
	set := registry.Set(q.record.Path, own, q.record.Version)
	var now registry.Node
	q.eventually("the record to change", func() string {
		_, err := q.try(q.ctx, q.s, set)
		if now = q.latest(q.s, q.record.Path); now.Version != q.record.Version {
			return ""
		}
		if err == nil || classOf(err) != "" {
			q.fatalf("the conflicting write = %v, and then the record is %s; it was at version %d", err, show(now), q.record.Version)
		}
		return err.Error()
	})
	applied = bytes.Equal(now.Value, id)
	if now.Version != q.record.Version+1 || (!applied && !bytes.Equal(now.Value, own)) {
		q.fatalf("the record is %s with value %q; want version %d by either the commit or the conflicting write", show(now), now.Value, q.record.Version+1)
	}
	q.step("settled: applied %v", applied)
	if !applied {
		if _, err := q.model.Commit(q.ctx, set); err != nil {
			q.fatalf("model: %v", err)
		}
	}
	q.record.Version++
	return applied
}

// agree commits ops to the model and compares what came of it.
func (q *sequential) agree(ops []registry.Op, rev registry.Revision, err error) {
	want, wantErr := q.model.Commit(q.ctx, ops...)
	if indexOf(err) != indexOf(wantErr) || classOf(err) != classOf(wantErr) || (err == nil) != (wantErr == nil) {
		q.fatalf("commit(%s) = %v; the model says %v", describe(ops), err, wantErr)
	}
	if err != nil {
		return
	}
	is := func(kind registry.OpKind) bool {
		return slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Kind == kind })
	}
	if is(registry.OpSet) {
		q.match("the revision of a commit that holds a Set", want, rev)
		if ops[len(ops)-1].Path == q.record.Path {
			q.record.Version++
		}
	}
}

// same compares every node, and the order of their revisions.
func (q *sequential) same() {
	paths := []string{q.record.Path}
	for _, p := range modelPaths() {
		paths = append(paths, q.path(p))
	}
	want, err := q.model.Get(q.ctx, paths...)
	if err != nil {
		q.fatalf("model: %v", err)
	}
	for i, n := range q.getAll(q.s, paths...) {
		w := want[i]
		if n.Exists() != w.Exists() || n.Version != w.Version || n.Ephemeral != w.Ephemeral || n.Owned != w.Owned || !bytes.Equal(n.Value, w.Value) {
			q.fatalf("the node is %s with value %q; the model has %s with value %q", show(n), n.Value, show(w), w.Value)
		}
		if n.Exists() {
			q.match("Created of "+n.Path, w.Created, n.Created)
			q.match("Modified of "+n.Path, w.Modified, n.Modified)
		}
	}
}

// match demands that revisions here have the order that those of the model have.
func (q *sequential) match(what string, model, here registry.Revision) {
	pair := [2]int64{int64(model), int64(here)}
	if _, known := q.matches[pair]; known {
		return
	}
	for m := range q.matches {
		if (m[0] < pair[0]) != (m[1] < pair[1]) || (m[0] == pair[0]) != (m[1] == pair[1]) {
			q.fatalf("%s is %d, which does not stand to %d as in the model: there %d to %d", what, pair[1], m[1], pair[0], m[0])
		}
	}
	q.matches[pair] = struct{}{}
}

// classOf names what a refused commit or list wraps; "" for anything else.
func classOf(err error) string {
	for _, class := range []error{
		registry.ErrNotFound, registry.ErrExists, registry.ErrVersion, registry.ErrNotEmpty, registry.ErrNoParent, registry.ErrEphemeralParent,
	} {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	return ""
}

// indexOf is the operation that a CommitError names, or -1.
func indexOf(err error) int {
	if ce := (*registry.CommitError)(nil); errors.As(err, &ce) {
		return ce.Index
	}
	return -1
}
