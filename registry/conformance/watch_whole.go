package conformance

import (
	"fmt"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

// watchWholeCases are about all that an event holds, and about all that comes before Synced.
var watchWholeCases = []testCase{
	{name: "EventsAreWholeNodes", rules: "R26 R29 R44 R48 R49", run: eventsAreWhole, needs: life, place: "registry.Watcher, registry.Event.Node",
		rule: "the first state of a target, a change, and what changed while cut off arrive as the node that a read gives, Version, Ephemeral and Owned too"},
	{name: "PresentBeforeSynced", rules: "R55", run: presentBeforeSynced, place: watcherDoc,
		rule: "what was there when a target was added comes before its Synced, also where it changes before Next is called"},
	{name: "GoneIsForgotten", rules: "R56", run: goneIsForgotten, needs: bulk, place: "registry.Watcher: memory",
		rule: "a watcher keeps nothing of nodes that are gone and were told to be: its memory is proportional to the nodes there are"},
}

// whole waits until both targets of each node of d have its latest state, and compares that with what a read gives.
func (f *follower) whole(s registry.Session, d string, names ...string) {
	f.t.sync(s)
	for _, name := range names {
		path := d + "/" + name
		read := f.t.present(s, path)
		for _, g := range []target{{path, registry.Self}, {d, registry.Children}} {
			f.t.same(f.arrives(g, path, read.Modified), read)
		}
	}
}

// eventsAreWhole looks at nodes of each kind, of which others have set some, before and after each outage.
func eventsAreWhole(t *caseRun) {
	inEach(t, t.outages(), func(_, d string, out outage) {
		s := t.open()
		names := []string{"lasting", "mine", "others", "again"}
		lasting, mine, others, again := d+"/lasting", d+"/mine", d+"/others", d+"/again"
		follow := func() *follower {
			f := t.follow(s)
			for _, name := range names {
				f.add(d+"/"+name, registry.Self)
			}
			f.add(d, registry.Children)
			return f
		}
		set := func(paths ...string) {
			for _, p := range paths {
				t.commit(t.s, registry.Set(p, fmt.Append(nil, "set ", p), registry.AnyVersion))
			}
		}
		early := follow()
		t.commit(s, registry.CreateEphemeral(mine, nil))
		t.commit(t.s, registry.CreateEphemeral(others, nil))
		t.commit(t.s, registry.Create(lasting, nil), registry.Create(again, []byte("x")))
		early.whole(s, d, names...)
		set(lasting, lasting, mine, mine, others, again)
		early.whole(s, d, names...)
		late := follow()
		late.whole(s, d, names...)
		out(s, func() {
			set(lasting, mine, others)
			t.commit(t.s, registry.Delete(again, 1))
			t.commit(t.s, registry.CreateEphemeral(again, []byte("x")))
			set(again)
		})
		for _, f := range []*follower{early, late, follow()} {
			f.whole(s, d, names...)
		}
		t.alive(s)
	})
}

// presentBeforeSynced changes nodes of targets whose first state nobody has taken yet.
func presentBeforeSynced(t *caseRun) {
	writer, names := t.open(), []string{"a", "b", "c", "d"}
	look := t.syncedOn(t.s, t.dir, registry.Children)
	for round := range 5 {
		d := t.path(fmt.Sprint(round))
		targets := map[target][]string{{d, registry.Children}: nil}
		t.create(t.s, d, "0")
		for _, name := range names {
			t.create(t.s, d+"/"+name, "0")
			targets[target{d, registry.Children}] = append(targets[target{d, registry.Children}], d+"/"+name)
			targets[target{d + "/" + name, registry.Self}] = []string{d + "/" + name}
		}
		f := t.unread(t.s)
		for g := range targets {
			f.add(g.path, g.scope)
		}
		for _, name := range names[round%2:] {
			t.commit(writer, registry.Set(d+"/"+name, []byte("1"), 0))
		}
		t.commit(writer, registry.Set(d, []byte("1"), 0))
		look.becomes(d, "1") // by now the other watcher may have it as well
		for g := range targets {
			f.synced(g.path, g.scope)
		}
		told := map[target][]string{}
		for _, e := range f.events() {
			g := target{e.Path, e.Scope}
			if e.Synced && len(told[g]) < len(targets[g]) {
				t.fatalf("Synced of %s came after %q; when it was added there were %q", g, told[g], targets[g])
			}
			if !e.Synced && !slices.Contains(told[g], e.Node.Path) {
				told[g] = append(told[g], e.Node.Path)
			}
		}
	}
}
