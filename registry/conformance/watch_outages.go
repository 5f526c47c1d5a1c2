package conformance

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// watchOutageCases cut watchers off in each way there is.
var watchOutageCases = []testCase{
	{name: "EndsWhileCutOff", rules: "R58 R66 R67", run: endsWhileCutOff, needs: alone | life, place: "Watcher.Next, Watcher.Close",
		rule: "Close and the loss of the session wake Next, with targets or without, cut off from the service too"},
	{name: "RemoveAddWhileCutOff", rules: "R61 R63 R64", run: removeAddWhileCutOff, place: "Watcher.Remove, Watcher.Add",
		rule: "what is removed and added while cut off delivers its state and Synced again; what is removed, nothing"},
	{name: "ChangesDuringOutagesSeen", rules: "R26 R58", run: changesDuringOutages, place: watcherDoc,
		rule: "what changed while connections were refused, or requests or answers were swallowed, arrives at every target"},
	{name: "NothingAgainAfterOutages", rules: "R25 R57 R59", run: nothingAgain, place: watcherDoc,
		rule: "after a broken connection nothing comes again: no state, no absence, nothing that was gone, nothing older"},
}

// An outage cuts the client of a session off for as long as others act.
type outage func(s registry.Session, meanwhile func())

// refusals are the ways in which a client can be cut off until they are healed.
func (t *caseRun) refusals() map[string]func(registry.Session) (heal func(), err error) {
	faults := t.h.Faults()
	ways := map[string]func(registry.Session) (func(), error){"Refuse": faults.Refuse}
	for _, d := range []Direction{Both, Requests, Answers} {
		ways["Blackhole "+d.String()] = func(s registry.Session) (func(), error) { return faults.Blackhole(s, d) }
	}
	return ways
}

// outages are the refusals, and broken connections.
func (t *caseRun) outages() map[string]outage {
	ways := map[string]outage{"Drop": func(s registry.Session, meanwhile func()) {
		was := s.Deadline()
		t.drop(s)
		meanwhile()
		// Where nothing else is sent, the next Drop hits a heartbeat.
		t.eventually("a heartbeat after the connection broke", func() string {
			t.alive(s)
			if s.Deadline().After(was) {
				return ""
			}
			return "Deadline stands"
		})
	}}
	for name, refuse := range t.refusals() {
		ways[name] = func(s registry.Session, meanwhile func()) {
			before := t.h.Faults().Hits(s)
			heal, err := refuse(s)
			t.must(name, err)
			defer heal()
			meanwhile()
			t.eventually(name+" to hit", func() string {
				if t.h.Faults().Hits(s) > before {
					return ""
				}
				t.alive(s) // else nothing is sent that the fault could hit
				_, _ = s.Get(t.within(t.h.SessionTimeout()/20), t.dir)
				return "void, nothing is proved: Faults.Hits has not moved"
			})
			heal()
			t.step("healed: %s", name)
		}
	}
	return ways
}

// inEach runs a trial for each way side by side, below a directory of its own.
func inEach[W any](t *caseRun, ways map[string]W, trial func(name, dir string, way W)) {
	var all sync.WaitGroup
	defer all.Wait()
	for name, way := range ways {
		dir := t.path(name)
		t.create(t.s, dir, "")
		all.Go(func() { trial(name, dir, way) })
	}
}

// endsWhileCutOff cuts all off first: whoever waits finds the service away, and nothing else wakes it.
func endsWhileCutOff(t *caseRun) {
	var closed, lost []*follower
	var sessions []registry.Session
	for name, refuse := range t.refusals() {
		s := t.open()
		sessions = append(sessions, s)
		closed = append(closed, t.follow(s), t.syncedOn(s, t.dir, registry.Self))
		lost = append(lost, t.follow(s), t.syncedOn(s, t.dir, registry.Self))
		heal, err := refuse(s)
		t.must(name, err)
		defer heal()
	}
	t.elapse(t.h.SessionTimeout() / 10)
	for _, f := range closed {
		if err := f.w.Close(); err != nil {
			t.fatalf("Watcher.Close, cut off: %v", err)
		}
		t.isError(f.ended(), registry.ErrClosed)
	}
	for _, s := range sessions {
		t.lostSoon(s)
	}
	for _, f := range lost {
		t.isError(f.ended(), registry.ErrSessionLost)
		f.keptAll(t.dir)
	}
}

