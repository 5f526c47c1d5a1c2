package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// ephemeralsGoTogether looks, from the moment at which one is gone, whether all are.
func ephemeralsGoTogether(t *caseRun) {
	const count = 120
	for _, end := range []string{"expired", "closed"} {
		owner := t.open()
		paths := make([]string, count)
		for i := range paths {
			dir := t.path(fmt.Sprint(end, i%5))
			if i < 5 {
				t.create(t.s, dir, "")
			}
			paths[i] = fmt.Sprint(dir, "/", i)
		}
		t.ownAll(owner, paths)
		t.sync(t.s)
		for _, n := range t.getAll(t.s, paths...) {
			if !n.Ephemeral {
				t.fatalf("before the end: %s", show(n))
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if end == "expired" {
				t.step("Expire = %v", t.h.Faults().Expire(owner))
			} else {
				t.step("Close = %v", owner.Close(t.ctx))
			}
		}()
		gone := func(nodes []registry.Node) int {
			n := 0
			for _, node := range nodes {
				if !node.Exists() {
					n++
				}
			}
			return n
		}
		for i := 0; ; i++ { // no node is looked at first each time
			order := append(slices.Clone(paths[i%count:]), paths[:i%count]...)
			if some := gone(t.getAll(t.s, order...)); some > 0 {
				t.sync(t.s)
				if n := gone(t.getAll(t.s, order...)); n < count {
					t.fatalf("of %d ephemeral nodes of one session %d were gone, and %d after Sync", count, some, n)
				}
				break
			}
			if t.ctx.Err() != nil {
				t.fatalf("the nodes of the session that was %s did not go", end)
			}
		}
		<-ended
	}
}

// namesAreFree lets others use the names of a dead session while that still acts.
func namesAreFree(t *caseRun) {
	reg := t.registry()
	for _, end := range []string{"expired", "closed", "cut off"} {
		owner, next, path := t.openOn(reg), t.open(), t.path(end[:3])
		t.commit(owner, registry.CreateEphemeral(path, []byte("old")))
		switch end {
		case "expired":
			t.must("Expire", t.h.Faults().Expire(owner))
		case "closed":
			t.mustClose(owner)
		case "cut off":
			heal := t.blackhole(owner)
			t.lostSoon(owner)
			defer heal()
			t.goneSoon(next, path)
			heal()
		}
		t.goneSoon(next, path)
		t.commit(next, registry.CreateEphemeral(path, []byte("new")))
		was := t.present(next, path)
		t.lostSoon(owner) // until then it may delete what it likes
		_, err := owner.Commit(t.ctx, registry.Delete(path, registry.AnyVersion))
		t.isError(err, registry.ErrSessionLost)
		t.step("the dead session's Close = %v", owner.Close(t.ctx))
		t.still(nil)
		t.sync(next)
		t.unchanged(next, was)
		again := t.open()
		t.sync(again)
		if n := t.get(again, path); !n.Ephemeral || n.Owned {
			t.fatalf("a third session reads %s", show(n))
		}
	}
}

// busyUser does to a session whatever a user may, for longer than its timeout.
func busyUser(t *caseRun) {
	const siblings, waiting, untaken = 12, 50, 3000
	holder, writer, reg := t.open(), t.open(), t.registry()
	s := t.openOn(reg)
	family := []registry.Session{s}
	for range siblings {
		family = append(family, t.openOn(reg))
	}
	t.lock(holder, t.path("lock"))
	t.create(writer, t.path("a"), "")
	t.create(writer, t.path("many"), "")
	t.commit(s, registry.CreateEphemeral(t.path("mine"), nil))
	idle := t.watch(s)
	for _, dir := range []string{t.dir, t.path("many")} {
		if err := idle.Add(dir, registry.Children); err != nil {
			t.fatalf("Add: %v", err)
		}
	}
	waits, giveUp := context.WithCancel(t.ctx)
	var locks sync.WaitGroup
	t.Cleanup(func() { giveUp(); locks.Wait() })
	for range waiting {
		locks.Go(func() { _, _ = s.Lock(waits, t.path("lock"), nil) })
	}
	t.queue(t.path("lock"), waiting+1)
	many := make([]string, untaken)
	for i := range many {
		many[i] = t.path(fmt.Sprint("many/", i))
	}
	t.createAll(writer, many)
	began := time.Now()
	over := began.Add(t.h.SessionTimeout() * 3 / 2)
	var wg sync.WaitGroup
	for k := range 64 {
		wg.Go(func() {
			for time.Now().Before(over) && s.Err() == nil {
				ctx, cancel := context.WithDeadline(t.ctx, over.Add(t.h.SessionTimeout()))
				if k%4 == 0 {
					_, _ = s.Commit(ctx, registry.Set(t.path("a"), make([]byte, 4<<10), registry.AnyVersion))
				} else {
					_, _ = s.Get(ctx, t.path("a"), t.dir)
				}
				cancel()
				<-time.After(5 * time.Millisecond) // the service is to be busy, not this machine
			}
		})
	}
	wg.Wait()
	t.step("64 callers at once for %v, %d events that nobody takes, %d Locks that wait, %d sessions of one registry",
		time.Since(began), untaken, waiting, len(family))
	for i, s := range family {
		if err := s.Err(); err != nil {
			t.fatalf("the service could be reached all the time, and the session was lost, number %d of its registry: %v", i, err)
		}
	}
	if n := t.latest(t.s, t.path("mine")); !n.Exists() {
		t.fatalf("the session's node is gone")
	}
	t.drain(idle, func(e registry.Event) bool { return e.Synced })
}

func idsAreUnique(t *caseRun) {
	reg := t.registry()
	seen := map[string]bool{t.s.ID(): true}
	for i := range 12 {
		s := t.openOn(reg)
		if seen[s.ID()] || s.ID() == "" {
			t.fatalf("session %d of this case has the ID %q of one before", i, s.ID())
		}
		seen[s.ID()] = true
		t.mustClose(s)
	}
	ids := make(chan string)
	for range 8 {
		go func() {
			s, err := reg.Open(t.ctx)
			if err != nil {
				ids <- err.Error()
				return
			}
			ids <- s.ID()
			_ = s.Close(t.ctx)
		}()
	}
	for range 8 {
		id := <-ids
		if seen[id] {
			t.errorf("a session that was opened beside others has the ID %q of another", id)
		}
		seen[id] = true
	}
}

// idsOutliveRestart restarts the service before the first sessions too: who counts from each restart on gives the same.
func idsOutliveRestart(t *caseRun) {
	const starts, sessions = 2, 6
	seen := map[string]bool{t.s.ID(): true}
	restart := t.h.Faults().RestartServer // which its proof shows by sessions of its own, open over the restart
	for start := range starts {
		t.must("RestartServer", restart())
		restart = t.h.Harness.Faults().RestartServer
		for range sessions {
			s := t.open()
			if seen[s.ID()] {
				t.fatalf("after restart %d a session has the ID %q of one before", start+1, s.ID())
			}
			seen[s.ID()] = true
			t.mustClose(s)
		}
	}
}

// deadlineSlowAnswers is DeadlineNeverAfterServerDeletion for a service whose answers are late: to every heartbeat, to
// the first one after a broken connection, or to Open alone.
func deadlineSlowAnswers(t *caseRun) {
	const sessions = 12
	timeout := t.h.SessionTimeout()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			reg, eyes, path := t.registry(), t.open(), t.path(fmt.Sprint(i))
			owner := t.openOn(reg)
			slowed := func(s registry.Session, d time.Duration) (heal func()) {
				heal, err := t.h.Faults().(*observedFaults).Delay(s, d)
				t.must("Delay", err)
				return heal
			}
			// A new connection has a fifth of the timeout, and an adapter's margin may be a tenth.
			brief := timeout / 7
			switch i % 3 {
			case 0:
				t.commit(owner, registry.CreateEphemeral(path, nil))
				defer slowed(owner, timeout/5)()
				t.advances(owner, timeout/2)
				t.elapse(timeout * time.Duration(i) / (4 * sessions)) // anywhere between two heartbeats
			case 1:
				t.commit(owner, registry.CreateEphemeral(path, nil))
				t.advances(owner, 0) // the reconnect has a whole timeout
				defer slowed(owner, brief)()
				t.drop(owner)
				t.advances(owner, 0)
			case 2:
				heal := slowed(owner, brief)
				owner = t.openOn(reg)
				heal()
				t.commit(owner, registry.CreateEphemeral(path, nil))
			}
			heal := t.blackhole(owner)
			defer heal()
			t.goneSoon(eyes, path)
			gone := time.Now()
			t.lostSoon(owner)
			if after := owner.Deadline().Sub(gone); after > 0 {
				t.fatalf("the node of session %s was gone %v before the session's Deadline: answers to %s came late", owner.ID(), after,
					[]string{"heartbeats", "the first heartbeat after a broken connection", "Open"}[i%3])
			}
		})
	}
	wg.Wait()
}

