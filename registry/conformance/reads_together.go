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

// readsTogetherCases are reads beside other calls of their session, and over broken connections.
var readsTogetherCases = []testCase{
	{name: "FreshBesideOthers", rules: "R21 R24", run: freshBesideOthers, place: "package doc, Guarantees: reads",
		rule: "a read is no older than an own commit, or a Sync, that returned before it, whatever reads and Syncs of the session are under way"},
	{name: "ManyReadsAtOnce", rules: "R74 R77", run: manyReadsAtOnce, place: "registry.Store",
		rule: "hundreds of reads of one session at once are all answered, each with what it asked for"},
	{name: "OwnWritesOverBrokenConnections", rules: "R21 R24", run: ownWritesOverDrops, needs: life, place: "package doc, Guarantees: reads",
		rule: "after a broken connection Get and Children are no older than own commits, or than a Sync, before it"},
}

// freshBesideOthers has the session, and another one of its registry, read and sync all the time, and right before each
// commit.
func freshBesideOthers(t *caseRun) {
	reg := t.registry()
	rounds, writer, s, dir := t.times(30), t.open(), t.openOn(reg), t.path("dir")
	a, beside := dir+"/a", map[string]func() error{}
	t.commit(s, registry.Create(dir, nil), registry.Create(a, nil))
	for of, s := range map[string]registry.Session{"the session": s, "another one": t.openOn(reg)} {
		beside["Get of "+of] = func() error { return second(s.Get(t.ctx, a)) }
		beside["Children of "+of] = func() error { return second(s.Children(t.ctx, dir)) }
		beside["Sync of "+of] = func() error { return s.Sync(t.ctx) }
		t.sync(s)
	}
	stop := t.keepCalling(beside)
	defer stop()
	var sent sync.WaitGroup
	defer sent.Wait()
	commits := 0
	commit := func(by registry.Session) {
		var begun sync.WaitGroup
		begun.Add(len(beside))
		for name, call := range beside {
			sent.Go(func() {
				begun.Done()
				if err := call(); err != nil {
					t.errorf("%s, beside a commit: %v", name, err)
				}
			})
		}
		begun.Wait()
		t.getAll(s, dir, a)
		commits++
		t.commit(by, registry.Set(a, nil, registry.AnyVersion), registry.Create(fmt.Sprintf("%s/%03d", dir, commits), nil))
	}
	shows := func(after string) {
		if n := t.get(s, a); int(n.Version) != commits {
			t.fatalf("after %s Get gives %s; there were %d Sets", after, show(n), commits)
		}
		if names := t.children(s, dir); len(names) != commits+1 {
			t.fatalf("after %s Children gives %d names; there are %d", after, len(names), commits+1)
		}
	}
	for range rounds {
		commit(s)
		shows("a commit of its own")
		commit(writer)
		t.sync(s)
		shows("Sync, beside others")
	}
}

// keepCalling has each call made by two callers, again and again, until stop.
func (t *caseRun) keepCalling(calls map[string]func() error) (stop func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		for name, call := range calls {
			all.Go(func() {
				for !isClosed(over) {
					if err := call(); err != nil {
						t.errorf("%s, again and again: %v", name, err)
						return
					}
					<-time.After(200 * time.Microsecond) // what spins keeps heartbeats from their time
				}
			})
		}
	}
	return func() { close(over); all.Wait() }
}

func manyReadsAtOnce(t *caseRun) {
	const callers, nodes = 500, 10
	for i := range nodes {
		t.create(t.s, t.path(fmt.Sprint(i)), fmt.Sprint(i))
		t.create(t.s, t.path(fmt.Sprint(i, "/child of ", i)), "")
	}
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-begin
			p := t.path(fmt.Sprint(i % nodes))
			if i%3 == 0 {
				t.hasChildren(t.s, p, fmt.Sprint("child of ", i%nodes))
			} else if n := t.present(t.s, p); string(n.Value) != fmt.Sprint(i%nodes) {
				t.fatalf("one of %d reads at once gave %s with value %q", callers, show(n), n.Value)
			}
		})
	}
	close(begin)
	all.Wait()
}

