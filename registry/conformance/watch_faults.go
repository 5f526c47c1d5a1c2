package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

func twoWatchersAgree(t *caseRun) {
	far := t.open()
	first, second := t.syncedOn(t.s, t.dir, registry.Children), t.syncedOn(far, t.dir, registry.Children)
	var wg sync.WaitGroup
	for k := range 3 {
		s := t.open()
		wg.Go(func() {
			for i := range 60 {
				p := t.path(fmt.Sprint((i*7 + k) % 10))
				switch i % 3 {
				case 0:
					_, _ = s.Commit(t.ctx, registry.Create(p, fmt.Append(nil, k, i)))
				case 1:
					_, _ = s.Commit(t.ctx, registry.Set(p, fmt.Append(nil, k, i), registry.AnyVersion))
				case 2:
					_, _ = s.Commit(t.ctx, registry.Delete(p, registry.AnyVersion))
				}
			}
		})
	}
	wg.Wait()
	t.step("three sessions have written")
	t.sync(t.s)
	want := map[string]string{}
	for _, name := range t.children(t.s, t.dir) {
		want[t.path(name)] = string(t.present(t.s, t.path(name)).Value)
	}
	for i, f := range []*follower{first, second} {
		f.until(fmt.Sprintf("watcher %d to hold the state that a read gives", i), func() string {
			if got := f.children(target{t.dir, registry.Children}); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Sprintf("it holds %v; a read gives %v", got, want)
			}
			return ""
		})
	}
}

func readNotOlder(t *caseRun) {
	const events = 50
	writer := t.open()
	t.create(t.s, t.path("a"), "0")
	t.create(t.s, t.path("a/apart"), "0")
	w := t.watch(t.s)
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	var wg sync.WaitGroup
	writing, stop := context.WithCancel(t.ctx)
	defer func() { stop(); wg.Wait() }()
	wg.Go(func() {
		for i := 1; writing.Err() == nil; i++ {
			latest, value := registry.AnyVersion, fmt.Append(nil, i)
			ops := []registry.Op{registry.Set(t.path("a"), value, latest), registry.Set(t.path("a/apart"), value, latest)}
			if _, err := writer.Commit(t.ctx, ops...); err != nil {
				t.errorf("writer: %v", err)
				return
			}
		}
	})
	seen := 0
	t.drain(w, func(e registry.Event) bool {
		if e.Synced {
			return false
		}
		if string(e.Node.Value) != fmt.Sprint(e.Node.Version) {
			t.fatalf("the event %s holds the value of version %s", show(e.Node), e.Node.Value)
		}
		for _, n := range t.getAll(t.s, t.path("a/apart"), t.path("a")) { // one commit writes both, and one is watched
			if n.Modified < e.Node.Modified && e.Node.Version > 0 {
				t.fatalf("Get gives %s after the event %s was delivered", show(n), show(e.Node))
			}
		}
		seen++
		return seen == events
	})
}

func ephemeralExpirySeen(t *caseRun) {
	owner := t.open()
	f := t.syncedOn(t.s, t.dir, registry.Children)
	t.commit(owner, registry.CreateEphemeral(t.path("a"), []byte("x")), registry.CreateEphemeral(t.path("b"), []byte("x")), registry.Create(t.path("c"), []byte("x")))
	for _, name := range []string{"a", "b", "c"} {
		f.becomes(t.path(name), "x")
	}
	t.must("Expire the owner", t.h.Faults().Expire(owner))
	f.becomes(t.path("a"), "-")
	f.becomes(t.path("b"), "-")
	t.present(t.s, t.path("c"))
}

