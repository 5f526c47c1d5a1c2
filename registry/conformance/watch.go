package conformance

import (
	"fmt"

	"github.com/elasticron/elasticron/registry"
)

const watcherDoc = "registry.Watcher"

var watchCases = []testCase{
	{name: "InitialThenSynced", rules: "R55", run: initialThenSynced, place: watcherDoc,
		rule: "a new target delivers every child there is, each once, then Synced"},
	{name: "SeesCreate", rules: "R26", run: seesCreate, needs: life, place: watcherDoc,
		rule: "a node created by any session arrives with its value, version and revisions"},
	{name: "SeesSet", rules: "R26", run: seesSet, place: watcherDoc,
		rule: "a Set arrives as the node that a read would give"},
	{name: "SeesDelete", rules: "R22 R58", run: seesDelete, place: "registry.Event.Node",
		rule: "a deletion arrives as the node's path with Created == 0, and no read finds the node any more"},
	{name: "LastStateAlways", rules: "R26", run: lastStateAlways, needs: bulk, place: watcherDoc,
		rule: "after a burst of changes the last state arrives"},
	{name: "PerPathMonotonic", rules: "R25 R59", run: perPathMonotonic, needs: bulk, place: watcherDoc,
		rule: "per path, Modified never goes back and a deleted incarnation does not return"},
	{name: "RecreateNewCreated", rules: "R28", run: watchRecreate, place: watcherDoc,
		rule: "a node deleted and created again arrives with its new Created"},
	{name: "OneLevelOnly", rules: "R54", run: watchOneLevel, place: "registry.Children (Scope)",
		rule: "Children delivers one level: not the node itself, not deeper nodes, not siblings of like name"},
	{name: "SelfScope", rules: "R54", run: watchSelf, place: "registry.Self",
		rule: "Self delivers one node and nothing of its children"},
	{name: "SelfAndChildren", rules: "R55", run: watchBothScopes, place: "registry.Event",
		rule: "Self and Children of one path are two targets, each with its own Synced and its own events"},
	{name: "SyncedPerTarget", rules: "R55", run: syncedPerTarget, place: "registry.Event.Synced",
		rule: "each target has one Synced, after its own initial state, whatever the others do"},
	{name: "AbsentNode", rules: "R27", run: watchAbsentNode, place: "registry.Watcher: absence",
		rule: "Self of what does not exist delivers its absence, then Synced, and the node when it comes"},
	{name: "AbsentDirectory", rules: "R27", run: watchAbsentDirectory, place: "registry.Children (Scope)",
		rule: "Children of what does not exist delivers Synced, and the children when they come"},
	{name: "DirectoryVanishesReturns", rules: "R27 R59", run: watchVanishing, place: "registry.Children (Scope)",
		rule: "a watch outlives its directory: it sees it emptied, and filled again in a later life, after one as an ephemeral node too"},
	{name: "WatchRoot", rules: "R4", run: watchRoot, place: "package doc, The tree",
		rule: "the root can be watched, itself and what is below: what comes, changes and goes there, over broken connections too"},
	{name: "ManyTargets", rules: "R26 R55", run: watchManyTargets, needs: bulk, place: watcherDoc,
		rule: "one Watcher serves hundreds of targets, each with its state, Synced and changes, after its connection broke too"},
	{name: "AddTwiceIsOne", rules: "R55 R62", run: addTwice, place: "Watcher.Add",
		rule: "adding a target again leaves it as it is, empty or absent too: no second initial state, no second Synced"},
	{name: "RemoveStops", rules: "R63", run: removeStops, place: "Watcher.Remove",
		rule: "after Remove nothing of the target is delivered, not even what waited; other targets go on"},
	{name: "RemoveAddAgain", rules: "R64", run: removeAddAgain, place: "Watcher.Remove",
		rule: "a target added again delivers the present state and Synced again"},
	{name: "TwoWatchersAgree", rules: "R26", run: twoWatchersAgree, place: watcherDoc,
		rule: "two watchers of one directory end in the same state, which is the one a read gives"},
	{name: "ReadNotOlderThanEvent", rules: "R22 R78", run: readNotOlder, place: "package doc, Guarantees: reads",
		rule: "an event holds the value of its version, and no read, of another node too, is older than what was delivered"},
	{name: "OwnedInEvents", rules: "R49", run: ownedInEvents, needs: life, place: "registry.Node.Owned",
		rule: "in events too, Owned are the nodes of the very session that watches, not those of another on its registry"},
	{name: "EphemeralExpirySeen", rules: "R58", run: ephemeralExpirySeen, needs: life, place: watcherDoc,
		rule: "ephemeral nodes that go with an expired session arrive as gone"},
	{name: "SurvivesDrop", rules: "R26 R57", run: watchSurvivesDrop, place: watcherDoc,
		rule: "a watch goes on after its connection broke, again and again, without a second Synced"},
	{name: "ChangesDuringDropSeen", rules: "R26", run: changesDuringDrop, place: watcherDoc,
		rule: "what changed while the client was cut off arrives afterwards: sets, creations and deletions"},
	{name: "CreateDeleteDuringDropNotWrong", rules: "R59", run: createDeleteDuringDrop, place: watcherDoc,
		rule: "what came and went, or went and came, while the client was cut off ends in its true state"},
	{name: "AfterCompactionResyncs", rules: "R26", run: afterCompaction, needs: alone, place: watcherDoc,
		rule: "a watch that was cut off while the service forgot its history ends in the true state, without a second Synced"},
	{name: "AfterRestart", rules: "R26", run: watchAfterRestart, needs: alone, place: watcherDoc,
		rule: "a watch goes on after the service was restarted"},
	{name: "EndsOnSessionLoss", rules: "R58 R66", run: watchEndsOnLoss, needs: life, place: "Watcher.Next",
		rule: "Next fails with ErrSessionLost once the session has ended, waiting or called later, again and again, and tells nothing to be gone"},
	{name: "NextGivesUp", rules: "R65", run: nextGivesUp, needs: slowly, place: "Watcher.Next",
		rule: "a Next whose context ends while events are on the way loses none of them"},
	{name: "EndsOnCtx", rules: "R65", run: watchEndsOnCtx, place: "Watcher.Next",
		rule: "Next fails with its context's error and loses nothing: the next call goes on"},
	{name: "EndsOnClose", rules: "R43 R67", run: watchEndsOnClose, place: "registry.Watcher, ErrClosed",
		rule: "Close wakes Next with ErrClosed, whatever waits to be taken, is idempotent, and Add then fails with ErrClosed"},
	{name: "StopConsumingFreesAll", rules: "R67", run: stopConsuming, needs: alone, place: "Watcher.Close",
		rule: "watchers that nobody consumes are freed by Close: their goroutines end"},
	{name: "SlowConsumerBoundedMemory", rules: "R56", run: slowConsumer, place: "registry.Watcher: coalesced",
		rule: "a consumer that does not come keeps waiting events in the order of the nodes, not of the changes"},
	{name: "10kNodesInitial", rules: "R76", run: watch10k, needs: alone, place: watcherDoc,
		rule: "a directory of 10,000 nodes arrives whole before Synced"},
	{name: "WatchersAreApart", rules: "R16 R60", run: watchersAreApart, place: watcherDoc,
		rule: "two watchers of one session, or of two of one registry, have targets, events and ends of their own"},
	{name: "CallsWhileCutOff", rules: "R61 R65 R67", run: watchWhileCutOff, needs: alone, place: "Watcher.Add, Watcher.Next, Watcher.Close",
		rule: "Add, Remove, Close and a Next whose context ends do not wait for a service that does not answer; what was added comes when it does"},
}