// ownWritesOverDrops breaks the connection right after what a later read has to show.
func ownWritesOverDrops(t *caseRun) {
	const rounds = 5
	writer, dir := t.open(), t.path("dir")
	t.create(t.s, dir, "")
	for round := range rounds {
		for _, by := range []registry.Session{t.s, writer} {
			name := fmt.Sprintf("%d of %s", round, by.ID())
			p := dir + "/" + name
			t.get(t.s, p)
			t.children(t.s, dir)
			t.commitAgain(by, registry.Create(p, nil))
			if by == writer {
				t.sync(t.s)
			}
			t.drop(t.s)
			if names := t.children(t.s, dir); !slices.Contains(names, name) {
				t.fatalf("session %s has made %q, the connection of session %s broke, and its Children gives %q",
					by.ID(), name, t.s.ID(), names)
			}
			t.present(t.s, p)
		}
	}
	t.alive(t.s)
}

// givenUpCases are what comes beside and behind calls whose context ends.
var givenUpCases = []testCase{
	{name: "CallsBesideOnesThatGiveUp", rules: "R18 R19 R74", run: besideGivenUp, needs: slowly, place: "package doc, Guarantees: a context; registry.Store",
		rule: "a call whose context ends takes none along that is under way, and the next ones have answers of their own"},
}

// besideGivenUp has answers come so late that the contexts of some calls end.
func besideGivenUp(t *caseRun) {
	reg := t.registry()
	s := t.openOn(reg)
	for who, store := range map[string]registry.Store{"session": s, "store": t.store(reg)} {
		dir := t.path(who)
		t.commit(t.s, registry.Create(dir, nil), registry.Create(dir+"/a", []byte("a")), registry.Create(dir+"/b", []byte("b")))
		t.commit(t.s, registry.Create(dir+"/a/in a", nil), registry.Create(dir+"/b/in b", nil))
		if err := store.Sync(t.ctx); err != nil {
			t.fatalf("Sync of a %s: %v", who, err)
		}
		t.advances(s, 0)
		heal, err := t.h.Faults().(*observedFaults).Delay(s, t.h.SessionTimeout()/10)
		t.must("Delay", err)
		for round := range 2 {
			t.besideGivenUp(who, store, dir, fmt.Sprint(round))
		}
		heal()
		t.proveHit(s)
	}
	t.alive(s)
}

func (t *caseRun) besideGivenUp(who string, store registry.Store, dir, round string) {
	gaveUp := map[string]error{}
	var mu sync.Mutex
	var brief, beside sync.WaitGroup
	ctx := t.within(t.h.SessionTimeout() / 40)
	for name, call := range t.ownAnswers(ctx, store, dir, "b", round+" given up") {
		brief.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			gaveUp[name] = err
		})
	}
	expect := func(when string) {
		for name, call := range t.ownAnswers(t.ctx, store, dir, "a", round+" "+when) {
			beside.Go(func() {
				if err := call(); err != nil {
					t.errorf("%s of a %s, %s others whose context ended: %v", name, who, when, err)
				}
			})
		}
	}
	expect("beside")
	brief.Wait()
	expect("after")
	beside.Wait()
	for name, err := range gaveUp {
		t.step("%s of a %s, with a context that ended on the way = %v", name, who, err)
		if err != nil && ctx.Err() == nil {
			t.fatalf("%s of a %s, before its context ended: %v", name, who, err)
		}
	}
	if err := gaveUp["Create"]; err != nil && !errors.Is(err, registry.ErrUncertain) {
		t.sync(t.s)
		t.absent(t.s, dir+"/b/"+round+" given up")
	}
}

// ownAnswers are calls about the node of that name in dir, which fail where the answer is another's.
func (t *caseRun) ownAnswers(ctx context.Context, store registry.Store, dir, name, makes string) map[string]func() error {
	p := dir + "/" + name
	return map[string]func() error{
		"Get": func() error {
			nodes, err := store.Get(ctx, p, p+"/none")
			if err != nil {
				return err
			}
			if len(nodes) != 2 || nodes[0].Path != p || string(nodes[0].Value) != name || nodes[1].Exists() {
				err = fmt.Errorf("read %+v", nodes)
			}
			return err
		},
		"Children": func() error {
			names, err := store.Children(ctx, p)
			if err == nil && !slices.Contains(names, "in "+name) {
				err = fmt.Errorf("listed %q", names)
			}
			return err
		},
		"Create": func() error { return second(store.Commit(ctx, registry.Create(p+"/"+makes, nil))) },
		"a Set that is refused": func() error {
			ops := []registry.Op{registry.Check(dir, registry.AnyVersion), registry.Set(p, nil, 7)}
			_, err := store.Commit(ctx, ops...)
			var refusal *registry.CommitError
			switch {
			case err == nil:
				return errors.New("it succeeded")
			case !errors.As(err, &refusal), !errors.Is(err, registry.ErrVersion), refusal.Index != 1, refusal.Op.Path != p:
				return err
			}
			return nil
		},
	}
}
