package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// callsThroughBlips calls everything while a client is cut off for a quarter of the timeout, in each way there is, and
// while its answers are slow.
func callsThroughBlips(t *caseRun) {
	f := t.h.Faults().(*observedFaults)
	hole := func(d Direction) func(registry.Session) (func(), error) {
		return func(s registry.Session) (func(), error) { return f.Blackhole(s, d) }
	}
	var all sync.WaitGroup
	for how, begin := range map[string]func(registry.Session) (func(), error){
		"Refuse": f.Refuse, "Blackhole both": hole(Both), "Blackhole requests": hole(Requests), "Blackhole answers": hole(Answers),
		"Delay": func(s registry.Session) (func(), error) { return f.Delay(s, t.h.SessionTimeout()/10) },
	} {
		all.Go(func() {
			b := t.blip(how)
			b.slow = how == "Delay"
			defer t.proveHit(b.s)
			b.calls(func() func() {
				heal, err := begin(b.s)
				t.must(how, err)
				return heal
			})
		})
	}
	all.Wait()
}

// callsThroughAPause calls everything while the whole service stands still.
func callsThroughAPause(t *caseRun) { t.blip("Pause").calls(t.pause) }

// readsThroughARestart reads all the time while the service is restarted.
func readsThroughARestart(t *caseRun) {
	t.blip("RestartServer").reads(t.h.Faults().RestartServer)
}

// readsThroughAChangeOfLeader reads all the time while the service loses its leader.
func readsThroughAChangeOfLeader(t *caseRun) {
	b := t.blip("LoseLeader")
	b.reads(t.h.Faults().LoseLeader)
	t.alive(b.s)
}

// A blip is a short fault, and what is called while it lasts.
type blip struct {
	t    *caseRun
	how  string
	slow bool // everything has to return while it lasts
	dir  string
	s    registry.Session
	does map[string]func() error
	read map[string]func() error // those that may be repeated
}

// blip prepares a client of its own, and what it calls.
func (t *caseRun) blip(how string) *blip {
	reg := t.registry()
	b := &blip{t: t, how: how, dir: t.path(how), s: t.openOn(reg), does: map[string]func() error{}, read: map[string]func() error{}}
	t.createAll(t.s, []string{b.dir, b.dir + "/a", b.dir + "/a/1", b.dir + "/a/2", b.dir + "/lock", b.dir + "/try", b.dir + "/held"})
	t.createAll(t.s, []string{b.dir + "/set by a session", b.dir + "/set by a store"})
	held, ends := t.lock(b.s, b.dir+"/held"), t.openOn(reg)
	t.commit(ends, registry.CreateEphemeral(b.dir+"/ends", nil))
	b.does["Lock"] = func() error { return second(b.s.Lock(t.ctx, b.dir+"/lock", nil)) }
	b.does["TryLock"] = func() error { return second(b.s.TryLock(t.ctx, b.dir+"/try", nil)) }
	b.does["Release"] = func() error { return held.Release(t.ctx) }
	b.does["Open"] = func() error { return second(reg.Open(t.ctx)) }
	b.does["Close"] = func() error { return b.closes(ends) }
	for who, store := range map[string]registry.Store{"session": b.s, "store": t.store(reg)} {
		b.read["Get of a "+who] = func() error {
			nodes, err := store.Get(t.ctx, b.dir, b.dir+"/a", b.dir+"/none")
			if err == nil && len(nodes) != 3 {
				return fmt.Errorf("read %d nodes of 3 paths", len(nodes))
			}
			if err == nil && (!nodes[0].Exists() || !nodes[1].Exists() || nodes[2].Exists()) {
				err = fmt.Errorf("read %s, %s, %s", show(nodes[0]), show(nodes[1]), show(nodes[2]))
			}
			return err
		}
		b.read["Children of a "+who] = func() error {
			names, err := store.Children(t.ctx, b.dir+"/a")
			if err == nil && !slices.Equal(names, []string{"1", "2"}) {
				err = fmt.Errorf("listed %q", names)
			}
			return err
		}
		b.read["Sync of a "+who] = func() error { return store.Sync(t.ctx) }
		b.does["Watch of a "+who] = func() error { return b.watches(store) }
		b.does["Set of a "+who] = func() error { return b.sets(store, b.dir+"/set by a "+who) }
		b.does["Commit of a "+who] = func() error { return b.commits(store, b.dir+"/"+who) }
	}
	maps.Copy(b.does, b.read)
	t.advances(b.s, 0)
	return b
}

// reads goes on reading until the fault is over, and once more. The fault begins when each reader has had an answer. A
// session may be lost meanwhile, where the fault is a restart; a store has nothing to lose.
func (b *blip) reads(fault func() error) {
	t := b.t
	over := make(chan struct{})
	var reading, all sync.WaitGroup
	reading.Add(len(b.read))
	for of, call := range b.read {
		all.Go(func() {
			begun := sync.OnceFunc(reading.Done)
			defer begun()
			for last := false; !last; begun() {
				last = isClosed(over)
				err := call()
				if errors.Is(err, registry.ErrSessionLost) && b.s.Err() != nil && strings.HasSuffix(of, "session") {
					return
				}
				if err != nil {
					t.errorf("%s, called during %s: %v", of, b.how, err)
					return
				}
			}
		})
	}
	reading.Wait()
	err := fault()
	close(over)
	all.Wait()
	t.must(b.how, err)
}

