package conformance

import (
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

// watchApartCases are about what is easily taken for the same: targets, incarnations, states, slices.
var watchApartCases = []testCase{
	{name: "LooksTheSame", rules: "R26 R28", run: looksTheSame, place: watcherDoc,
		rule: "what changed between two calls of Next arrives, also where the node looks as it did: its revisions tell"},
	{name: "RemoveIsOfOneTarget", rules: "R26 R63", run: removeIsOfOne, place: "Watcher.Remove",
		rule: "Remove ends one target and drops its events: those of another scope, of the parent and of a child come"},
	{name: "RemoveDropsSynced", rules: "R55 R63", run: removeDropsSynced, place: "Watcher.Remove, registry.Event.Synced",
		rule: "a target that is removed and added before its state was taken delivers the state, then one Synced"},
	{name: "InitialHasOwnWrites", rules: "R22", run: initialHasOwnWrites, place: watcherDoc,
		rule: "the first state of a target is never older than what its session has written right before Add"},
	{name: "EventsBelongToTheCaller", rules: "R31", run: eventsBelong, place: "Watcher.Next",
		rule: "what Next has returned stays as it is, whatever later calls return"},
}

// arrives waits for the state that a commit at rev has made, at a target.
func (f *follower) arrives(g target, path string, rev registry.Revision) registry.Node {
	var found registry.Node
	f.until(fmt.Sprintf("the state of revision %d to arrive at %s", rev, g), func() string {
		if found = f.views[g].nodes[path]; found.Modified != rev {
			return "last state " + show(found)
		}
		return ""
	})
	return found
}

func looksTheSame(t *caseRun) {
	writer, path := t.open(), t.path("a")
	f, targets := t.unread(t.s), []target{{t.dir, registry.Children}, {path, registry.Self}}
	again := []registry.Op{registry.Delete(path, registry.AnyVersion), registry.Create(path, []byte("same"))}
	set := []registry.Op{again[0], registry.Create(path, nil), registry.Set(path, []byte("same"), 0)}
	back := []registry.Op{registry.Set(path, nil, registry.AnyVersion), registry.Set(path, []byte("same"), registry.AnyVersion)}
	t.create(t.s, path, "same")
	for _, g := range targets {
		f.add(g.path, g.scope)
		f.synced(g.path, g.scope)
	}
	for _, s := range []registry.Session{t.s, writer, t.s} {
		for _, ops := range [][]registry.Op{again, again, set, set, back, back[1:]} {
			var rev registry.Revision
			for _, op := range ops {
				rev = t.commit(s, op)
			}
			for _, g := range targets {
				f.arrives(g, path, rev)
			}
		}
	}
}

// removeIsOfOne removes each of four targets that have a path or a node in common, and each once more
// without having added it.
func removeIsOfOne(t *caseRun) {
	look := t.syncedOn(t.s, t.dir, registry.Children)
	for round := range 8 {
		d := t.path(fmt.Sprint(round))
		paths := []string{d, d + "/x", d + "/x/y"}
		var creates, sets []registry.Op
		for _, p := range paths {
			creates = append(creates, registry.Create(p, []byte("0")))
			sets = append(sets, registry.Set(p, []byte("1"), 0))
		}
		t.commit(t.s, creates...)
		targets := map[target]string{
			{d, registry.Self}: d, {d, registry.Children}: d + "/x",
			{d + "/x", registry.Self}: d + "/x", {d + "/x", registry.Children}: d + "/x/y",
		}
		gone := target{paths[round%2], registry.Scope(round / 2 % 2)}
		added := round < 4
		f := t.unread(t.s)
		for g := range targets {
			if g != gone || added {
				f.add(g.path, g.scope)
				f.synced(g.path, g.scope)
			}
		}
		rev := t.commit(t.s, sets...)
		look.becomes(d, "1") // by now the other watcher may have it as well
		f.remove(gone.path, gone.scope)
		delete(targets, gone)
		for g, path := range targets {
			f.arrives(g, path, rev)
		}
		for i := range sets {
			sets[i].Version++
		}
		rev = t.commit(t.s, sets...)
		for g, path := range targets {
			f.arrives(g, path, rev)
		}
	}
}

func removeDropsSynced(t *caseRun) {
	t.create(t.s, t.path("a"), "x")
	none := t.path("none")
	targets := []target{{t.path("a"), registry.Self}, {t.dir, registry.Children}, {none, registry.Self}, {none, registry.Children}}
	f, look := t.unread(t.s), t.follow(t.s)
	for _, g := range targets {
		f.add(g.path, g.scope)
		look.add(g.path, g.scope)
	}
	for _, g := range targets {
		look.synced(g.path, g.scope) // by now the other watcher may have it as well
	}
	for _, g := range targets {
		f.remove(g.path, g.scope)
		f.add(g.path, g.scope)
	}
	f.add(t.path("last"), registry.Self)
	f.synced(t.path("last"), registry.Self)
	for _, g := range targets {
		f.synced(g.path, g.scope)
	}
	told := map[target]int{}
	for _, e := range f.events() {
		g := target{e.Path, e.Scope}
		if states := told[g]; e.Synced && states == 0 && g != targets[3] {
			t.fatalf("Synced of %s came before its state", g)
		}
		told[g]++
	}
}

func initialHasOwnWrites(t *caseRun) {
	path := t.path("a")
	t.syncedOn(t.s, t.dir, registry.Children)
	t.syncedOn(t.s, path, registry.Self)
	ops := []registry.Op{
		registry.Create(path, []byte("old")), registry.Set(path, []byte("new"), 0), registry.Delete(path, 1),
		registry.CreateEphemeral(path, nil), registry.Set(path, []byte("new"), 0), registry.Delete(path, 1),
	}
	for i := range 4 * len(ops) {
		op := ops[i%len(ops)]
		all := []registry.Op{op}
		if i >= 2*len(ops) { // not by itself either
			all = []registry.Op{registry.Set(t.dir, nil, registry.AnyVersion), op}
		}
		rev := t.commit(t.s, all...)
		for _, g := range []target{{path, registry.Self}, {t.dir, registry.Children}} {
			f := t.unread(t.s)
			f.add(g.path, g.scope)
			f.synced(g.path, g.scope)
			first := f.events()[0]
			switch exists := op.Kind != registry.OpDelete; {
			case first.Synced && (exists || g.scope == registry.Self), first.Node.Exists() != exists, exists && first.Node.Modified != rev:
				t.fatalf("the first event of %s is %s; its session had committed %s at revision %d", g, show(first.Node), op.Kind, rev)
			}
			if err := f.w.Close(); err != nil {
				t.fatalf("Watcher.Close: %v", err)
			}
		}
	}
}

func eventsBelong(t *caseRun) {
	const rounds = 12
	w := t.watch(t.s)
	t.create(t.s, t.path("a"), "0")
	for _, g := range []target{{t.dir, registry.Children}, {t.path("a"), registry.Self}} {
		if err := w.Add(g.path, g.scope); err != nil {
			t.fatalf("Add: %v", err)
		}
	}
	var batches [][]registry.Event
	var said []string
	for round := range rounds {
		if round > 0 {
			t.commit(t.s, registry.Set(t.path("a"), fmt.Append(nil, round), registry.AnyVersion))
		}
		for seen := map[registry.Scope]bool{}; len(seen) < 2; {
			events, err := w.Next(t.ctx)
			if err != nil {
				t.fatalf("Next: %v", err)
			}
			batches, said = append(batches, events), append(said, fmt.Sprint(events))
			for _, e := range events {
				if !e.Synced && e.Node.Version == registry.Version(round) {
					seen[e.Scope] = true
				}
			}
		}
	}
	for _, batch := range batches { // as append would
		clear(batch[len(batch):cap(batch)])
	}
	for i, batch := range batches {
		if now := fmt.Sprint(batch); now != said[i] {
			t.fatalf("call %d of Next returned %.300s; after %d more calls the slice holds %.300s", i+1, said[i], len(batches)-i-1, now)
		}
	}
}
