package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// watchToldCases are about what a watch tells: bytes as they are, nothing that was not applied, and all of it, however
// late it is asked for and whoever calls beside.
var watchToldCases = []testCase{
	{name: "ValuesInEveryState", rules: "R6 R26 R76", run: valuesInEveryState, place: "registry.Event.Node, package doc, The tree",
		rule: "values arrive byte for byte: in the first state, as a change, and after an outage"},
	{name: "UnappliedIsNotTold", rules: "R17 R26", run: unappliedIsNotTold, needs: life, place: "registry.Event.Node, Store.Commit",
		rule: "a commit that was not applied is not delivered, by its own session either, whatever it failed with"},
	{name: "OutlivesSilence", rules: "R26", run: outlivesSilence, place: watcherDoc,
		rule: "a watch at which nothing happens, or whose consumer is away, for longer than a session's timeout goes on and has lost nothing"},
	{name: "CallsAtOnce", rules: "R55 R63", run: watchCallsAtOnce, place: "package doc, Concurrency; registry.Watcher",
		rule: "Add and Remove of a watcher may be called by many at once, beside a Next, and each does what it does alone"},
}

// valuesInEveryState sets values, each of them at another node in each round.
func valuesInEveryState(t *caseRun) {
	reader, values := t.open(), encoded()
	for _, size := range []int{512, 4 << 10, 65 << 10, registry.PortableLimits().MaxValue} {
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(i)
		}
		values = append(values, value)
	}
	values = append(values, nil, []byte("  "), []byte("end  "), []byte("\n"), []byte("\x00\x00"))
	path := func(i int) string { return t.path(fmt.Sprintf("n%03d", i)) }
	var f *follower
	for round, write := range []func(write func()){
		func(write func()) { write() },
		func(write func()) { write() },
		func(write func()) { t.cutOff(reader, write) },
	} {
		value := func(i int) []byte { return values[(i+round)%len(values)] }
		revs := make([]registry.Revision, len(values))
		write(func() { t.writeAll(round, path, value, revs) })
		if round == 0 {
			t.sync(reader)
			f = t.follow(reader)
			f.add(t.dir, registry.Children)
			for i := range values {
				f.add(path(i), registry.Self)
			}
		}
		for i, rev := range revs {
			for _, g := range []target{{t.dir, registry.Children}, {path(i), registry.Self}} {
				if n := f.arrives(g, path(i), rev); !bytes.Equal(n.Value, value(i)) {
					t.fatalf("round %d (first states, changes, after an outage): %.40q, %d bytes, arrived at %s as %.40q, %d bytes",
						round, value(i), len(value(i)), g, n.Value, len(n.Value))
				}
			}
		}
	}
}

// writeAll creates nodes, or sets them, in few commits, and says at which revisions.
func (t *caseRun) writeAll(round int, path func(int) string, value func(int) []byte, revs []registry.Revision) {
	var ops []registry.Op
	size := 0
	flush := func(upTo int) {
		if len(ops) == 0 {
			return
		}
		rev := t.commit(t.s, ops...)
		for i := upTo - len(ops); i < upTo; i++ {
			revs[i] = rev
		}
		ops, size = nil, 0
	}
	for i := range revs {
		op := registry.Create(path(i), value(i))
		if round > 0 {
			op = registry.Set(path(i), value(i), registry.AnyVersion)
		}
		if size += len(op.Path) + len(op.Value); size > registry.PortableLimits().MaxBytes/2 || len(ops) == 20 {
			flush(i)
			size = len(op.Path) + len(op.Value)
		}
		ops = append(ops, op)
	}
	flush(len(revs))
}