// calls has everything called once the fault has begun. It may wait for the end of the fault, and has to succeed.
func (b *blip) calls(begin func() (heal func())) {
	t := b.t
	heal := begin()
	defer heal()
	type result struct {
		of  string
		err error
	}
	results := make(chan result, len(b.does))
	for of, call := range b.does {
		go func() { results <- result{of, call()} }()
	}
	if !b.slow {
		t.elapse(t.h.SessionTimeout() / 4)
		heal()
		t.step("%s: healed", b.how)
	}
	for range b.does {
		select {
		case r := <-results:
			if r.err != nil {
				t.fatalf("%s, called during %s: %v", r.of, b.how, r.err)
			}
		case <-t.ctx.Done():
			t.fatalf("what was called during %s has not returned until the end of the case: %v", b.how, t.ctx.Err())
		}
	}
	t.alive(b.s)
}

// watches waits for the present state of a target.
func (b *blip) watches(store registry.Store) error {
	w, err := store.Watch(b.t.ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Add(b.dir, registry.Children); err != nil {
		return err
	}
	for seen := false; ; {
		events, err := w.Next(b.t.ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			seen = seen || e.Node.Path == b.dir+"/a"
			if e.Synced && !seen {
				return errors.New("the present state came after Synced")
			}
			if e.Synced {
				return nil
			}
		}
	}
}

// commits succeeds where the outcome is what the error says.
func (b *blip) commits(store registry.Store, path string) error {
	value := []byte(path)
	_, err := store.Commit(b.t.ctx, registry.Create(path, value))
	if err != nil && errors.Is(err, registry.ErrUncertain) {
		return nil
	}
	if err != nil && !errors.Is(err, registry.ErrUnavailable) {
		return err
	}
	n, failed := b.latest(path)
	if failed != nil {
		return failed
	}
	if applied := n.Exists() && bytes.Equal(n.Value, value); applied != (err == nil) {
		return fmt.Errorf("error %v, and afterwards: %s", err, show(n)) //nolint:errorlint // it says what was seen
	}
	return nil
}

// latest is a node as it stands after all commits that were answered.
func (b *blip) latest(path string) (registry.Node, error) {
	if err := b.t.s.Sync(b.t.ctx); err != nil {
		return registry.Node{}, err
	}
	nodes, err := b.t.s.Get(b.t.ctx, path)
	if err != nil {
		return registry.Node{}, err
	}
	return nodes[0], nil
}

// sets succeeds where the node was set as often as the error says.
func (b *blip) sets(store registry.Store, path string) error {
	_, err := store.Commit(b.t.ctx, registry.Set(path, nil, registry.AnyVersion))
	if err != nil && !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrUnavailable) {
		return err
	}
	n, failed := b.latest(path)
	if failed != nil {
		return failed
	}
	least, most := registry.Version(0), registry.Version(1)
	if err == nil {
		least = 1
	} else if errors.Is(err, registry.ErrUnavailable) {
		most = 0
	}
	if n.Version < least || n.Version > most {
		return fmt.Errorf("error %v, and afterwards: %s", err, show(n)) //nolint:errorlint // it says what was seen
	}
	return nil
}

// closes succeeds where nil says that the session's node is gone.
func (b *blip) closes(s registry.Session) error {
	if err := s.Close(b.t.ctx); err != nil {
		b.t.step("%s: Close = %v", b.how, err)
		return nil
	}
	if err := b.t.s.Sync(b.t.ctx); err != nil {
		return err
	}
	nodes, err := b.t.s.Get(b.t.ctx, b.dir+"/ends")
	if err == nil && nodes[0].Exists() {
		err = fmt.Errorf("returned nil, and the session's node stands: %s", show(nodes[0]))
	}
	return err
}

// blipCases are calls that a short fault meets.
var blipCases = []testCase{
	{name: "CallsThroughBlips", rules: "R19 R26 R40 R69 R74 R77 R99 R111", run: callsThroughBlips, needs: slowly, place: "registry.Store, registry.Session",
		rule: "what is called while a client is cut off, for a moment and in whatever way, or its answers are slow, waits and succeeds; a commit has the outcome that it tells"},
	{name: "CallsThroughAPause", rules: "R74", run: callsThroughAPause, needs: alone, place: "registry.Store, registry.Session",
		rule: "what is called while the service pauses for a moment waits and succeeds; a commit has the outcome that it tells"},
	{name: "ReadsThroughARestart", rules: "R74", run: readsThroughARestart, needs: alone, place: "registry.Store",
		rule: "reads that a restart of the service meets are retried until they succeed"},
	{name: "ReadsThroughAChangeOfLeader", rules: "R74 R14", run: readsThroughAChangeOfLeader, needs: alone | cluster, place: "registry.Store",
		rule: "reads that a change of the service's leader meets are retried until they succeed"},
}
