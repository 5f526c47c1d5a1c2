//go:build failpoint

package simulation

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// Stacks show the labels of goroutines.
func init() { _ = os.Setenv("GODEBUG", os.Getenv("GODEBUG")+",tracebacklabels=1") }

const (
	// tries is how many seeds each failpoint is struck in, once each.
	tries = 4
	// visits is how many seeds are looked at for them.
	visits = 40
)

// A strike is what is done to the process that comes to a failpoint.
type strike struct {
	name string
	do   func(w *world, p *process)
}

var strikes = []strike{
	{"killed", func(w *world, p *process) { p.crash() }},
	{"killed and expired", func(w *world, p *process) {
		p.crash()
		w.expire(p)
	}},
	{"paused", func(w *world, p *process) {
		if p.still() {
			return
		}
		thaw := p.freeze(false)
		w.later("thaw of "+p.name, 2*w.timeout, thaw)
	}},
	{"answer lost", func(w *world, p *process) { w.failNext(p, memory.AnswerLost) }},
	{"request lost", func(w *world, p *process) { w.failNext(p, memory.RequestLost) }},
	{"applied late", func(w *world, p *process) { w.failNext(p, memory.AppliedLate(1500*time.Millisecond)) }},
	{"refused", func(w *world, p *process) { w.failNext(p, memory.Refused) }},
}

// failNext decides what becomes of the next commit of a process.
func (w *world) failNext(p *process, fate memory.Fate) {
	before := w.fate
	done := false
	w.fate = func(proc string, ops []registry.Op) memory.Fate {
		if proc == p.name && !done {
			done = true
			return fate
		}
		if before != nil {
			return before(proc, ops)
		}
		return memory.Deliver
	}
}

func TestFailpoints(t *testing.T) {
	all := 0
	defer func() {
		fmt.Fprintf(os.Stdout, "%d failpoints, %d ways to strike, %d strikes\n", len(failpoint.Points), len(strikes), all)
	}()
	come := visitors(t)
	for _, point := range failpoint.Points {
		for way, s := range strikes {
			t.Run(fmt.Sprintf("%s/%s", point, s.name), func(t *testing.T) {
				struck := 0
				for _, seed := range turned(come[point], way*tries) { // each way has seeds of its own, as far as there are
					if struck == tries {
						break
					}
					res := simulate(t, seed, ^mask(0), func(w *world) func() { return w.strikeAt(point, s, &struck) })
					if len(res.violations) > 0 && sound(t, res.seed) {
						t.Errorf("seed %d: %s", res.seed, res.violations[0].text)
					}
				}
				all += struck
				if struck == 0 {
					t.Errorf("not reached in %d seeds", visits)
				}
			})
		}
	}
}

// turned begins at the nth of all, and comes to those before it in the end.
func turned[T any](all []T, n int) []T {
	n %= max(1, len(all))
	return slices.Concat(all[n:], all[:n])
}

// visitors returns the seeds in which a process comes to each of the failpoints, of those that are looked
// at: until something is struck a seed goes the same way.
func visitors(t *testing.T) map[failpoint.Point][]uint64 {
	t.Helper()
	come := map[failpoint.Point][]uint64{}
	for seed := *first; seed < *first+visits; seed++ {
		res := simulate(t, seed, ^mask(0), func(w *world) func() {
			return failpoint.Set(func(at failpoint.Point) {
				if n := len(come[at]); n > 0 && come[at][n-1] == seed {
					return
				}
				if p := w.caller(); p != nil && !closed(p.dead) {
					come[at] = append(come[at], seed)
				}
			})
		})
		sounds[seed] = len(res.violations) == 0
	}
	return come
}

var sounds = map[uint64]bool{}

// sound reports whether a seed has no violation where no failpoint is struck.
func sound(t *testing.T, seed uint64) bool {
	t.Helper()
	known, asked := sounds[seed]
	if !asked {
		known = len(simulate(t, seed, ^mask(0)).violations) == 0
		sounds[seed] = known
	}
	return known
}

// strikeAt strikes the process that comes to a place, at the time of the seed's choice.
func (w *world) strikeAt(point failpoint.Point, s strike, struck *int) (restore func()) {
	wait := w.dice.of("failpoint " + string(point) + s.name).IntN(30)
	return failpoint.Set(func(at failpoint.Point) {
		if at != point || wait < 0 {
			return
		}
		p := w.caller()
		if p == nil || closed(p.dead) {
			return
		}
		if wait--; wait >= 0 && !rare(point) {
			return
		}
		wait = -1
		*struck++
		w.log.tell("", history.Record{Kind: history.FaultBegun, Who: "driver", Fault: s.name + " " + string(point), Of: p.name, Disturbs: true})
		w.log.tell("", history.Record{Kind: history.FaultEnded, Who: "driver", Fault: s.name + " " + string(point), Of: p.name, Disturbs: true, Count: 1})
		s.do(w, p)
		p.moves()
	})
}

// rare reports whether a run comes to a place so seldom that its first time counts.
func rare(p failpoint.Point) bool {
	return !slices.Contains([]failpoint.Point{
		failpoint.BeforeRecord, failpoint.AfterRecord, failpoint.BeforeEnter, failpoint.Returned,
	}, p)
}

var label = regexp.MustCompile(`"process": "(\w+)"`)

// caller is the process whose goroutine calls, nil when nobody knows: what an engine
// starts has its label, but what a timer starts has none; then it is the process that
// the driver let go on at this instant.
func (w *world) caller() *process {
	head := make([]byte, 300)
	head = head[:runtime.Stack(head, false)]
	line, _, _ := strings.Cut(string(head), "\n")
	if found := label.FindStringSubmatch(line); found != nil {
		return w.procs[slices.IndexFunc(w.procs, func(p *process) bool { return p.name == found[1] })]
	}
	if w.driver.latest.Equal(time.Now()) {
		return w.driver.moved
	}
	return nil
}

// noticed has the seeds that noticed a mutation when it was last searched for, where that takes long. They are tried
// first; when the engine has changed another seed may be the one that notices.
var noticed = map[failpoint.Mutation]uint64{
	failpoint.SessionEndedEarly: 42, failpoint.HoldIgnored: 491, failpoint.BaseEarly: 51, failpoint.RedoIgnored: 38,
	failpoint.RedoMovesCursor: 169, failpoint.TriesOfOwed: 60, failpoint.ClockIgnored: 66,
}

func TestMutants(t *testing.T) {
	for _, m := range failpoint.Mutations {
		t.Run(string(m), func(t *testing.T) {
			red := func(s uint64) bool {
				restore := failpoint.Mutate(m)
				res := simulate(t, s, ^mask(0))
				restore()
				if len(res.violations) == 0 || !sound(t, s) {
					return false
				}
				fmt.Fprintf(os.Stdout, "mutation %q: red with seed %d\n", m, s)
				t.Logf("seed %d: %s", s, res.violations[0].text)
				return true
			}
			if s, known := noticed[m]; known && red(s) {
				return
			}
			for s := *first; s < *first+uint64(*seeds); s++ {
				if red(s) {
					return
				}
			}
			t.Errorf("none of %d seeds notices", *seeds)
		})
	}
}