func initialThenSynced(t *caseRun) {
	for _, name := range []string{"a", "b", "c"} {
		t.create(t.s, t.path(name), name)
	}
	t.create(t.s, t.path("a/deeper"), "")
	f := t.follow(t.open())
	f.add(t.dir, registry.Children)
	f.synced(t.dir, registry.Children)
	events := f.events()
	got := map[string]string{}
	for i, e := range events {
		if e.Synced {
			if i != 3 {
				t.fatalf("Synced is event %d; want it after 3 children", i)
			}
			break
		}
		got[e.Node.Path] = string(e.Node.Value)
	}
	for _, name := range []string{"a", "b", "c"} {
		if got[t.path(name)] != name {
			t.fatalf("before Synced came %v; want a, b and c with their values", got)
		}
	}
}

// synced returns a follower of s with one target whose initial state is in.
func (t *caseRun) syncedOn(s registry.Store, path string, scope registry.Scope) *follower {
	f := t.follow(s)
	f.add(path, scope)
	f.synced(path, scope)
	return f
}

// same demands that an event holds what a read by the same session gives.
func (t *caseRun) same(event, read registry.Node) {
	if event.Path != read.Path || event.Created != read.Created || event.Modified != read.Modified || event.Version != read.Version ||
		event.Ephemeral != read.Ephemeral || event.Owned != read.Owned || string(event.Value) != string(read.Value) {
		t.fatalf("the event holds %s with value %.20q, a read %s with value %.20q", show(event), event.Value, show(read), read.Value)
	}
}

func seesCreate(t *caseRun) {
	other := t.open()
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.commit(t.s, registry.Create(t.path("own"), []byte("1")), registry.CreateEphemeral(t.path("eph"), []byte("2")))
	t.commit(other, registry.Create(t.path("other"), []byte("3")), registry.CreateEphemeral(t.path("oeph"), []byte("4")))
	for name, value := range map[string]string{"own": "1", "eph": "2", "other": "3", "oeph": "4"} {
		n := f.becomes(t.path(name), value)
		read := t.present(t.s, t.path(name))
		t.same(n, read)
		if n.Owned != (name == "eph") {
			t.fatalf("%s arrived as %s", name, show(n))
		}
	}
}