func removeAddWhileCutOff(t *caseRun) {
	inEach(t, t.outages(), func(_, d string, out outage) {
		s := t.open()
		again := []target{{d, registry.Children}, {d, registry.Self}, {d + "/none", registry.Self}, {d + "/none", registry.Children}}
		gone := []target{{d + "/a", registry.Self}, {d + "/a", registry.Children}}
		t.commit(s, registry.Create(d+"/a", []byte("0")), registry.Create(d+"/a/b", []byte("0")))
		f := t.unread(s)
		for _, g := range append(again, gone...) {
			f.add(g.path, g.scope)
			f.synced(g.path, g.scope)
		}
		fresh := target{d + "/a/b", registry.Self}
		out(s, func() {
			for _, g := range again {
				f.remove(g.path, g.scope)
				f.add(g.path, g.scope)
			}
			for _, g := range gone {
				f.remove(g.path, g.scope)
			}
			f.add(fresh.path, fresh.scope)
			f.remove(fresh.path, fresh.scope)
			t.commit(t.s, registry.Set(d+"/a", nil, 0), registry.Set(d+"/a/b", nil, 0), registry.Set(d, nil, 0))
		})
		for _, g := range again {
			f.synced(g.path, g.scope)
		}
		rev := t.commit(t.s, registry.Set(d+"/a", nil, 1), registry.Set(d+"/a/b", nil, 1), registry.Set(d, nil, 1),
			registry.Create(d+"/none", nil), registry.Create(d+"/none/c", nil))
		for i, path := range []string{d + "/a", d, d + "/none", d + "/none/c"} {
			f.arrives(again[i], path, rev)
		}
		t.still(nil)
		rev = t.commit(t.s, registry.Set(d, []byte("end"), 2)) // what came of the others comes with it
		f.arrives(again[1], d, rev)
		t.alive(s)
	})
}

// comesTo waits until targets hold what a read gives.
func (f *follower) comesTo(targets ...target) {
	f.t.sync(f.t.s)
	for _, g := range targets {
		want := (&audience{caseRun: f.t}).truth(g)
		f.until(g.String()+" to come to what a read gives", func() string { return f.differing(g, want) })
	}
}

func changesDuringOutages(t *caseRun) {
	inEach(t, t.outages(), func(_, d string, out outage) {
		s, owners := t.open(), []registry.Session{t.open(), t.open()}
		owned := func(round int) string { return fmt.Sprint(d, "/owned", round) }
		for i, owner := range owners {
			t.commit(owner, registry.CreateEphemeral(owned(i), nil))
		}
		f, targets := t.watchesAll(s, s, d)
		for i := range owners {
			f.add(owned(i), registry.Self)
			f.becomes(owned(i), "")
			targets = append(targets, target{owned(i), registry.Self})
		}
		f.comesTo(targets...)
		ends := []func(registry.Session){t.mustClose, func(s registry.Session) { t.must("Expire", t.h.Faults().Expire(s)) }}
		for round, end := range ends {
			out(s, func() {
				began := time.Now()
				t.changeAll(d, round)
				end(owners[round])
				t.goneSoon(t.s, owned(round))
				if round == 1 { // the second time for long, as BlackholeShort
					t.elapse(t.h.SessionTimeout()/3 - time.Since(began))
				}
			})
			f.comesTo(targets...)
		}
		t.alive(s)
	})
}

// watchesAll makes nodes below d and follows them, each by itself and all together.
func (t *caseRun) watchesAll(by registry.Session, on registry.Store, d string) (*follower, []target) {
	f, targets := t.follow(on), []target{{d, registry.Self}, {d, registry.Children}, {d + "/gone", registry.Children}}
	for _, name := range []string{"set", "emptied", "gone", "recreated"} {
		t.commit(by, registry.Create(d+"/"+name, []byte("0")))
		targets = append(targets, target{d + "/" + name, registry.Self})
	}
	t.commit(by, registry.Create(d+"/gone/child", nil))
	for _, name := range []string{"passing", "new0", "new1"} {
		targets = append(targets, target{d + "/" + name, registry.Self})
	}
	for _, g := range targets {
		f.add(g.path, g.scope)
	}
	for _, g := range targets {
		f.synced(g.path, g.scope)
	}
	f.comesTo(targets...)
	return f, targets
}

// changeAll lets each node below d go its way, in the first round or the second.
func (t *caseRun) changeAll(d string, round int) {
	latest, value := registry.AnyVersion, fmt.Append(nil, round+1)
	t.commit(t.s, registry.Set(d, value, latest), registry.Set(d+"/set", value, latest),
		registry.Delete(d+"/recreated", latest), registry.Create(d+"/passing", nil))
	t.commit(t.s, registry.Create(d+"/recreated", []byte("0")), registry.Delete(d+"/passing", 0),
		registry.Create(fmt.Sprint(d, "/new", round), value))
	if round == 0 {
		t.commit(t.s, registry.Set(d+"/emptied", nil, 0), registry.Delete(d+"/gone/child", 0), registry.Delete(d+"/gone", 0))
	} else {
		t.commit(t.s, registry.Set(d+"/emptied", value, 1), registry.Create(d+"/gone", nil), registry.Create(d+"/gone/child", value))
	}
}

// nothingAgain relies on what a follower checks of every event.
func nothingAgain(t *caseRun) {
	inEach(t, t.outages(), func(_, d string, out outage) {
		s := t.open()
		f, targets := t.watchesAll(s, s, d)
		for round := range 2 {
			t.changeAll(d, round)
			f.comesTo(targets...) // so that all of it was told
			for i := range 2 {
				out(s, func() {})
				t.commit(t.s, registry.Create(fmt.Sprint(d, "/tick", round, i), nil))
				f.comesTo(targets[1])
			}
		}
		t.still(nil)
		t.alive(s)
	})
}

