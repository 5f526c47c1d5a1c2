package conformance

import (
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

func watchAbsentNode(t *caseRun) {
	f := t.syncedOn(t.s, t.path("none"), registry.Self)
	events := f.events()
	if len(events) != 2 || events[0].Synced || events[0].Node.Exists() || events[0].Node.Path != t.path("none") {
		t.fatalf("the initial state is %d events, first %+v; want the absence of %s, then Synced", len(events), events[0], t.path("none"))
	}
	deep := t.syncedOn(t.s, t.path("no/parent/either"), registry.Self)
	t.commit(t.s, registry.Create(t.path("none"), []byte("here")))
	f.becomes(t.path("none"), "here")
	t.commit(t.s, registry.Create(t.path("no"), nil), registry.Create(t.path("no/parent"), nil), registry.Create(t.path("no/parent/either"), []byte("deep")))
	deep.becomes(t.path("no/parent/either"), "deep")
}

func watchAbsentDirectory(t *caseRun) {
	f := t.follow(t.s)
	f.add(t.path("d"), registry.Children)
	f.add(t.path("x/y/z"), registry.Children)
	f.synced(t.path("d"), registry.Children)
	f.synced(t.path("x/y/z"), registry.Children)
	if events := f.events(); len(events) != 2 {
		t.fatalf("directories that do not exist delivered %d events; want one Synced each", len(events))
	}
	t.commit(t.s, registry.Create(t.path("d"), nil))
	t.commit(t.s, registry.Create(t.path("d/a"), []byte("1")))
	f.becomes(t.path("d/a"), "1")
	t.commit(t.s, registry.Create(t.path("x"), nil), registry.Create(t.path("x/y"), nil))
	t.commit(t.s, registry.Create(t.path("x/y/z"), nil), registry.Create(t.path("x/y/z/a"), []byte("2")))
	f.becomes(t.path("x/y/z/a"), "2")
}

func watchVanishing(t *caseRun) {
	t.create(t.s, t.path("d"), "")
	t.create(t.s, t.path("d/a"), "0")
	f := t.syncedOn(t.s, t.path("d"), registry.Children)
	f.add(t.path("d"), registry.Self)
	for i := 1; i <= 3; i++ {
		t.commit(t.s, registry.Delete(t.path("d/a"), registry.AnyVersion), registry.Delete(t.path("d"), registry.AnyVersion))
		f.becomes(t.path("d/a"), "-")
		f.becomes(t.path("d"), "-")
		value := fmt.Sprint(i)
		t.commit(t.s, registry.Create(t.path("d"), []byte("d"+value)), registry.Create(t.path("d/a"), []byte(value)))
		f.becomes(t.path("d/a"), value)
		f.becomes(t.path("d"), "d"+value)
	}
	// And once more with nobody there in between.
	t.commit(t.s, registry.Delete(t.path("d/a"), registry.AnyVersion), registry.Delete(t.path("d"), registry.AnyVersion))
	t.commit(t.s, registry.Create(t.path("d"), []byte("end")))
	t.commit(t.s, registry.Create(t.path("d/b"), []byte("end")))
	f.becomes(t.path("d/b"), "end")
	f.becomes(t.path("d/a"), "-")
	f.becomes(t.path("d"), "end")
	// And as an ephemeral node, which has no children, in between.
	t.commit(t.s, registry.Delete(t.path("d/b"), 0), registry.Delete(t.path("d"), 0))
	t.commit(t.s, registry.CreateEphemeral(t.path("d"), []byte("ephemeral")))
	late := t.syncedOn(t.s, t.path("d"), registry.Children)
	f.becomes(t.path("d"), "ephemeral")
	t.commit(t.s, registry.Delete(t.path("d"), 0))
	rev := t.commit(t.s, registry.Create(t.path("d"), []byte("again")), registry.Create(t.path("d/c"), []byte("again")))
	for _, f := range []*follower{f, late} {
		f.arrives(target{t.path("d"), registry.Children}, t.path("d/c"), rev)
	}
}

func watchRoot(t *caseRun) {
	writer, beside := t.open(), t.dir+"-beside"
	f := t.syncedOn(t.s, "/", registry.Children)
	f.becomes(t.dir, "")
	f.add("/", registry.Self)
	f.synced("/", registry.Self)
	for i := range 2 { // before and after its connection broke
		value := fmt.Sprint("round ", i)
		t.commit(writer, registry.Set(t.dir, []byte(value), registry.AnyVersion), registry.Create(beside, []byte(value)))
		f.becomes(t.dir, value)
		f.becomes(beside, value)
		t.commit(writer, registry.Delete(beside, 0))
		f.becomes(beside, "-")
		t.drop(t.s)
	}
	t.commit(writer, registry.Set(t.dir, []byte("end"), registry.AnyVersion))
	f.becomes(t.dir, "end")
}

func watchManyTargets(t *caseRun) {
	const dirs = 150
	other := t.open()
	f := t.follow(t.s)
	for i := range dirs {
		d := t.path(fmt.Sprint(i))
		t.commit(t.s, registry.Create(d, nil), registry.Create(d+"/old", []byte("0")))
		f.add(d, registry.Children)
		f.add(d+"/old", registry.Self)
		f.add(d+"/absent", registry.Self)
	}
	for i := range dirs {
		f.synced(t.path(fmt.Sprint(i)), registry.Children)
		f.synced(t.path(fmt.Sprint(i, "/absent")), registry.Self)
	}
	for round := range 2 { // before and after its connection broke
		old, absent := fmt.Sprint("old ", round), fmt.Sprint("absent ", round)
		for i := range dirs {
			d := t.path(fmt.Sprint(i))
			last := registry.Create(d+"/absent", []byte(absent))
			if round > 0 {
				last = registry.Set(last.Path, last.Value, 0)
			}
			t.commit(other, registry.Set(d+"/old", []byte(old), registry.AnyVersion), last)
		}
		f.until("every change at every target", func() string {
			for i := range dirs {
				d := t.path(fmt.Sprint(i))
				c, o, a := f.children(target{d, registry.Children}), f.children(target{d + "/old", registry.Self}), f.children(target{d + "/absent", registry.Self})
				if c[d+"/old"] != old || c[d+"/absent"] != absent || o[d+"/old"] != old || a[d+"/absent"] != absent {
					return fmt.Sprintf("round %d, directory %d: children %v, old %v, absent %v", round, i, c, o, a)
				}
			}
			return ""
		})
		t.drop(t.s)
	}
}

func addTwice(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	a, none := t.path("a"), t.path("none")
	twice := []target{
		{t.dir, registry.Children}, {a, registry.Self}, {a, registry.Children}, {none, registry.Self}, {none, registry.Children},
	}
	for _, g := range twice[1:] {
		f.add(g.path, g.scope)
		f.synced(g.path, g.scope)
	}
	early := t.unread(t.s)
	for i, f := range []*follower{f, f, f, early, early} {
		for _, g := range twice {
			if i == 3 {
				f.add(g.path, g.scope)
			} else if err := f.w.Add(g.path, g.scope); err != nil {
				t.fatalf("Add of a target that is watched already: %v", err)
			}
		}
	}
	t.step("Add of each three times more; on a second watcher each twice before Next")
	// A target added later is served later: what came of the repeated Adds is in by then.
	for _, f := range []*follower{f, early} {
		f.add(t.path("last"), registry.Self)
		f.synced(t.path("last"), registry.Self)
		for _, g := range twice {
			f.synced(g.path, g.scope)
		}
	}
	for round, ops := range [][]registry.Op{
		{registry.Set(a, []byte("1"), 0), registry.Create(a+"/x", nil), registry.Create(none, nil), registry.Create(none+"/x", nil)},
		{registry.Set(a, []byte("2"), 1), registry.Set(a+"/x", nil, 0), registry.Set(none, nil, 0), registry.Set(none+"/x", nil, 0)},
	} {
		rev := t.commit(t.s, ops...)
		for _, f := range []*follower{f, early} {
			for i, path := range []string{none, a, a + "/x", none, none + "/x"} {
				f.arrives(twice[i], path, rev)
			}
		}
		t.step("round %d has arrived", round)
	}
	initial := 0
	for _, e := range f.events() {
		if e.Path == t.dir && string(e.Node.Value) == "0" {
			initial++
		}
	}
	if initial != 1 {
		t.fatalf("the initial state was delivered %d times", initial)
	}
}

func removeStops(t *caseRun) {
	for _, p := range []string{"gone", "stays"} {
		t.create(t.s, t.path(p), "")
		t.create(t.s, t.path(p+"/a"), "0")
	}
	w := t.watch(t.s)
	for _, p := range []string{"gone", "stays"} {
		if err := w.Add(t.path(p), registry.Children); err != nil {
			t.fatalf("Add: %v", err)
		}
		t.drain(w, func(e registry.Event) bool { return e.Synced })
	}
	other := t.watch(t.s)
	if err := other.Add(t.path("stays"), registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	t.commit(t.s, registry.Set(t.path("gone/a"), []byte("waits"), 0), registry.Set(t.path("stays/a"), []byte("1"), 0))
	t.drain(other, func(e registry.Event) bool { return string(e.Node.Value) == "1" })
	w.Remove(t.path("gone"), registry.Children)
	t.step("Remove(%s)", t.path("gone"))
	t.commit(t.s, registry.Set(t.path("gone/a"), []byte("later"), 1), registry.Set(t.path("stays/a"), []byte("2"), 1))
	t.drain(w, func(e registry.Event) bool {
		if e.Path == t.path("gone") {
			t.fatalf("after Remove came %s with value %q", show(e.Node), e.Node.Value)
		}
		return string(e.Node.Value) == "2"
	})
	w.Remove(t.path("never/added"), registry.Self)
}

func removeAddAgain(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	t.create(t.s, t.path("b"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(t.path("b"), registry.Self)
	f.synced(t.path("b"), registry.Self)
	for i := 1; i <= 5; i++ {
		f.w.Remove(t.path("b"), registry.Self)
		again := len(f.events())
		f.add(t.path("b"), registry.Self)
		f.synced(t.path("b"), registry.Self)
		if e := f.events()[again]; e.Synced || string(e.Node.Value) != "0" {
			t.fatalf("a node that had not changed was added again, and there came %+v; want its state, then Synced", e)
		}
		f.w.Remove(t.dir, registry.Children)
		t.step("Remove(%s)", t.dir)
		value := fmt.Sprint(i)
		t.commit(t.s, registry.Set(t.path("a"), []byte(value), registry.AnyVersion))
		mark := len(f.events())
		f.add(t.dir, registry.Children)
		f.synced(t.dir, registry.Children)
		seen := map[string]string{}
		for _, e := range f.events()[mark:] {
			if e.Synced {
				break
			}
			seen[e.Node.Path] = string(e.Node.Value)
		}
		if seen[t.path("a")] != value || seen[t.path("b")] != "0" {
			t.fatalf("after adding again, before Synced came %v; want a=%s and b=0", seen, value)
		}
		t.commit(t.s, registry.Set(t.path("a"), []byte("end"+value), registry.AnyVersion))
		f.becomes(t.path("a"), "end"+value)
	}
}

func watchSelf(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	f := t.syncedOn(t.s, t.path("a"), registry.Self)
	t.same(f.becomes(t.path("a"), "0"), t.present(t.s, t.path("a")))
	t.commit(t.s, registry.Create(t.path("a/child"), nil), registry.Create(t.path("ab"), nil))
	t.commit(t.s, registry.Set(t.path("a"), []byte("1"), 0))
	t.same(f.becomes(t.path("a"), "1"), t.present(t.s, t.path("a")))
	t.commit(t.s, registry.Delete(t.path("a/child"), 0))
	t.commit(t.s, registry.Delete(t.path("a"), 1))
	f.becomes(t.path("a"), "-")
	t.commit(t.s, registry.Create(t.path("a"), []byte("2")))
	f.becomes(t.path("a"), "2")
}

func watchBothScopes(t *caseRun) {
	t.create(t.s, t.path("a"), "self")
	t.create(t.s, t.path("a/b"), "child")
	f := t.follow(t.s)
	f.add(t.path("a"), registry.Self)
	f.add(t.path("a"), registry.Children)
	f.add(t.path("a/b"), registry.Self)
	f.synced(t.path("a"), registry.Self)
	f.synced(t.path("a"), registry.Children)
	f.synced(t.path("a/b"), registry.Self)
	t.commit(t.s, registry.Set(t.path("a"), []byte("self 1"), 0), registry.Set(t.path("a/b"), []byte("child 1"), 0))
	for g, want := range map[target]string{
		{t.path("a"), registry.Self}: "self 1", {t.path("a"), registry.Children}: "child 1", {t.path("a/b"), registry.Self}: "child 1",
	} {
		f.until(fmt.Sprintf("%q at %s", want, g), func() string {
			for _, value := range f.children(g) {
				if value == want {
					return ""
				}
			}
			return f.states()
		})
	}
}

func syncedPerTarget(t *caseRun) {
	f := t.follow(t.s)
	for i := range 10 {
		dir := t.path(fmt.Sprint(i))
		t.create(t.s, dir, "")
		for k := range i {
			t.create(t.s, fmt.Sprintf("%s/%d", dir, k), "")
		}
	}
	for i := range 10 {
		f.add(t.path(fmt.Sprint(i)), registry.Children)
	}
	for i := range 10 {
		f.synced(t.path(fmt.Sprint(i)), registry.Children)
	}
	before := map[target]int{}
	for _, e := range f.events() {
		g := target{e.Path, e.Scope}
		if e.Synced {
			if want := t.path(fmt.Sprint(before[g])); want != g.path {
				t.fatalf("Synced of %s came after %d of its children", g, before[g])
			}
			before[g] = -1 << 20
		}
		before[g]++
	}
}
