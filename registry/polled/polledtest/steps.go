package polledtest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// races is how often what must be one step is tried against another one.
const races = 40

func (a *auditor) commit(session string, ops ...registry.Op) registry.Revision {
	rev, err := a.Commit(a.ctx, session, ops)
	a.must("Commit", err, true, "")
	return rev
}

func (a *auditor) read(paths, dirs []string) []polled.Node {
	nodes, err := a.Read(a.ctx, paths, dirs)
	a.must("Read", err, true, "")
	return nodes
}

// keepsNothing has the caller use its bytes, and what it was given, for something else.
func (a *auditor) keepsNothing() {
	for _, size := range []int{5, 70_000} {
		right := bytes.Repeat([]byte("r"), size)
		value := bytes.Clone(right)
		for _, op := range []registry.Op{registry.Create(auditPath, value), registry.Set(auditPath, value, 0)} {
			copy(value, right)
			ops := []registry.Op{op}
			_, err := a.Commit(a.ctx, polled.NoSession, ops)
			a.must("Commit", err, bytes.Equal(value, right), "it changed the value that it was passed")
			clear(value)
			ops[0] = registry.Op{}
			for range 2 {
				nodes := a.read([]string{auditPath}, []string{"/"})
				for _, n := range nodes {
					if n.Path == auditPath {
						a.must("Commit, or Read", nil, bytes.Equal(n.Value, right),
							"a %s of %d bytes reads as %.10q after its caller, or a reader, used them for something else", op.Kind, size, n.Value)
						clear(n.Value)
					}
				}
			}
		}
		a.commit(polled.NoSession, registry.Delete(auditPath, 1))
	}
}

// readsOneMoment looks at a directory that comes and goes with its node.
func (a *auditor) readsOneMoment() {
	const below = auditPath + "/a"
	ctx, cancel := context.WithCancel(a.ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_, _ = a.Commit(a.ctx, polled.NoSession, []registry.Op{registry.Create(auditPath, nil), registry.Create(below, nil)})
			_, _ = a.Commit(a.ctx, polled.NoSession, []registry.Op{registry.Delete(below, 0), registry.Delete(auditPath, 0)})
		}
	})
	defer writer.Wait()
	defer cancel()
	for i := 0; i < 5*races && a.err == nil; i++ {
		nodes := a.read([]string{auditPath}, []string{auditPath})
		a.must("Read", nil, len(nodes) != 1, "of a node and its child, which come and go in one step, it gave one: not as they were at one moment")
	}
}

// endsAndCommits has a session end while it commits, so that it may be found alive before the step and not in it.
func (a *auditor) endsAndCommits() {
	for range races {
		session := a.begin()
		var end sync.WaitGroup
		end.Go(func() { _ = a.End(a.ctx, session, polled.AnyBeat) })
		_, err := a.Commit(a.ctx, session, []registry.Op{registry.CreateEphemeral(auditPath, nil)})
		end.Wait()
		if left := a.read([]string{auditPath}, nil); len(left) > 0 {
			a.must("Commit", nil, false, "an ephemeral node is left of a session that ended meanwhile (%v)", err)
		}
		if a.err != nil {
			return
		}
	}
}

// rings listens to a bell while nodes are made, set and deleted in each way, and demands that it tells of all.
func (a *auditor) rings() {
	bell, is := a.Store.(polled.Bell)
	if !is {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	steps, ended := make(chan polled.Step), make(chan error, 1)
	var listening sync.WaitGroup
	listening.Go(func() {
		ended <- bell.Listen(ctx, func(step polled.Step) {
			select {
			case steps <- step:
			case <-ctx.Done():
			}
		})
	})
	defer func() { cancel(); listening.Wait() }()
	next := func(what string) (step polled.Step) {
		select {
		case step = <-steps:
		case err := <-ended:
			a.must("Listen", nil, false, "it ended before it told of %s: %v", what, err)
		case <-time.After(auditTimeout):
			a.must("Listen", nil, false, "it did not tell of %s", what)
		}
		return step
	}
	begun := next("its begin")
	a.must("Listen", nil, begun.Unknown, "its first step is %+v; want Unknown", begun)
	session, one, two := a.begin(), auditPath, auditPath+"/a"
	last := begun.Revision
	for _, write := range a.writes(session, one, two) {
		if a.err != nil {
			return
		}
		rev := write.do()
		step := next(write.what)
		a.must("Listen", nil, step.Revision > last && (rev == 0 || step.Revision == rev),
			"%s has revision %d, and rang as %d, after %d", write.what, rev, step.Revision, last)
		for _, p := range write.wrote {
			a.must("Listen", nil, step.Unknown || slices.Contains(step.Paths, p), "%s rang with the paths %q; want %s too", write.what, step.Paths, p)
		}
		last = step.Revision
	}
}

// A write is a step that a bell is to tell.
type write struct {
	what  string
	wrote []string                 // paths
	do    func() registry.Revision // 0: that is not known
}

// writes are to be done in their order.
func (a *auditor) writes(session, one, two string) []write {
	commit := func(session string, ops ...registry.Op) func() registry.Revision {
		return func() registry.Revision { return a.commit(session, ops...) }
	}
	return []write{
		{"a create", []string{one}, commit(session, registry.Create(one, nil))},
		{"a create and a Set", []string{one, two}, commit(session, registry.CreateEphemeral(two, nil), registry.Set(one, nil, 0))},
		{"a Set", []string{two}, commit(session, registry.Check(one, 1), registry.Set(two, []byte("x"), 0))},
		{"a Delete", []string{two}, commit(session, registry.Delete(two, 1))},
		{"a create again", []string{two}, commit(session, registry.CreateEphemeral(two, nil))},
		{"an End", []string{two}, func() registry.Revision {
			a.must("End", a.End(a.ctx, session, polled.AnyBeat), true, "")
			return 0
		}},
		{"the last Delete", []string{one}, commit(polled.NoSession, registry.Delete(one, registry.AnyVersion))},
	}
}
