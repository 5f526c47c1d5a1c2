package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
)

// What the model cases may cost. Every step is a request to a real service, so
// sequences are few and shrinking is bounded. Seeds are fixed: what has failed
// once is tried again by every run, for every adapter.
const (
	firstSeed      = 1
	sequences      = 20              // seeds firstSeed, firstSeed+1, …
	sequenceTime   = 6 * time.Second // no further sequence is begun after it
	fewSequences   = 4               // fewer within the time prove too little
	lostSessions   = 3               // so many tries may be spoilt by a session that is lost
	shrinkRuns     = 80
	shrinkTime     = 5 * time.Second
	historyCheck   = 5 * time.Second // porcupine must have decided by then
	historyListing = 40              // lines of a history in a failure
)

const modelsDoc = "registry.Store; package doc, Guarantees"

var modelCases = []testCase{
	{name: "RapidSequential", rules: "R17 R18", run: rapidSequential, place: modelsDoc,
		rule: "any sequence of commits, good and bad, has the errors, indexes, values, versions, flags and order of revisions that the model has, over drops and lost answers"},
	{name: "LinearizableRegister", rules: "R24 R19", run: linearizableRegister, place: "Store.Sync, Store.Commit; registry.ErrUncertain",
		rule: "writes, and reads after Sync, of several clients have an order in time that explains every answer, under lost answers, lost requests, drops and silence"},
	{name: "LinearizableCommit", rules: "R17 R38", run: linearizableCommit, place: "Store.Commit, Store.Sync; registry.ErrUncertain",
		rule: "commits over several nodes have an order in time that explains every answer and every refusal with its index, under the same faults"},
	{name: "LockContenders", rules: "R87 R105", run: lockContenders, place: "registry.Lock; Session.Deadline",
		rule: "acquisitions, guarded writes and releases have an order in time in which one holder follows the other and tokens rise, under drops, expiries and silence"},
	{name: "WatchConverges", rules: "R26", run: watchConverges, place: watcherDoc,
		rule: "after any sequence of changes, drops and outages every watcher holds what Sync and a read give, and no path has gone back on the way"},
}

// A plan is how sequences of steps are made, tried, and made simpler.
type plan[S any] struct {
	steps *rapid.Generator[[]S]
	// sessions are what a try acts on, each on a client of its own. The run's
	// own, the first, comes on top.
	sessions int
	// try runs steps on a run and a part of the tree of their own.
	try func(t *caseRun, others []registry.Session, steps []S)
	// simpler returns variants of a step that do less; the first that still fails is taken.
	simpler func(S) []S
}

// An exploration tries the sequences of a plan.
type exploration[S any] struct {
	*caseRun
	plan   plan[S]
	others []registry.Session
	lost   int
}

// explore tries sequences until one fails, which it shrinks and reports.
func explore[S any](t *caseRun, p plan[S]) {
	e := &exploration[S]{caseRun: t, plan: p, others: make([]registry.Session, p.sessions)}
	end := time.Now().Add(min(sequenceTime, t.left()/2))
	for nr := range sequences {
		if nr >= fewSequences && time.Now().After(end) {
			t.Logf("%d of %d sequences, for lack of time", nr, sequences)
			return
		}
		steps := p.steps.Example(firstSeed + nr)
		if failed, text := e.run(steps); failed {
			t.Fatal(e.shrink(steps, text) + fmt.Sprintf("\nseed:     %d", firstSeed+nr))
		}
	}
}

// run tries one sequence. No fault of a sequence lasts long enough to end a
// session; on a machine that stands still one may be lost all the same, and then
// the sequence is run again.
func (e *exploration[S]) run(steps []S) (failed bool, text string) {
	for {
		e.revive()
		failed, text = e.inner(func(t *caseRun) { e.plan.try(t, e.others, steps) })
		if !failed || !e.anyLost() || e.lost == lostSessions || isVoid(text) {
			return failed, text
		}
		e.lost++
	}
}

func (e *exploration[S]) anyLost() bool {
	for _, s := range slices.Concat(e.others, []registry.Session{e.s}) {
		if s.Err() != nil {
			return true
		}
	}
	return false
}

// revive opens new sessions for those that are lost or missing.
func (e *exploration[S]) revive() {
	if e.s.Err() != nil {
		e.s = e.open()
	}
	for i, s := range e.others {
		if s == nil || s.Err() != nil {
			e.others[i] = e.open()
		}
	}
}

// shrink looks for a shorter sequence that fails too and returns what it said.
func (e *exploration[S]) shrink(steps []S, text string) string {
	if isVoid(text) {
		return text
	}
	runs, was := 0, len(steps)
	end := time.Now().Add(min(shrinkTime, e.left()/3))
	reduce(steps, e.plan.simpler, func(candidate []S) bool {
		if runs == shrinkRuns || time.Now().After(end) {
			return false
		}
		runs++
		failed, saw := e.run(candidate)
		if !failed || isVoid(saw) {
			return false
		}
		text, steps = saw, candidate
		return true
	})
	return fmt.Sprintf("%s\nshrunk:   from %d steps to %d in %d runs", text, was, len(steps), runs)
}

func isVoid(text string) bool { return strings.Contains(text, "void, nothing is proved") }

// reduce leaves out steps, many at once first, and makes the others simpler, as
// long as what is left fails.
func reduce[S any](steps []S, simpler func(S) []S, fails func([]S) bool) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(steps); {
			if fewer := slices.Concat(steps[:i], steps[i+size:]); fails(fewer) {
				steps = fewer
			} else {
				i += size
			}
		}
	}
	for i := range steps {
		for again := true; again; {
			again = false
			for _, s := range simpler(steps[i]) {
				less := slices.Clone(steps)
				less[i] = s
				if fails(less) {
					steps, again = less, true
					break
				}
			}
		}
	}
}

// inner runs a part of the case that may fail without the case: on the case's
// session, below a path of its own.
func (t *caseRun) inner(run func(*caseRun)) (failed bool, text string) {
	t.inners++
	rec := &recorder{TB: t.recorder}
	in := &caseRun{recorder: rec, h: t.h, c: t.c, ctx: t.ctx, s: t.s, dir: fmt.Sprintf("%s/%d", t.dir, t.inners), trailMax: 80}
	protect(rec, func() {
		in.settled("EnsurePath("+in.dir+")", func() error { return registry.EnsurePath(in.ctx, in.s, in.dir) })
		run(in)
	})
	rec.cleanup()
	return rec.result()
}