func seesSet(t *caseRun) {
	other := t.open()
	t.create(t.s, t.path("a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(t.path("a"), registry.Self)
	f.synced(t.path("a"), registry.Self)
	for i, value := range [][]byte{[]byte("1"), []byte("2"), nil, []byte("3"), {}, []byte("4"), nil} {
		rev := t.commit([]registry.Session{t.s, other}[i%2], registry.Set(t.path("a"), value, registry.AnyVersion))
		for _, g := range []target{{t.dir, registry.Children}, {t.path("a"), registry.Self}} {
			t.same(f.arrives(g, t.path("a"), rev), t.present(t.s, t.path("a")))
		}
	}
}

func seesDelete(t *caseRun) {
	other := t.open()
	t.create(t.s, t.path("a"), "x")
	t.create(t.s, t.path("b"), "x")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.commit(t.s, registry.Delete(t.path("a"), 0))
	t.commit(other, registry.Delete(t.path("b"), registry.AnyVersion))
	for _, name := range []string{"a", "b"} {
		if n := f.becomes(t.path(name), "-"); len(n.Value) != 0 || n.Version != 0 || n.Ephemeral {
			t.fatalf("the deletion arrived as %+v; want the zero Node but for Path", n)
		}
		if n := t.get(t.s, t.path(name)); n.Exists() {
			t.fatalf("Get gives %s after its deletion was delivered", show(n))
		}
	}
}

func lastStateAlways(t *caseRun) {
	other := t.open()
	t.create(t.s, t.path("a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	for i := 1; i <= 1000; i++ {
		if _, err := other.Commit(t.ctx, registry.Set(t.path("a"), fmt.Append(nil, i), registry.AnyVersion)); err != nil {
			t.fatalf("Set number %d: %v", i, err)
		}
	}
	t.step("1000 sets by another session")
	f.becomes(t.path("a"), "1000")
}

// perPathMonotonic relies on what a follower checks of every event.
func perPathMonotonic(t *caseRun) {
	writer := t.open()
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(t.path("2"), registry.Self)
	for round := range 100 {
		for k := range 3 {
			p := t.path(fmt.Sprint(k))
			op := registry.Set(p, fmt.Append(nil, round), registry.AnyVersion)
			switch (round + k) % 5 {
			case 0:
				op = registry.Create(p, []byte("new"))
			case 4:
				op = registry.Delete(p, registry.AnyVersion)
			}
			_, _ = writer.Commit(t.ctx, op) // what fails changes nothing
		}
		if round%25 == 10 {
			t.drop(t.s)
		}
	}
	for k := range 3 {
		_, _ = writer.Commit(t.ctx, registry.Create(t.path(fmt.Sprint(k)), nil))
		t.commit(writer, registry.Set(t.path(fmt.Sprint(k)), []byte("end"), registry.AnyVersion))
		f.becomes(t.path(fmt.Sprint(k)), "end")
	}
	f.until("the end to arrive at the Self target", func() string {
		if n := f.views[target{t.path("2"), registry.Self}].nodes[t.path("2")]; string(n.Value) != "end" {
			return show(n)
		}
		return ""
	})
}

func watchRecreate(t *caseRun) {
	was := t.create(t.s, t.path("a"), "first")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	for i := range 5 {
		t.commit(t.s, registry.Delete(was.Path, registry.AnyVersion))
		value := fmt.Sprint("life ", i)
		t.commit(t.s, registry.Create(was.Path, []byte(value)))
		n := f.becomes(was.Path, value)
		if n.Created <= was.Created || n.Version != 0 {
			t.fatalf("the new incarnation arrived as %s after %s", show(n), show(was))
		}
		was = n
	}
}

func watchOneLevel(t *caseRun) {
	for _, p := range []string{"a", "a/b", "a/b/c", "ab"} {
		t.create(t.s, t.path(p), "")
	}
	f := t.syncedOn(t.s, t.path("a"), registry.Children)
	t.commit(t.s, registry.Set(t.path("a"), []byte("x"), 0), registry.Create(t.path("a/b/c/d"), nil),
		registry.Create(t.path("ab/x"), nil), registry.Set(t.path("a/b/c"), []byte("x"), 0), registry.Create(t.path("a-"), nil))
	t.commit(t.s, registry.Create(t.path("a/z"), []byte("end")))
	f.becomes(t.path("a/z"), "end")
	for _, e := range f.events() {
		if !e.Synced && e.Node.Path != t.path("a/b") && e.Node.Path != t.path("a/z") {
			t.fatalf("children of %s delivered %s", t.path("a"), show(e.Node))
		}
	}
}

func watch10k(t *caseRun) {
	paths := make([]string, 10_000)
	for i := range paths {
		paths[i] = t.path(fmt.Sprintf("n%05d", i))
	}
	t.createAll(t.s, paths)
	f := t.syncedOn(t.open(), t.dir, registry.Children)
	f.mu.Lock()
	got := len(f.children(target{t.dir, registry.Children}))
	f.mu.Unlock()
	if got != len(paths) {
		t.fatalf("%d nodes before Synced; want %d", got, len(paths))
	}
}
