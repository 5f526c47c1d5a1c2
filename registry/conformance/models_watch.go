package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/registry"
)

// A stir is one step of a sequence that watchers look on: a commit, a fault of
// one watcher's client, or one more target.
type stir struct {
	kind    stirKind
	ops     []intent
	watcher int
	target  target // its path is below the sequence's own
}

type stirKind uint8

const (
	stirCommit stirKind = iota
	stirDrop
	stirCutOff // commits while the client cannot connect
	stirAdd
)

// watchers of a sequence; the first two share a session.
const watchers = 3

// stirsOf is a sequence of WatchConverges.
func stirsOf() *rapid.Generator[[]stir] {
	const steps = 24
	return rapid.SliceOfN(rapid.Custom(genStir), steps, steps)
}

func genStir(t *rapid.T) stir {
	who := rapid.IntRange(0, watchers-1)
	switch rapid.IntRange(0, 31).Draw(t, "step") { // small numbers come more often
	case 12, 13:
		return stir{kind: stirDrop, watcher: who.Draw(t, "watcher")}
	case 9, 20, 21:
		return stir{kind: stirCutOff, watcher: who.Draw(t, "watcher"), ops: genIntents(t)}
	case 24, 25, 26, 27:
		return stir{kind: stirAdd, watcher: who.Draw(t, "watcher"), target: target{
			path:  rapid.SampledFrom(append(modelPaths(), "")).Draw(t, "path"),
			scope: rapid.SampledFrom([]registry.Scope{registry.Self, registry.Children}).Draw(t, "scope"),
		}}
	}
	return stir{ops: genIntents(t)}
}

// calmer makes a fault a mere commit, and a commit smaller.
func calmer(s stir) []stir {
	var all []stir
	if s.kind == stirCutOff {
		all = append(all, stir{ops: s.ops})
	}
	if len(s.ops) > 1 {
		for i := range s.ops {
			less := s
			less.ops = []intent{s.ops[i]}
			all = append(all, less)
		}
	}
	return all
}

func watchConverges(t *caseRun) {
	hits := map[stirKind]int{}
	explore(t, plan[stir]{
		steps:    stirsOf(),
		simpler:  calmer,
		sessions: 2,
		try: func(t *caseRun, others []registry.Session, stirs []stir) {
			a := &audience{caseRun: t, hits: hits}
			for i := range watchers {
				a.join(others[i/2])
			}
			for _, s := range stirs {
				a.stir(s)
			}
			a.converges()
		},
	})
	if hits[stirDrop] == 0 || hits[stirCutOff] == 0 {
		t.void("drops have hit %d times, outages %d times", hits[stirDrop], hits[stirCutOff])
	}
}

// An audience is the watchers of one sequence. The writer is the run's own session.
type audience struct {
	*caseRun
	sessions  []registry.Session
	followers []*follower
	targets   [][]target
	hits      map[stirKind]int
}

func (a *audience) join(s registry.Session) {
	a.sessions = append(a.sessions, s)
	a.followers = append(a.followers, a.follow(s))
	a.targets = append(a.targets, nil)
	a.watchToo(len(a.followers)-1, target{a.dir, registry.Children})
	a.watchToo(len(a.followers)-1, target{a.path("a"), registry.Self})
	a.watchToo(len(a.followers)-1, target{a.path("a"), registry.Children})
}

// watchToo adds a target, unless it is there.
func (a *audience) watchToo(watcher int, g target) {
	if slices.Contains(a.targets[watcher], g) {
		return
	}
	a.targets[watcher] = append(a.targets[watcher], g)
	a.followers[watcher].add(g.path, g.scope)
}

func (a *audience) stir(s stir) {
	switch s.kind {
	case stirCommit:
		a.write(s.ops)
	case stirDrop:
		a.drop(a.sessions[s.watcher])
		a.hits[s.kind]++
	case stirCutOff:
		a.cutOff(a.sessions[s.watcher], func() { a.write(s.ops) })
		a.hits[s.kind]++
	case stirAdd:
		a.watchToo(s.watcher, target{strings.TrimSuffix(a.path(s.target.path), "/"), s.target.scope})
	}
}

// write commits; that many are refused is as good.
func (a *audience) write(intents []intent) {
	ops := a.opsOn(a.s, intents)
	if _, err := a.try(a.ctx, a.s, ops...); err != nil && classOf(err) == "" {
		a.fatalf("commit(%s) failed: %v", describe(ops), err)
	}
}

// converges waits until all watchers hold what a read gives.
func (a *audience) converges() {
	a.step("the writer is done")
	a.sync(a.s)
	patience := time.Now().Add(a.patience())
	for w, f := range a.followers {
		for _, g := range a.targets[w] {
			want := a.truth(g)
			a.eventually("watchers to converge", func() string {
				saw := f.differs(g, want)
				if saw != "" && time.Now().After(patience) {
					a.fatalf("watcher %d of %s does not come to what a read gives: %s", w, g, saw)
				}
				return saw
			})
		}
	}
}

// patience is long, since nobody knows how long a client takes to come back.
func (a *audience) patience() time.Duration { return min(10*time.Second, a.left()/4) }

// truth is what a target consists of now.
func (a *audience) truth(g target) map[string]registry.Node {
	paths := []string{g.path}
	if g.scope == registry.Children {
		paths = nil
		names, err := a.s.Children(a.ctx, g.path)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			a.fatalf("Children(%s): %v", g.path, err)
		}
		for _, name := range names {
			paths = append(paths, g.path+"/"+name)
		}
	}
	want := map[string]registry.Node{}
	if len(paths) > 0 {
		for _, n := range a.getAll(a.s, paths...) {
			want[n.Path] = n
		}
	}
	return want
}

// differs says how the view of a target differs from the truth.
func (f *follower) differs(g target, want map[string]registry.Node) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.differing(g, want)
}

// differing is differs, called under the lock.
func (f *follower) differing(g target, want map[string]registry.Node) string {
	v := f.views[g]
	if f.err != nil {
		return fmt.Sprintf("Next failed: %v", f.err)
	}
	if v.synced < v.adds {
		return "Synced has not come"
	}
	for path, w := range want {
		n, known := v.nodes[path]
		if !known && w.Exists() {
			return "nothing was delivered of " + show(w)
		}
		if n.Created != w.Created || n.Modified != w.Modified || n.Version != w.Version || n.Ephemeral != w.Ephemeral || !bytes.Equal(n.Value, w.Value) {
			return fmt.Sprintf("it holds %s with value %q; a read gives %s with value %q", show(n), n.Value, show(w), w.Value)
		}
	}
	for path, n := range v.nodes {
		if _, exists := want[path]; !exists && n.Exists() {
			return fmt.Sprintf("it holds %s, which is gone", show(n))
		}
	}
	return ""
}