// openSlowAnswers: a session whose first answer comes later than its timeout is lost before its user has it.
func openSlowAnswers(t *caseRun) {
	reg, timeout := t.registry(), t.h.SessionTimeout()
	first := t.openOn(reg)
	heal, err := t.h.Faults().(*observedFaults).Delay(first, timeout*6/5)
	t.must("Delay", err)
	defer heal()
	patient := make(chan opening, 1)
	go func() {
		s, err := reg.Open(t.ctx)
		patient <- opening{s, err}
	}()
	var opens sync.WaitGroup
	for wait := timeout; wait <= 2*timeout; wait += timeout / 4 {
		for _, how := range []error{context.DeadlineExceeded, context.Canceled} {
			opens.Go(func() {
				_, err := reg.Open(t.endsIn(wait, how))
				t.proveHit(first)
				t.step("Open with a context of %v = %v", wait, err)
				if err == nil {
					t.fatalf("Open returned a session while answers came later than the session's timeout")
				}
				t.isError(err, registry.ErrUnavailable)
				t.isError(err, how)
				if errors.Is(err, registry.ErrSessionLost) {
					t.fatalf("Open with a context of %v: error %v; want no ErrSessionLost", wait, err)
				}
			})
		}
	}
	opens.Wait()
	select {
	case o := <-patient:
		t.fatalf("Open ended with %v while answers came later than the session's timeout; its context goes on", o.err)
	default:
	}
	heal()
	select {
	case o := <-patient:
		if o.err != nil {
			t.fatalf("Open, when answers were no longer late: error %v", o.err)
		}
		t.commit(o.s, registry.CreateEphemeral(t.path("a"), nil))
	case <-t.ctx.Done():
		t.fatalf("Open goes on though answers are no longer late")
	}
}

