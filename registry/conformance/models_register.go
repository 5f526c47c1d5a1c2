package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/elasticron/elasticron/registry"
)

// A register is the state of one node that is never deleted.
type register struct {
	value    string
	version  registry.Version
	modified registry.Revision
	after    bool // Modified is after modified: an unknown commit was the last
}

// A registerCall reads, or sets: at a version or at any.
type registerCall struct {
	read  bool
	value string
	at    registry.Version
}

func (c registerCall) String() string {
	switch {
	case c.read:
		return "sync, read"
	case c.at == registry.AnyVersion:
		return fmt.Sprintf("set %s", c.value)
	}
	return fmt.Sprintf("set %s at version %d", c.value, c.at)
}

// A registerAnswer is a node that was read, the revision of a set, or its refusal.
type registerAnswer struct {
	refused  bool
	value    string
	version  registry.Version
	modified registry.Revision
}

func (a registerAnswer) String() string {
	switch {
	case a.refused:
		return "refused, another version"
	case a.value == "":
		return fmt.Sprintf("done at revision %d", a.modified)
	}
	return fmt.Sprintf("%s, version %d, modified %d", a.value, a.version, a.modified)
}

func registerModel(first register) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, in, out any) (bool, any) {
			s, c := state.(register), in.(registerCall)
			a, known := out.(registerAnswer)
			if c.read {
				return s.reads(a)
			}
			return s.set(c, a, known)
		},
	}
}

func (s register) reads(a registerAnswer) (bool, register) {
	fits := a.value == s.value && a.version == s.version && (a.modified == s.modified || s.after && a.modified > s.modified)
	s.modified, s.after = a.modified, false
	return fits, s
}

func (s register) set(c registerCall, a registerAnswer, known bool) (bool, register) {
	applies := c.at == registry.AnyVersion || c.at == s.version
	switch {
	case known && a.refused:
		return !applies, s
	case !applies:
		return !known, s // an unknown one that comes too late does nothing
	case !known:
		return true, register{c.value, s.version + 1, s.modified, true}
	}
	return a.modified > s.modified, register{c.value, s.version + 1, a.modified, false}
}

func linearizableRegister(t *caseRun) {
	const clients, rounds = 5, 26
	h := newHistory(t)
	paths := []string{t.path("a"), t.path("b"), t.path("c")}
	for _, p := range paths {
		t.create(t.s, p, "first")
	}
	h.run(clients, rounds, func(c *actor) {
		path := paths[c.dice.IntN(len(paths))]
		in := registerCall{value: fmt.Sprintf("%d.%d", c.nr, c.round), at: registry.AnyVersion}
		if version, known := c.readRegister(path); known && c.dice.IntN(2) == 0 {
			in.at = version
		}
		c.under(c.harm(), func(ctx context.Context) { c.setRegister(ctx, path, in) })
		c.readRegister(path)
	})
	last := &actor{history: h, name: "at the end", s: t.open()}
	for _, path := range paths {
		last.readRegister(path)
	}
	h.explained(registerModel(register{value: "first", after: true}), kindsOf()...)
}

func (c *actor) readRegister(path string) (registry.Version, bool) {
	nodes, call, ret := c.reads(c.ctx, path)
	if nodes == nil {
		return 0, false
	}
	n := nodes[0]
	c.add(act{client: c.name, key: path, call: call, ret: ret, in: registerCall{read: true}, harmless: true,
		out: registerAnswer{value: string(n.Value), version: n.Version, modified: n.Modified}})
	return n.Version, true
}

func (c *actor) setRegister(ctx context.Context, path string, in registerCall) {
	call := c.now()
	rev, err := c.s.Commit(ctx, registry.Set(path, []byte(in.value), in.at))
	ret := c.now()
	out, tells := c.outcome(err, registerAnswer{modified: rev}, registerAnswer{refused: true})
	if tells && (classOf(err) == "" || errors.Is(err, registry.ErrVersion)) {
		c.add(act{client: c.name, key: path, call: call, ret: ret, in: in, out: out})
	} else if tells {
		c.errorf("%s: %s of %s: %v; the node exists", c.name, in, path, err)
	}
}