func watchSurvivesDrop(t *caseRun) {
	writer := t.open()
	t.create(writer, t.path("a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	for i := 1; i <= 5; i++ {
		t.drop(t.s)
		t.commit(writer, registry.Set(t.path("a"), fmt.Append(nil, i), registry.AnyVersion))
		f.becomes(t.path("a"), fmt.Sprint(i))
	}
	t.alive(t.s)
}

// drop cuts the connections of s once and makes sure that there were some.
func (t *caseRun) drop(s registry.Session) {
	before := t.h.Faults().Hits(s)
	t.eventually("Drop to hit a connection", func() string {
		// There is nothing to cut while the client connects.
		if err := t.h.Faults().Drop(s); err != nil {
			t.must("Drop of session "+s.ID(), err)
		}
		t.alive(s) // else nothing is sent that the fault could hit
		if t.h.Faults().Hits(s) > before {
			return ""
		}
		return "void, nothing is proved: Faults.Hits has not moved"
	})
	t.step("fault: dropped the connections of session %s", s.ID())
}

// blackhole swallows what goes to the service from the client of a session, and what comes, until it is healed.
func (t *caseRun) blackhole(s registry.Session) (heal func()) {
	heal, err := t.h.Faults().Blackhole(s, Both)
	t.must("Blackhole both ways", err)
	return heal
}

// cutOff refuses the client of s while others act, and is healed afterwards.
func (t *caseRun) cutOff(s registry.Session, meanwhile func()) {
	before := t.h.Faults().Hits(s)
	heal, err := t.h.Faults().Refuse(s)
	t.must("Refuse the client of session "+s.ID(), err)
	defer heal()
	meanwhile()
	t.eventually("Refuse to hit a connection", func() string {
		t.alive(s) // else nothing is sent that the fault could hit
		if t.h.Faults().Hits(s) > before {
			return ""
		}
		return "void, nothing is proved: Faults.Hits has not moved"
	})
	heal()
	t.step("healed")
}

func changesDuringDrop(t *caseRun) {
	writer := t.open()
	t.create(writer, t.path("set"), "0")
	t.create(writer, t.path("delete"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(t.path("set"), registry.Self)
	f.add(t.path("delete"), registry.Self)
	f.synced(t.path("delete"), registry.Self)
	t.cutOff(t.s, func() {
		t.commit(writer, registry.Set(t.path("set"), []byte("1"), 0), registry.Delete(t.path("delete"), 0), registry.Create(t.path("create"), []byte("1")))
		t.commit(writer, registry.Set(t.path("set"), []byte("2"), 1))
	})
	f.until("the changes at both targets", func() string {
		all := f.children(target{t.dir, registry.Children})
		self := f.children(target{t.path("set"), registry.Self})
		gone := f.children(target{t.path("delete"), registry.Self})
		if len(all) == 2 && all[t.path("set")] == "2" && all[t.path("create")] == "1" && self[t.path("set")] == "2" && len(gone) == 0 {
			return ""
		}
		return f.states()
	})
	t.alive(t.s)
}

func createDeleteDuringDrop(t *caseRun) {
	writer := t.open()
	was := t.create(writer, t.path("recreated"), "0")
	t.create(writer, t.path("dir"), "")
	t.create(writer, t.path("dir/a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.add(t.path("dir"), registry.Children)
	f.synced(t.path("dir"), registry.Children)
	f.becomes(was.Path, "0") // what another session wrote need not be in the first state
	f.becomes(t.path("dir/a"), "0")
	t.cutOff(t.s, func() {
		t.create(writer, t.path("passing"), "x")
		t.commit(writer, registry.Delete(t.path("passing"), 0), registry.Delete(was.Path, 0))
		t.commit(writer, registry.Create(was.Path, []byte("1")))
		t.commit(writer, registry.Delete(t.path("dir/a"), 0), registry.Delete(t.path("dir"), 0))
		t.commit(writer, registry.Create(t.path("dir"), []byte("again")), registry.Create(t.path("dir/b"), []byte("1")))
		t.commit(writer, registry.Create(t.path("end"), []byte("end")))
	})
	if n := f.becomes(was.Path, "1"); n.Created <= was.Created {
		t.fatalf("the recreated node arrived as %s; it was %s before", show(n), show(was))
	}
	f.becomes(t.path("end"), "end")
	f.becomes(t.path("dir/b"), "1")
	f.becomes(t.path("dir/a"), "-")
	f.until("the node that came and went not to be there", func() string {
		return f.children(target{t.dir, registry.Children})[t.path("passing")]
	})
	t.alive(t.s)
}

func afterCompaction(t *caseRun) {
	writer := t.open()
	t.create(writer, t.path("a"), "0")
	t.create(writer, t.path("b"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	f.becomes(t.path("b"), "0") // what another session wrote need not be in the first state
	t.cutOff(t.s, func() {
		for i := 1; i <= 20; i++ {
			t.commit(writer, registry.Set(t.path("a"), fmt.Append(nil, i), registry.AnyVersion))
		}
		t.commit(writer, registry.Delete(t.path("b"), 0), registry.Create(t.path("c"), []byte("1")))
		t.must("ForgetHistory", t.h.Faults().ForgetHistory())
	})
	f.becomes(t.path("a"), "20")
	f.becomes(t.path("b"), "-")
	f.becomes(t.path("c"), "1")
	t.commit(writer, registry.Set(t.path("a"), []byte("end"), registry.AnyVersion))
	f.becomes(t.path("a"), "end")
}

// watchAfterRestart accepts that a session is lost over a restart that takes long: then the watch ends
// with it, and that of a new one goes on. A restart has ended when a write is answered: what serves may
// still be slow to record.
func watchAfterRestart(t *caseRun) {
	t.create(t.s, t.path("a"), "0")
	f := t.syncedOn(t.s, t.dir, registry.Children)
	start := time.Now()
	t.must("RestartServer", t.h.Faults().RestartServer())
	writer := t.open()
	t.commit(writer, registry.Set(t.path("a"), []byte("1"), registry.AnyVersion), registry.Create(t.path("b"), []byte("1")))
	took := time.Since(start)
	if t.outlived(t.s, start.Add(took)) {
		f.becomes(t.path("a"), "1")
		f.becomes(t.path("b"), "1")
		return
	}
	if took < t.h.SessionTimeout()/2 {
		t.fatalf("the restart took %v; the session's timeout is %v, and it was lost: %v", took, t.h.SessionTimeout(), t.s.Err())
	}
	t.isError(f.ended(), registry.ErrSessionLost)
	next := t.syncedOn(writer, t.dir, registry.Children)
	next.becomes(t.path("a"), "1")
	next.becomes(t.path("b"), "1")
}
