package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/elasticron/elasticron/registry"
)

// modelKeys is how many nodes the commits of LinearizableCommit are about.
const modelKeys = 4

// allNodes is what the one history of commits is about.
const allNodes = "all nodes"

// A cell is one node; the zero value is absent.
type cell struct {
	exists  bool
	version registry.Version
	value   string
}

func (c cell) String() string {
	if !c.exists {
		return "absent"
	}
	return fmt.Sprintf("%s, version %d", c.value, c.version)
}

// cells are all nodes, and the revision of the last commit that told its own.
type cells struct {
	nodes    [modelKeys]cell
	revision registry.Revision
}

// A cellOp is an operation on the node of a number.
type cellOp struct {
	key int
	registry.Op
}

func (o cellOp) String() string {
	if o.Kind == registry.OpCreate {
		return fmt.Sprintf("create %d %s", o.key, o.Value)
	}
	return fmt.Sprintf("%s %d %s at version %d", o.Kind, o.key, o.Value, o.Version)
}

// A cellsCall reads the node of a number, or commits.
type cellsCall struct {
	read int // when there are no ops
	ops  []cellOp
}

func (c cellsCall) String() string {
	if c.ops == nil {
		return fmt.Sprint("sync, read ", c.read)
	}
	texts := make([]string, len(c.ops))
	for i, op := range c.ops {
		texts[i] = op.String()
	}
	return "commit(" + strings.Join(texts, "; ") + ")"
}

// A cellsAnswer is a node, or what came of a commit.
type cellsAnswer struct {
	node     cell
	revision registry.Revision // 0: not told
	failed   int               // the operation that was refused, from 1
	class    string
}

func (a cellsAnswer) String() string {
	switch {
	case a.failed > 0:
		return fmt.Sprintf("refused at operation %d: %s", a.failed-1, a.class)
	case a.revision > 0:
		return fmt.Sprintf("done at revision %d", a.revision)
	}
	return a.node.String()
}

var cellsModel = porcupine.Model{
	Init: func() any { return cells{} },
	Step: func(state, in, out any) (bool, any) {
		s, c := state.(cells), in.(cellsCall)
		a, known := out.(cellsAnswer)
		if c.ops == nil {
			return s.nodes[c.read] == a.node, s
		}
		next, failed, class := s.commit(c.ops)
		switch {
		case !known:
			return true, next
		case failed > 0 || a.failed > 0:
			return failed == a.failed && class == a.class, s
		case a.revision > 0:
			next.revision = a.revision
			return a.revision > s.revision, next
		}
		return true, next
	},
}

// commit is all of ops or none; failed counts from 1.
func (s cells) commit(ops []cellOp) (next cells, failed int, class string) {
	next = s
	for i, op := range ops {
		n := &next.nodes[op.key]
		switch {
		case op.Kind == registry.OpCreate && n.exists:
			return s, i + 1, registry.ErrExists.Error()
		case op.Kind == registry.OpCreate:
			*n = cell{exists: true, value: string(op.Value)}
		case !n.exists:
			return s, i + 1, registry.ErrNotFound.Error()
		case op.Version != n.version:
			return s, i + 1, registry.ErrVersion.Error()
		case op.Kind == registry.OpSet:
			n.version, n.value = n.version+1, string(op.Value)
		case op.Kind == registry.OpDelete:
			*n = cell{}
		}
	}
	return next, 0, ""
}

func linearizableCommit(t *caseRun) {
	const clients, rounds = 4, 26
	h := newHistory(t)
	h.run(clients, rounds, func(c *actor) {
		seen, ok := c.readCells()
		if !ok {
			return
		}
		in := cellsCall{ops: c.cellOps(seen)}
		c.under(c.harm(), func(ctx context.Context) { c.commitCells(ctx, in) })
	})
	(&actor{history: h, name: "at the end", s: t.open()}).readCells()
	h.explained(cellsModel, kindsOf()...)
}

func (t *caseRun) cellPath(key int) string { return t.path(fmt.Sprint("key-", key)) }

// readCells reads all nodes: each is of its own moment.
func (c *actor) readCells() (seen [modelKeys]cell, ok bool) {
	var paths []string
	for k := range modelKeys {
		paths = append(paths, c.cellPath(k))
	}
	nodes, call, ret := c.reads(c.ctx, paths...)
	for k, n := range nodes {
		if n.Exists() {
			seen[k] = cell{true, n.Version, string(n.Value)}
		}
		c.add(act{client: c.name, key: allNodes, call: call, ret: ret, in: cellsCall{read: k}, out: cellsAnswer{node: seen[k]}, harmless: true})
	}
	return seen, nodes != nil
}

// cellOps are two or three operations that would succeed on what was seen.
func (c *actor) cellOps(seen [modelKeys]cell) []cellOp {
	keys := c.dice.Perm(modelKeys)[:2+c.dice.IntN(2)]
	var ops []cellOp
	for i, k := range keys {
		value := fmt.Appendf(nil, "%d.%d.%d", c.nr, c.round, i)
		path, dice := c.cellPath(k), c.dice.IntN(8)
		switch {
		case !seen[k].exists:
			ops = append(ops, cellOp{k, registry.Create(path, value)})
		case dice < 2:
			ops = append(ops, cellOp{k, registry.Check(path, seen[k].version)})
		case dice < 3:
			ops = append(ops, cellOp{k, registry.Delete(path, seen[k].version)})
		default:
			ops = append(ops, cellOp{k, registry.Set(path, value, seen[k].version)})
		}
	}
	return ops
}

func (c *actor) commitCells(ctx context.Context, in cellsCall) {
	ops := make([]registry.Op, len(in.ops))
	for i, op := range in.ops {
		ops[i] = op.Op
	}
	call := c.now()
	rev, err := c.s.Commit(ctx, ops...)
	ret := c.now()
	if writes := ops[len(ops)-1].Kind; err == nil && writes == registry.OpCheck {
		rev = 0 // it may be that of nothing
	}
	out, tells := c.outcome(err, cellsAnswer{revision: rev}, cellsAnswer{failed: indexOf(err) + 1, class: classOf(err)})
	if tells {
		c.add(act{client: c.name, key: allNodes, call: call, ret: ret, in: in, out: out})
	}
	if err != nil && errors.Is(err, registry.ErrNoParent) {
		c.errorf("%s: %v", c.name, err)
	}
}
