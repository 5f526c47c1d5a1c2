package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

const ownershipDoc = "package doc, Guarantees: what is passed, what is returned"

// scribble writes over what its owner may write over, to which append too could write.
func scribble(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = '#'
	}
}

// roomy is a copy to which append can write.
func roomy[T any](s []T) []T { return append(make([]T, 0, len(s)+4), s...) }

// callersKeep passes what it scribbles over as soon as the call has returned.
func callersKeep(t *caseRun) {
	const right = "the right value"
	send := func(s registry.Session, what string, fate Fate, ops ...registry.Op) error {
		was := make([]registry.Op, len(ops))
		for i, op := range ops {
			was[i] = op
			was[i].Value = bytes.Clone(op.Value)
			ops[i].Value = roomy(op.Value)
		}
		ops = roomy(ops)
		if fate != 0 {
			hit, err := t.h.Faults().NextCommit(s, fate)
			t.must("NextCommit: "+fate.String(), err)
			defer func() {
				if !hit() {
					t.void("the fault has not met the commit")
				}
			}()
		}
		_, err := t.try(t.ctx, s, ops...)
		for i, op := range ops {
			if op.Kind != was[i].Kind || op.Path != was[i].Path || op.Version != was[i].Version || !bytes.Equal(op.Value, was[i].Value) {
				t.fatalf("%s: operation %d was %+v before the call, and is %+v", what, i, was[i], op)
			}
			if room := op.Value[len(op.Value) : len(op.Value)+1]; room[0] != 0 || ops[:len(ops)+1][len(ops)].Kind != 0 {
				t.fatalf("%s: behind the operations or their values, where the caller's slices go on, something was written", what)
			}
			scribble(op.Value)
			ops[i] = registry.Op{}
		}
		return err
	}
	reader := t.open()
	isRight := func(path string) {
		t.eventually("the commit to be applied", func() string {
			if n := t.latest(reader, path); !n.Exists() {
				return show(n)
			} else if string(n.Value) != right {
				t.fatalf("value %q after the caller reused its buffer; want %q", n.Value, right)
			}
			return ""
		})
	}
	f := t.syncedOn(reader, t.dir, registry.Children)
	for i, fate := range []Fate{0, AnswerLost} {
		a, b := t.path(fmt.Sprint("a", i)), t.path(fmt.Sprint("b", i))
		err := send(t.s, fmt.Sprint("commit, fate ", fate), fate, registry.Create(a, []byte(right)), registry.CreateEphemeral(b, []byte(right)))
		if fate == 0 && err != nil {
			t.fatalf("commit: %v", err)
		}
		t.still(nil) // time for whoever reads them still
		isRight(a)
		isRight(b)
		f.becomes(a, right)
	}
	err := send(t.s, "refused commit", 0, registry.Set(t.path("none"), []byte(right), 0))
	if ce := (*registry.CommitError)(nil); !errors.As(err, &ce) || ce.Op.Path != t.path("none") || string(ce.Op.Value) != right {
		t.fatalf("after the caller reused its buffer the refusal is %+v; want the operation as it was", err)
	}
	if err := send(t.s, "invalid commit", 0, registry.Create("no path", []byte(right)), registry.Create(t.path("c"), []byte(right))); !errors.Is(err, registry.ErrInvalid) {
		t.fatalf("error %v; want ErrInvalid", err)
	}
	paths := roomy([]string{t.path("b0"), t.path("a0"), t.path("b0"), t.path("none")})
	was := slices.Clone(paths)
	if _, err := t.s.Get(t.ctx, paths...); err != nil || !slices.Equal(paths, was) {
		t.fatalf("Get (%v) made %q of the paths %q", err, paths, was)
	}
	if room := paths[:len(paths)+1]; room[len(paths)] != "" {
		t.fatalf("Get wrote %q behind the paths, where the caller's slice goes on", room[len(paths)])
	}
	value := []byte(right)
	l, err := t.s.Lock(t.ctx, t.path("lock"), value)
	if err != nil || string(value) != right {
		t.fatalf("Lock (%v) made %q of the value %q", err, value, right)
	}
	scribble(value)
	isRight(l.Path())
	t.release(l)
}

// readersOwn scribbles over what it was given, and looks at what others were given.
func readersOwn(t *caseRun) {
	const right = "the right value"
	path := t.path("a")
	t.create(t.s, path, right)
	holds := func(who string, n registry.Node) {
		if string(n.Value) != right {
			t.fatalf("%s holds %q after another reader changed what it had been given; want %q", who, n.Value, right)
		}
	}
	nodes := t.getAll(t.s, path, path, t.dir, path)
	holds("the first of a path that was asked for three times", nodes[0])
	scribble(nodes[0].Value)
	holds("the second", nodes[1])
	scribble(nodes[1].Value)
	holds("the third", nodes[3])
	scribble(nodes[3].Value)
	holds("a later Get", t.present(t.s, path))
	names := t.children(t.s, t.dir)
	names[0] = "scribbled"
	if names := t.children(t.s, t.dir); !slices.Equal(names, []string{"a"}) {
		t.fatalf("a later Children gives %q", names)
	}
	var watchers []registry.Watcher
	reg := t.registry()
	for _, s := range []registry.Session{t.s, t.s, t.openOn(reg), t.openOn(reg)} {
		w := t.watch(s)
		for _, target := range []target{{path, registry.Self}, {t.dir, registry.Children}} {
			if err := w.Add(target.path, target.scope); err != nil {
				t.fatalf("Add: %v", err)
			}
		}
		watchers = append(watchers, w)
	}
	for round := range 3 {
		if round > 0 {
			t.commit(t.s, registry.Set(path, []byte(right), registry.AnyVersion))
		}
		var batches [][]registry.Event
		for _, w := range watchers {
			batches = append(batches, t.both(w, round))
		}
		for i, batch := range batches {
			for k := range batch {
				if batch[k].Node.Path == path {
					holds(fmt.Sprintf("round %d: event %d of watcher %d", round, k, i), batch[k].Node)
					scribble(batch[k].Node.Value)
				}
				batch[k] = registry.Event{}
			}
		}
		holds("a Get after the events", t.present(t.s, path))
	}
}

// both consumes w until both targets have told the state of the round.
func (t *caseRun) both(w registry.Watcher, round int) []registry.Event {
	var all []registry.Event
	seen := map[registry.Scope]bool{}
	for len(seen) < 2 {
		events, err := w.Next(t.ctx)
		if err != nil {
			t.fatalf("Next: %v", err)
		}
		for _, e := range events {
			if !e.Synced && e.Node.Version == registry.Version(round) {
				seen[e.Scope] = true
			}
		}
		all = append(all, events...)
	}
	return all
}