// unappliedIsNotTold has a session watch what its own commits would have written.
func unappliedIsNotTold(t *caseRun) {
	other, a, b := t.open(), t.path("a"), t.path("b")
	t.create(t.s, a, "old")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(a, registry.Self)
	f.add(b, registry.Self)
	f.synced(b, registry.Self)
	would := []registry.Op{registry.Set(a, []byte("new"), 0), registry.Create(b, []byte("new"))}
	for _, fails := range []struct {
		op   registry.Op
		want error
	}{
		{registry.Check(t.dir, 77), registry.ErrVersion}, {registry.Check(t.path("none"), 0), registry.ErrNotFound},
		{registry.Create(t.path("no/parent"), nil), registry.ErrNoParent}, {registry.Create(t.dir, nil), registry.ErrExists},
	} {
		t.refused(t.s, 2, fails.want, append(slices.Clone(would), fails.op)...)
		t.refused(t.s, 1, fails.want, registry.Delete(a, 0), fails.op)
	}
	_, err := t.s.Commit(t.ctx, append(slices.Clone(would), registry.Create("no path", nil))...)
	t.isInvalid("commit with a path that cannot be", err)
	for _, ctx := range t.ended() {
		_, err := t.s.Commit(ctx, would...)
		t.step("commit with an ended context = %v", err)
	}
	t.uncertain(t.s, RequestLost, would...)
	t.uncertain(t.s, RequestLost, registry.Delete(a, 0))
	t.still(nil)
	rev := t.commit(other, registry.Set(a, []byte("end"), 0), registry.Create(b, []byte("end")))
	f.arrives(target{a, registry.Self}, a, rev)
	f.arrives(target{b, registry.Self}, b, rev)
	f.arrives(target{t.dir, registry.Children}, b, rev)
	for _, e := range f.events() {
		n := e.Node
		was := n.Path == a && string(n.Value) == "old" || n.Path == b && !n.Exists() && e.Scope == registry.Self
		if !e.Synced && !was && (n.Modified != rev || string(n.Value) != "end") {
			t.fatalf("the watch of %s delivered %s with value %q, which no commit that was applied has written",
				target{e.Path, e.Scope}, show(n), n.Value)
		}
	}
}

// outlivesSilence lets more than a session's timeout pass.
func outlivesSilence(t *caseRun) {
	writer, d := t.open(), t.path("quiet")
	t.commit(t.s, registry.Create(d, nil), registry.Create(d+"/a", []byte("0")))
	waits, away := t.syncedOn(t.s, d, registry.Children), t.watch(t.s)
	waits.add(d+"/none", registry.Self)
	waits.synced(d+"/none", registry.Self)
	t.called("Add", away.Add(d, registry.Children))
	t.drain(away, func(e registry.Event) bool { return e.Synced })
	rev := t.commit(writer, registry.Set(d+"/a", []byte("1"), 0))
	waits.arrives(target{d, registry.Children}, d+"/a", rev)
	t.elapse(t.h.SessionTimeout() * 5 / 4)
	rev = t.commit(writer, registry.Create(d+"/none", []byte("2")))
	waits.arrives(target{d, registry.Children}, d+"/none", rev)
	waits.arrives(target{d + "/none", registry.Self}, d+"/none", rev)
	told := map[string]string{}
	ctx, cancel := context.WithTimeout(t.ctx, t.waits())
	defer cancel()
	for told[d+"/a"] != "1" || told[d+"/none"] != "2" {
		events, err := away.Next(ctx)
		if err != nil {
			t.fatalf("Next of a consumer that was away for %v told %q, and then: %v; want what was set before and after",
				t.h.SessionTimeout()*5/4, told, err)
		}
		for _, e := range events {
			told[e.Node.Path] = string(e.Node.Value)
		}
	}
	t.alive(t.s)
}

// watchCallsAtOnce adds targets to a watcher that waits in Next, and to one at which targets are removed as well.
func watchCallsAtOnce(t *caseRun) {
	const callers, each = 8, 10
	waits, both := t.follow(t.s), t.unread(t.s)
	path := func(caller, i int) string { return t.path(fmt.Sprintf("%d-%d", caller, i)) }
	var calls sync.WaitGroup
	for c := range callers {
		calls.Go(func() {
			for i := range each {
				waits.add(path(c, i), registry.Self)
				waits.w.Remove(path(c, i), registry.Children) // which nobody has added
			}
		})
		calls.Go(func() {
			for i := range each {
				both.add(path(c, i), registry.Self)
				if i%2 == 1 {
					both.remove(path(c, i), registry.Self)
				}
			}
		})
	}
	calls.Wait()
	for c := range callers {
		ops := make([]registry.Op, each)
		for i := range each {
			waits.synced(path(c, i), registry.Self)
			if i%2 == 0 {
				both.synced(path(c, i), registry.Self)
			}
			ops[i] = registry.Create(path(c, i), []byte("x"))
		}
		rev := t.commit(t.s, ops...)
		for i := range each {
			waits.arrives(target{path(c, i), registry.Self}, path(c, i), rev)
			if i%2 == 0 {
				both.arrives(target{path(c, i), registry.Self}, path(c, i), rev)
			}
		}
	}
}
