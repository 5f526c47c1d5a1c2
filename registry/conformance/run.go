package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/stall"
)

const (
	// caseTime bounds the context of a case.
	caseTime = 30 * time.Second
	// bulkTime bounds that of a case that makes many requests, however long each of them takes. With users, etcd looks at
	// the rights to all nodes of a session for each new one: half a million looks for a thousand nodes.
	bulkTime = 4 * caseTime
	// hungTime is how long a case may go on after its context has ended, before it is given up.
	hungTime = 15 * time.Second
	// sideBySide is how many cases of a group run at once: most of them wait.
	sideBySide = 12
	// lightGroups is how many groups run at once on light services.
	lightGroups = 2

	// selfTest is the first group.
	selfTest = "Harness"
)

// needs says what a case asks of the service around it.
type needs uint8

const (
	// alone: the case disturbs the whole service or counts what others use too.
	alone needs = 1 << iota
	// cluster: the case needs more than one server.
	cluster
	// slowly: the case needs the fault Delay.
	slowly
	// spaces: the case needs a second namespace.
	spaces
	// rights: the case needs the fault Deny.
	rights
	// life: the case is about what a session owns, about its end, or about what is done to its connection: it is not tried
	// on a store.
	life
	// bulk: the case makes hundreds of requests one after the other, or a thousand nodes.
	bulk
)

// A testCase is one rule of the contract and the function that tries it.
type testCase struct {
	name  string
	rules string // the numbers of the contract's that it tries: "R1 R17"
	rule  string // one sentence: what an adapter must do
	place string // where the contract says so
	store bool   // it is a case of another group, whose sessions are stores here
	needs needs
	run   func(*caseRun)
}

// time bounds the case's context.
func (c testCase) time() time.Duration {
	if c.needs&bulk != 0 {
		return bulkTime
	}
	return caseTime
}

// A group shares one service.
type group struct {
	name  string
	cases []testCase
}

// suite is the whole table. A new group is one line here.
func suite() []group {
	nodes, lists := group{"Nodes", slices.Concat(nodeCases, readsTogetherCases)}, group{"Lists", listCases}
	commit := group{"Commit", slices.Concat(commitCases, commitTogetherCases)}
	watch := group{"Watch", slices.Concat(watchCases, watchApartCases, watchWholeCases, watchToldCases, watchOutageCases)}
	return []group{
		{selfTest, harnessCases},
		nodes,
		lists,
		commit,
		{"Sessions", slices.Concat(sessionCases, sessionEndCases)},
		{"Stores", slices.Concat(storeCases, storeWatchCases, triedOnStores(nodes, lists, commit, watch))},
		watch,
		{"Locks", slices.Concat(lockCases, lockApartCases)},
		{"Uncertain", slices.Concat(uncertainCases, blipCases, givenUpCases)},
		{"Models", modelCases},
	}
}

// on returns the cases of the group for a service of so many servers.
func (g group) on(members int) []testCase {
	var cases []testCase
	for _, c := range g.cases {
		if c.needs&cluster == 0 || members > 1 {
			cases = append(cases, c)
		}
	}
	return cases
}

// Cases lists the cases that Run runs on a service of so many servers, as
// Group/Name, in the order of the table.
func Cases(members int) []string {
	var names []string
	for _, g := range suite() {
		for _, c := range g.on(members) {
			names = append(names, g.name+"/"+c.name)
		}
	}
	return names
}

// Run proves an adapter: every case is a subtest Group/Name. newHarness is called
// once for each group, and from two goroutines when the harness is a [LightHarness].
// Cases within a group run side by side unless they disturb the service. Its last
// line of log tells how many ran.
func Run(t *testing.T, newHarness func(testing.TB) Harness) {
	t.Helper()
	var listed, ran, groups atomic.Int64
	together := 1 // groups
	one := func(g group) {
		t.Run(g.name, func(t *testing.T) {
			groups.Add(1)
			h := newHarness(t)
			t.Cleanup(h.Close)
			if l, is := h.(LightHarness); is && g.name == selfTest && l.Light() {
				together = lightGroups
			}
			cases := offered(h, g.on(h.Members()))
			listed.Add(int64(len(cases)))
			ran.Add(runGroup(t, h, cases))
		})
	}
	all := suite()
	one(all[0])
	atOnce(together, all[1:], one)
	t.Logf("conformance: %d cases in %d groups, %d skipped", ran.Load(), groups.Load(), listed.Load()-ran.Load())
}

// runGroup runs the cases that want to be alone, then the others side by side,
// and returns how many ran: fewer than all under go test -run.
func runGroup(t *testing.T, h Harness, cases []testCase) int64 {
	var ran atomic.Int64
	shared := &proofs{}
	proved := sharedProofs{h, shared}
	one := func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			ran.Add(1)
			failed, text := execute(t, proved, c)
			if text != "" {
				t.Log(text)
			}
			if failed {
				t.Fail()
			}
		})
	}
	var others []testCase
	for _, c := range cases {
		if c.needs&alone != 0 {
			one(c)
		} else {
			others = append(others, c)
		}
	}
	w, end := watchService(h)
	defer end()
	shared.witness.Store(w)
	atOnce(sideBySide, others, one)
	return ran.Load()
}