// advances waits until Deadline has moved by more than d.
func (t *caseRun) advances(s registry.Session, d time.Duration) {
	was := s.Deadline()
	t.eventually("heartbeats", func() string {
		t.alive(s)
		if s.Deadline().After(was.Add(d)) {
			return ""
		}
		return "Deadline has advanced by " + s.Deadline().Sub(was).String()
	})
}

// slowAnswersLoseNothing: what is slow is not broken.
func slowAnswersLoseNothing(t *caseRun) {
	s := t.open()
	f := t.syncedOn(s, t.dir, registry.Children)
	slow, err := t.h.Faults().(*observedFaults).Delay(s, t.h.SessionTimeout()/10)
	t.must("Delay", err)
	defer slow()
	began := time.Now()
	t.commit(s, registry.CreateEphemeral(t.path("a"), []byte("x")))
	f.becomes(t.path("a"), "x")
	t.release(t.lock(s, t.path("lock")))
	t.eventually("the session to live a timeout longer", func() string {
		t.alive(s)
		if s.Deadline().After(began.Add(t.h.SessionTimeout())) {
			return ""
		}
		return "Deadline is " + time.Until(s.Deadline()).String() + " ahead"
	})
	t.present(s, t.path("a"))
}

func secondNamespace(t *caseRun) {
	const name = "another/place"
	reg := t.h.RegistryIn(t.ctx, t.recorder, name)
	t.Cleanup(func() { _ = reg.Close() })
	if ns := reg.Namespace(); ns != name {
		t.fatalf("Namespace is %q; want %q", ns, name)
	}
	other := t.openOn(reg)
	f := t.syncedOn(other, t.dir, registry.Children)
	a := t.create(t.s, t.path("a"), "x")
	t.sync(other)
	t.unchanged(other, a)
	f.becomes(a.Path, "x")
	t.hasChildren(other, t.dir, "a")
	t.commit(other, registry.Set(a.Path, []byte("y"), 0), registry.CreateEphemeral(t.path("e"), nil))
	t.sync(t.s)
	if n := t.present(t.s, a.Path); string(n.Value) != "y" || n.Version != 1 {
		t.fatalf("what the other namespace set reads as %s with value %q", show(n), n.Value)
	}
	t.hasChildren(t.s, t.dir, "a", "e")
	l := t.lock(t.s, t.path("lock"))
	if _, err := other.TryLock(t.ctx, t.path("lock"), nil); !errors.Is(err, registry.ErrHeld) {
		t.fatalf("TryLock in the other namespace: error %v; want ErrHeld", err)
	}
	t.commit(other, l.Guard(), registry.Create(t.path("guarded"), nil))
	if _, own := t.s.Children(t.ctx, "/"+name); own != nil && !errors.Is(own, registry.ErrNotFound) {
		t.fatalf("Children of the other namespace: %v", own)
	}
}

