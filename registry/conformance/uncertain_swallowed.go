package conformance

import (
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// swallowed lets a connection break under commits of every kind, which no fault has picked.
func swallowed(t *caseRun) {
	const anyOne = registry.AnyVersion
	at := func(name string) string { return t.path(name) }
	mixtures := [][]registry.Op{
		{registry.Set(at("a"), []byte("new"), 0)},
		{registry.Set(at("a"), []byte("new"), anyOne)},
		{registry.Check(at("a"), 0)},
		{registry.Create(at("c"), nil)},
		{registry.CreateEphemeral(at("c"), nil)},
		{registry.Delete(at("d"), 0)},
		{registry.Delete(at("d"), anyOne)},
		{registry.Set(at("a"), []byte("new"), 0), registry.Check(at("b"), 0)},
		{registry.Check(at("b"), 0), registry.Check(at("a"), anyOne)},
		{registry.Set(at("a"), []byte("new"), 0), registry.Set(at("b"), []byte("new"), 0)},
		{registry.Set(at("a"), []byte("new"), 0), registry.Create(at("c"), nil), registry.Delete(at("d"), 0)},
		{registry.Check(at("a"), 0), registry.CreateEphemeral(at("c"), nil)},
	}
	for i, ops := range mixtures {
		t.swallow(Requests, ops)
		if i%3 == 0 {
			t.swallow(Answers, ops)
		}
	}
}

// swallow makes the nodes that ops are about, and lets them meet the fault.
func (t *caseRun) swallow(d Direction, ops []registry.Op) {
	t.commit(t.s, registry.Create(t.path("a"), nil), registry.Create(t.path("b"), nil), registry.Create(t.path("d"), nil))
	reg := t.registry()
	defer reg.Close()
	s := t.openOn(reg)
	t.present(s, t.dir)
	heal, err := t.h.Faults().Blackhole(s, d)
	t.must("Blackhole "+d.String(), err)
	defer heal()
	healed := time.AfterFunc(t.h.SessionTimeout()/10, heal)
	defer healed.Stop()
	_, err = t.try(t.within(t.h.SessionTimeout()/2), s, ops...)
	heal()
	t.proveHit(s)
	t.isUncertain(err)
	t.sync(s) // what would be sent again has been
	applied := func() bool {
		t.sync(t.s)
		done := 0
		for i, n := range t.getAll(t.s, paths(ops)...) {
			switch op := ops[i]; {
			case n.Version > 1:
				t.fatalf("commit(%s), swallowed, was applied more than once: %s", describe(ops), show(n))
			case op.Kind == registry.OpDelete && !n.Exists(), op.Kind == registry.OpSet && n.Version == 1,
				(op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral) && n.Exists():
				done++
			}
		}
		return done > 0
	}
	if d == Answers && ops[0].Kind != registry.OpCheck {
		t.eventually("the commit to be applied", func() string {
			if applied() {
				return ""
			}
			return "it is not: the fault has lost the request too"
		})
	}
	if d == Requests && applied() {
		t.fatalf("the request of commit(%s) was swallowed, and it was applied: somebody sent it again", describe(ops))
	}
	t.removed()
}

// removed clears the run's part of the tree.
func (t *caseRun) removed() {
	for _, name := range t.children(t.s, t.dir) {
		if _, err := t.s.Commit(t.ctx, registry.Delete(t.path(name), registry.AnyVersion)); err != nil {
			t.fatalf("Delete of %s: %v", name, fmt.Errorf("when all was over: %w", err))
		}
	}
}

func paths(ops []registry.Op) []string {
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = op.Path
	}
	return all
}