// atOnce calls f with each of all, with as many as most at the same time.
func atOnce[T any](most int, all []T, f func(T)) {
	queue := make(chan T)
	var workers sync.WaitGroup
	for range most {
		workers.Go(func() {
			for one := range queue {
				f(one)
			}
		})
	}
	for _, one := range all {
		queue <- one
	}
	close(queue)
	workers.Wait()
}

// attempts bounds how often a case is tried in which a session was lost though nothing that explains it was done to it:
// the machine stood still, or the adapter loses sessions. Within a case it bounds how often a step is tried that a busy
// machine may spoil.
const attempts = 3

// stalledAttempts bounds how often a case, or a fault's self-test, is tried that fails while the machine is seen to
// stand still, or the service to be slow.
const stalledAttempts = 6

// apartAttempts bounds how many attempts of a group's cases have nobody beside them: of an adapter that loses every
// session each case would.
const apartAttempts = 12

// A turnstile lets the attempts of a group's cases in: side by side, or one with nobody beside it.
type turnstile struct {
	beside sync.RWMutex
	apart  atomic.Int64 // attempts from the third on
}

// enter waits until the n-th attempt of a case may begin, and returns what ends it. From the third on an attempt has
// nobody beside it, apartAttempts times: that the machine is too slow may be the other cases' doing.
func (d *turnstile) enter(n int) (leave func()) {
	if n < attempts || d.apart.Add(1) > apartAttempts {
		d.beside.RLock()
		return d.beside.RUnlock
	}
	d.beside.Lock()
	return d.beside.Unlock
}

// allowance is how long a machine may stand still, or the service take for an answer: an eighth of a session timeout.
// Many cases allow an answer no more.
func allowance(h Harness) time.Duration { return max(h.SessionTimeout()/8, 100*time.Millisecond) }

// A slowness is what was seen of the machine and of the service while something was tried.
type slowness struct{ stood, answered time.Duration }

// watchSlowness begins to see, with the witness of p. It is ended by the first call of end.
func watchSlowness(p *proofs) (end func() slowness) {
	begun := time.Now()
	stood, over := stall.Watch()
	return func() slowness {
		over()
		return slowness{stood(), p.witness.Load().longest(begun)}
	}
}

// excuse says why something may have failed for the machine's sake, "" where nothing speaks for that.
func (s slowness) excuse(h Harness) string {
	switch {
	case s.stood > allowance(h):
		return fmt.Sprintf("the machine stood still for %v", s.stood.Round(time.Millisecond))
	case s.answered > 0:
		return fmt.Sprintf("the service took %v to answer a client to which nothing was done", s.answered.Round(time.Millisecond))
	}
	return ""
}

// execute runs one case within its own time and returns what came of it.
func execute(tb testing.TB, h Harness, c testCase) (failed bool, text string) {
	var notes []string
	for n := 1; ; n++ {
		o := observe(h)
		leave := o.proofs.turnstile.enter(n)
		end := watchSlowness(o.proofs)
		failed, text := executeOn(tb, o, c, c.time(), hungTime)
		why, most := o.excuse(end())
		leave()
		if !failed || why == "" {
			return failed, strings.Join(append(notes, text), "\n")
		}
		if n >= most {
			return failed, fmt.Sprintf("%s\nnote:     %s\n          So it was in each of %d attempts: the machine is too slow for sessions of %v, or the adapter is broken.",
				text, why, n, h.SessionTimeout())
		}
		notes = append(notes, fmt.Sprintf("tried again, attempt %d: %s", n+1, why))
	}
}

func executeFor(tb testing.TB, h Harness, c testCase, limit, hung time.Duration) (failed bool, text string) {
	return executeOn(tb, observe(h), c, limit, hung)
}

// executeOn runs the case once: its context ends after limit, and it is given up where it goes on for hung after that.
func executeOn(tb testing.TB, h *observation, c testCase, limit, hung time.Duration) (failed bool, text string) {
	rec := &recorder{TB: tb}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	t := &caseRun{recorder: rec, h: h, c: c, ctx: ctx}
	go func() {
		defer close(done)
		t.label()
		protect(rec, func() {
			t.begin()
			c.run(t)
			if t.Failed() {
				return
			}
			if kind := h.disturbance(); kind != "" && c.needs&alone == 0 {
				t.fatalf("%s disturbs other cases, and this one does not run alone", kind)
			}
			if void := h.void(ctx); void != "" {
				t.void("%s", void)
			}
		})
		rec.cleanup()
	}()
	guard := time.NewTimer(limit + hung)
	defer guard.Stop()
	select {
	case <-done:
	case <-guard.C:
		t.errorf("a call has not returned %v after its context ended: it ignores its context", hung)
	}
	return rec.result()
}