func (t *caseRun) store(reg registry.Registry) registry.StoreCloser {
	s, err := reg.OpenStore(t.ctx)
	if err != nil {
		t.fatalf("OpenStore: %v", err)
	}
	t.Cleanup(func() { _ = s.Close(t.within(time.Second)) })
	return s
}

func storeOwnsNothing(t *caseRun) {
	st := t.store(t.registry())
	for _, ops := range [][]registry.Op{
		{registry.CreateEphemeral(t.path("e"), nil)},
		{registry.Create(t.path("p"), nil), registry.CreateEphemeral(t.path("e"), nil)},
	} {
		_, err := st.Commit(t.ctx, ops...)
		t.isInvalid("CreateEphemeral by a store", err)
	}
	t.hasChildren(t.s, t.dir)
	rev, err := st.Commit(t.ctx, registry.Create(t.path("a"), []byte("x")))
	if err != nil {
		t.fatalf("commit: %v", err)
	}
	t.commit(t.s, registry.CreateEphemeral(t.path("e"), []byte("e")))
	if err := st.Sync(t.ctx); err != nil {
		t.fatalf("Sync: %v", err)
	}
	nodes, err := st.Get(t.ctx, t.path("a"), t.path("e"), t.path("none"))
	if err != nil || len(nodes) != 3 {
		t.fatalf("Get = %v, %v", nodes, err)
	}
	if a, e := nodes[0], nodes[1]; a.Created != rev || a.Ephemeral || a.Owned || !e.Ephemeral || e.Owned || nodes[2].Exists() {
		t.fatalf("a store reads %s, %s and %s; it committed at %d", show(a), show(e), show(nodes[2]), rev)
	}
	names, err := st.Children(t.ctx, t.dir)
	if err != nil || !slices.Equal(names, []string{"a", "e"}) {
		t.fatalf("Children = %q, %v", names, err)
	}
	_, err = st.Commit(t.ctx, registry.Create(t.path("a"), nil))
	t.isCommitError(err, 0, registry.ErrExists, []registry.Op{registry.Create(t.path("a"), nil)})
	w, err := st.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	defer w.Close()
	if err := w.Add(t.dir, registry.Children); err != nil {
		t.fatalf("Add: %v", err)
	}
	t.drain(w, func(e registry.Event) bool { return e.Synced })
	t.commit(t.s, registry.Set(t.path("a"), []byte("seen"), 0))
	t.drain(w, func(e registry.Event) bool { return string(e.Node.Value) == "seen" })
	if st.Limits() != t.s.Limits() {
		t.fatalf("Limits of a store are %+v; of a session %+v", st.Limits(), t.s.Limits())
	}
}