// storeWatchCases try the watchers of stores without a life.
var storeWatchCases = []testCase{
	{name: "WatchThroughOutages", rules: "R26 R57 R58 R67 R73", run: storeWatches, place: "registry.StoreCloser, registry.Watcher",
		rule: "a watcher of a store delivers what changed while it was cut off, or ends with ErrUnavailable where a session was lost"},
	{name: "EphemeralsStayTheirOwners", rules: "R9 R48 R58", run: storeEphemerals, place: "registry.StoreCloser, OpSet",
		rule: "what a store sets stays ephemeral, goes with the session that made it, and is seen to go by a store's watcher"},
}

func storeWatches(t *caseRun) {
	inEach(t, t.outages(), func(name, d string, out outage) {
		reg := t.registry()
		marker, st := t.openOn(reg), t.store(reg)
		f, targets := t.watchesAll(t.s, st, d)
		closed := t.syncedOn(st, d, registry.Self)
		for round := range 2 {
			began := time.Now()
			out(marker, func() {
				t.changeAll(d, round)
				if err := closed.w.Close(); err != nil {
					t.fatalf("%s: Watcher.Close: %v", name, err)
				}
				t.isError(closed.ended(), registry.ErrClosed)
			})
			f.goesOn(targets, time.Since(began))
		}
	})
	t.storeWatchesOn()
}

// goesOn waits until a watcher of a store holds what a read gives, unless it has ended as one may whose
// service knows sessions only.
func (f *follower) goesOn(targets []target, took time.Duration) (ended bool) {
	f.t.sync(f.t.s)
	for _, g := range targets {
		want := (&audience{caseRun: f.t}).truth(g)
		f.t.eventually(g.String()+" of a store to come to what a read gives", func() string {
			f.mu.Lock()
			err := f.err
			f.mu.Unlock()
			switch {
			case err == nil:
				return f.differs(g, want)
			case took < f.t.h.SessionTimeout()/2 || !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrSessionLost):
				f.t.fatalf("a watcher of a store failed after an outage of %v: %v", took, err)
			}
			ended = true
			return ""
		})
	}
	return ended
}

// storeWatchesOn has watchers of a store outlive an outage that ends every session.
func (t *caseRun) storeWatchesOn() {
	reg, d := t.registry(), t.path("long")
	t.create(t.s, d, "")
	marker, st := t.openOn(reg), t.store(reg)
	f, targets := t.watchesAll(t.s, st, d)
	began := time.Now()
	heal, err := t.h.Faults().Refuse(marker)
	t.must("Refuse", err)
	defer heal()
	t.changeAll(d, 0)
	t.lostSoon(marker)
	t.elapse(t.h.SessionTimeout() / 4)
	heal()
	t.changeAll(d, 1)
	if !f.goesOn(targets, time.Since(began)) {
		return
	}
	next := t.follow(st)
	for _, g := range targets {
		next.add(g.path, g.scope)
	}
	next.goesOn(targets, 0)
}

func storeEphemerals(t *caseRun) {
	st := t.store(t.registry())
	for i, end := range []func(registry.Session){
		t.mustClose,
		func(s registry.Session) { t.must("Expire", t.h.Faults().Expire(s)) },
	} {
		owner, path := t.open(), t.path(fmt.Sprint("e", i))
		t.commit(owner, registry.CreateEphemeral(path, nil), registry.CreateEphemeral(path+"-apart", nil))
		was := t.present(owner, path)
		self, all := t.syncedOn(st, path, registry.Self), t.syncedOn(st, t.dir, registry.Children)
		apart := t.syncedOn(st, path+"-apart", registry.Self)
		rev, err := st.Commit(t.ctx, registry.Set(path, []byte("x"), 0))
		if err != nil {
			t.fatalf("Set of an ephemeral node by a store: %v", err)
		}
		t.sync(owner)
		n := t.present(owner, path)
		if !n.Ephemeral || !n.Owned || n.Created != was.Created || n.Modified != rev {
			t.fatalf("after a store's Set at revision %d the owner reads %s; it was %s", rev, show(n), show(was))
		}
		for _, f := range []*follower{self, all} {
			if told := f.becomes(path, "x"); !told.Ephemeral || told.Owned || told.Created != was.Created {
				t.fatalf("the watch of a store delivers %s", show(told))
			}
		}
		if told := apart.becomes(path+"-apart", ""); !told.Ephemeral || told.Owned {
			t.fatalf("the first state that the watch of a store delivers of an ephemeral node is %s", show(told))
		}
		end(owner)
		for _, f := range []*follower{self, all} {
			f.becomes(path, "-")
		}
		apart.becomes(path+"-apart", "-")
		all.becomes(path+"-apart", "-")
		t.goneSoon(t.s, path, path+"-apart")
	}
}