func storeOutlives(t *caseRun) {
	var ways sync.WaitGroup // side by side: each waits for a session to expire
	for name, cut := range map[string]func(registry.Session) (func(), error){
		"Blackhole both ways": func(s registry.Session) (func(), error) { return t.h.Faults().Blackhole(s, Both) },
		"Refuse":              t.h.Faults().Refuse,
	} {
		ways.Go(func() { t.storeOutlives(name, t.path(name), cut) })
	}
	ways.Wait()
}

func (t *caseRun) storeOutlives(name, path string, cut func(registry.Session) (func(), error)) {
	reg := t.registry()
	marker, st := t.openOn(reg), t.store(reg)
	if _, err := st.Commit(t.ctx, registry.Create(path, nil)); err != nil {
		t.fatalf("commit: %v", err)
	}
	seen, closing, twice := t.watchStore(st), t.store(reg), t.store(reg)
	if _, err := twice.Get(t.ctx, path); err != nil {
		t.fatalf("Get: %v", err)
	}
	if err := seen.Add(path, registry.Self); err != nil {
		t.fatalf("Add to the watcher of a store: %v", err)
	}
	t.drain(seen, func(e registry.Event) bool { return e.Synced })
	heal, err := cut(marker)
	t.must(name, err)
	defer heal()
	set := func(ctx context.Context) error {
		return second(st.Commit(ctx, registry.Set(path, []byte("set"), registry.AnyVersion)))
	}
	get := func(ctx context.Context) error { return second(st.Get(ctx, path)) }
	var watching sync.WaitGroup
	watching.Go(func() { t.seesOn(st, seen, path) })
	patient, cutShort, cutByFirst := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { patient <- get(t.ctx) }()
	go func() { cutShort <- second(closing.Get(t.ctx, path)) }()
	go func() { cutByFirst <- second(twice.Get(t.ctx, path)) }()
	t.lostSoon(marker)
	lost := time.Now()
	bounded := func(what string, call func(context.Context) error) error {
		start := time.Now()
		err := call(t.within(t.h.SessionTimeout() / 10))
		t.step("cut off: %s of a store = %v", what, err)
		if d := time.Since(start); d > t.h.SessionTimeout()/2 {
			t.fatalf("cut off, %s of a store took %v; its context ended after %v", what, d, t.h.SessionTimeout()/10)
		}
		return err
	}
	for what, call := range map[string]func(context.Context) error{"Get": get, "Commit": set} {
		err := bounded(what, call)
		if err == nil {
			t.void("the store was answered while its client was cut off")
		}
		if errors.Is(err, registry.ErrSessionLost) {
			t.fatalf("a store has no session to lose: %v", err)
		}
	}
	_ = bounded("Close", closing.Close)
	t.isError(<-cutShort, registry.ErrClosed)
	var first sync.WaitGroup
	first.Go(func() { t.step("Close of a store, with time = %v", twice.Close(t.within(t.h.SessionTimeout()))) })
	t.isError(<-cutByFirst, registry.ErrClosed)
	_ = bounded("Close beside another one", twice.Close)
	first.Wait()
	t.elapse(t.expiry() - t.h.SessionTimeout()/2 - time.Since(lost)) // what has a session behind it loses it
	heal()
	if err := <-patient; err != nil {
		t.fatalf("Get of a store, called before the outage: %v", err)
	}
	t.eventually("the store to go on", func() string {
		err := set(t.ctx)
		switch {
		case err == nil:
			return ""
		case errors.Is(err, registry.ErrSessionLost):
			t.fatalf("a store has no session to lose: %v", err)
		}
		return err.Error()
	})
	if err := get(t.ctx); err != nil {
		t.fatalf("Get after the outage: %v", err)
	}
	watching.Wait()
}

// seesOn waits, through an outage, for what is set in it or after it. A watcher that has ended is made anew.
func (t *caseRun) seesOn(st registry.StoreCloser, w registry.Watcher, path string) {
	for ctx := t.within(t.left() * 9 / 10); ; {
		events, err := w.Next(ctx)
		for _, e := range events {
			if string(e.Node.Value) == "set" {
				return
			}
		}
		switch {
		case ctx.Err() != nil:
			t.fatalf("a store's watcher neither delivers what changed in an outage, nor ends: %v", err)
		case err != nil:
			t.step("after the outage Next of a store's watcher = %v", err)
			t.isError(err, registry.ErrUnavailable)
			w = t.watchStore(st)
			if err := w.Add(path, registry.Self); err != nil {
				t.fatalf("Add to the watcher of a store: %v", err)
			}
		}
	}
}

func storeSyncs(t *caseRun) {
	reg := t.registry()
	st, path := t.store(reg), t.path("a")
	for i := range 20 {
		if _, err := st.Get(t.ctx, path); err != nil {
			t.fatalf("Get: %v", err)
		}
		op := registry.Set(path, nil, registry.Version(i-1))
		if i == 0 {
			op = registry.Create(path, nil)
		}
		rev := t.commit(t.s, op)
		if err := st.Sync(t.ctx); err != nil {
			t.fatalf("Sync: %v", err)
		}
		nodes, err := st.Get(t.ctx, path)
		if err != nil {
			t.fatalf("Get: %v", err)
		}
		if nodes[0].Modified != rev {
			t.fatalf("after Sync a store reads %s; a session had committed at %d", show(nodes[0]), rev)
		}
	}
}

func storeCloses(t *caseRun) {
	reg := t.registry()
	other := t.openOn(reg)
	byItself, byRegistry := t.store(reg), t.store(reg)
	for i, st := range []registry.StoreCloser{byItself, byRegistry} {
		name := []string{"Close", "Registry.Close"}[i]
		if _, err := st.Get(t.ctx, t.dir); err != nil {
			t.fatalf("Get: %v", err)
		}
		w, err := st.Watch(t.ctx)
		if err != nil {
			t.fatalf("Watch: %v", err)
		}
		waits := make(chan error, 1)
		go func() { _, err := w.Next(t.ctx); waits <- err }()
		if st == byItself {
			for range 2 {
				if err := st.Close(t.ctx); err != nil {
					t.fatalf("Close: %v", err)
				}
			}
			t.alive(other)
		} else if err := reg.Close(); err != nil {
			t.fatalf("Registry.Close: %v", err)
		}
		for what, err := range map[string]error{
			"Next":  <-waits,
			"Add":   w.Add(t.dir, registry.Self),
			"Sync":  st.Sync(t.ctx),
			"Get":   second(st.Get(t.ctx, t.dir)),
			"Names": second(st.Children(t.ctx, t.dir)),
			"Watch": second(st.Watch(t.ctx)),
			"Write": second(st.Commit(t.ctx, registry.Create(t.path("x"), nil))),
		} {
			t.step("after %s: %s = %v", name, what, err)
			if !errors.Is(err, registry.ErrClosed) || errors.Is(err, registry.ErrSessionLost) {
				t.fatalf("%s of a store after %s: error %v; want ErrClosed", what, name, err)
			}
		}
		_ = w.Close()
		if st == byItself {
			t.commit(other, registry.Create(t.path("other"), nil))
		}
	}
	_, err := reg.OpenStore(t.ctx)
	t.isError(err, registry.ErrClosed)
}

func second[T any](_ T, err error) error { return err }

var storeCases = []testCase{
	{name: "OwnsNothing", rules: "R49 R72", run: storeOwnsNothing, place: "registry.StoreCloser",
		rule: "a store without a life reads, commits and watches; it makes nothing ephemeral and owns no node"},
	{name: "OutlivesOutage", rules: "R26 R73 R74 R75 R102", run: storeOutlives, place: "registry.StoreCloser",
		rule: "a store goes on after an outage that ends every session, and never fails with ErrSessionLost; meanwhile no call waits for another one"},
	{name: "SyncSeesOthers", rules: "R24", run: storeSyncs, place: "Store.Sync",
		rule: "after Sync a store reads what others had committed"},
	{name: "Closes", rules: "R43", run: storeCloses, place: "StoreCloser.Close, Registry.Close",
		rule: "after Close, of its own or of the registry, every call of a store and its watchers fails with ErrClosed"},
}
