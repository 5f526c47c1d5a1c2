package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A target is what a follower was told to watch.
type target struct {
	path  string
	scope registry.Scope
}

func (g target) String() string { return fmt.Sprintf("%s of %s", g.scope, g.path) }

// A view is what a follower knows of one target.
type view struct {
	adds, synced int
	nodes        map[string]registry.Node // last state, absence too
	newest       map[string]registry.Node // last state that existed
	events       int
}

// A follower consumes a Watcher and holds each event against the rules that
// every watch keeps. What it saw can be asked for at any time.
type follower struct {
	t        *caseRun
	w        registry.Watcher
	patience time.Duration // with a first call of Next
	waits    time.Duration // with the next one

	mu    sync.Mutex
	views map[target]*view
	order []registry.Event
	err   error

	unread bool // Next is called by who waits for something, and no more than it takes
}

// unread returns a follower that calls Next only while the case waits for what it shows.
func (t *caseRun) unread(s registry.Store) *follower {
	return &follower{t: t, w: t.watch(s), patience: caseTime, waits: caseTime, views: map[target]*view{}, unread: true}
}

// follow starts a follower; it is joined when the case ends.
func (t *caseRun) follow(s registry.Store) *follower { return t.followFor(s, caseTime) }

// followFor starts a follower that gives Next no longer than patience, and twice as long each time that nothing comes.
func (t *caseRun) followFor(s registry.Store, patience time.Duration) *follower {
	f := t.unread(s)
	f.unread, f.patience, f.waits = false, patience, patience
	ctx, cancel := context.WithCancel(t.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for err := error(nil); err == nil; {
			err = f.next(ctx)
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = f.w.Close()
		wg.Wait()
	})
	return f
}

// watch returns a watcher that is closed when the case ends.
func (t *caseRun) watch(s registry.Store) registry.Watcher {
	w, err := s.Watch(t.ctx)
	if err != nil {
		t.fatalf("Watch: %v", err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// next takes what one Next returns.
func (f *follower) next(ctx context.Context) error {
	brief, cancel := context.WithTimeout(ctx, f.waits)
	defer cancel()
	events, err := f.w.Next(brief)
	switch {
	case err == nil:
		f.waits = f.patience
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err, f.waits = nil, 2*f.waits // an answer may take longer than what it begins with
	}
	if err == nil && len(events) == 0 && brief.Err() == nil {
		f.t.errorf("Next returned no event and no error; want it to wait")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.take(e)
	}
	f.err = err
	return err
}

func (f *follower) take(e registry.Event) {
	f.order = append(f.order, e)
	g := target{e.Path, e.Scope}
	v := f.views[g]
	if v == nil {
		f.t.errorf("an event of %s, which is not watched", g)
		return
	}
	v.events++
	if e.Synced {
		v.synced++
		if v.synced > v.adds {
			f.t.errorf("Synced number %d of %s, which was added %d times", v.synced, g, v.adds)
		}
		return
	}
	if problem := f.misfit(g, v, e.Node); problem != "" {
		f.t.errorf("the watch of %s delivered %s: %s", g, show(e.Node), problem)
	}
	v.nodes[e.Node.Path] = e.Node
	if e.Node.Exists() {
		v.newest[e.Node.Path] = e.Node
	}
}

// misfit says which rule of every watch the state breaks.
func (f *follower) misfit(g target, v *view, n registry.Node) string {
	if problem := leftOver(n); problem != "" {
		return problem
	}
	if g.scope == registry.Self && n.Path != g.path {
		return "not the node that is watched"
	}
	if g.scope == registry.Children {
		name, below := strings.CutPrefix(n.Path, strings.TrimSuffix(g.path, "/")+"/")
		if !below || name == "" || strings.Contains(name, "/") {
			return "not one level below"
		}
	}
	last, told := v.nodes[n.Path]
	if told && last.Created == n.Created && last.Modified == n.Modified {
		return "the state that was delivered before"
	}
	newest, known := v.newest[n.Path]
	if !n.Exists() || !known {
		return ""
	}
	switch {
	case n.Modified < newest.Modified:
		return fmt.Sprintf("back in time, Modified %d was delivered before", newest.Modified)
	case told && !last.Exists() && n.Created <= newest.Created:
		return fmt.Sprintf("this incarnation, Created %d, was delivered as gone before", newest.Created)
	case n.Created < newest.Created, n.Created == newest.Created && n.Version < newest.Version:
		return "back in time, after " + show(newest)
	}
	return ""
}

// add starts a target.
func (f *follower) add(path string, scope registry.Scope) {
	f.mu.Lock()
	g := target{path, scope}
	if f.views[g] == nil {
		f.views[g] = &view{nodes: map[string]registry.Node{}, newest: map[string]registry.Node{}}
	}
	f.views[g].adds++
	clear(f.views[g].nodes) // told anew
	f.mu.Unlock()
	f.t.step("watch %s", g)
	if err := f.w.Add(path, scope); err != nil {
		f.t.fatalf("Watcher.Add(%s): %v", g, err)
	}
}

// remove ends a target: an event of it is a failure from now on.
func (f *follower) remove(path string, scope registry.Scope) {
	g := target{path, scope}
	f.w.Remove(path, scope)
	f.t.step("Remove(%s)", g)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.views, g)
}

// synced waits for the Synced of the last add of a target.
func (f *follower) synced(path string, scope registry.Scope) {
	g := target{path, scope}
	f.until("Synced of "+g.String(), func() string {
		if v := f.views[g]; v.synced < v.adds {
			return fmt.Sprintf("%d of %d Synced after %d events", v.synced, v.adds, v.events)
		}
		return ""
	})
}

// until waits for what ok, called under the lock, finds in order.
func (f *follower) until(what string, ok func() string) {
	ctx, cancel := context.WithTimeout(f.t.ctx, f.t.waits())
	defer cancel()
	f.t.eventually(what, func() string {
		f.mu.Lock()
		saw, err := ok(), f.err
		f.mu.Unlock()
		if saw != "" && err != nil {
			f.t.fatalf("waited for: %s; Next failed: %v; until then: %s", what, err, saw)
		}
		if saw != "" && f.unread {
			_ = f.next(ctx) // what it fails with is told above
		}
		return saw
	})
}

// last waits until some last state satisfies is, and returns it.
func (f *follower) last(what string, is func(registry.Node) bool) registry.Node {
	var found registry.Node
	f.until(what, func() string {
		for _, v := range f.views {
			for _, n := range v.nodes {
				if is(n) {
					found = n
					return ""
				}
			}
		}
		return "last states " + f.states()
	})
	return found
}

// becomes waits until the last state of path is value, or absence for "-".
func (f *follower) becomes(path, value string) registry.Node {
	want := "value " + value
	if value == "-" {
		want = "absence"
	}
	return f.last(fmt.Sprintf("%s to arrive as the state of %s", want, path), func(n registry.Node) bool {
		if n.Path != path {
			return false
		}
		return n.Exists() == (value != "-") && (value == "-" || string(n.Value) == value)
	})
}

// ended waits until Next fails and returns how.
func (f *follower) ended() error {
	var err error
	f.t.eventually("Next to fail", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err = f.err; err == nil {
			return "Next still waits"
		}
		return ""
	})
	return err
}

// events returns what has arrived so far, in order.
func (f *follower) events() []registry.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]registry.Event(nil), f.order...)
}

// children returns the values of what exists in a target now, by path.
func (f *follower) children(g target) map[string]string {
	values := map[string]string{}
	for _, n := range f.views[g].nodes {
		if n.Exists() {
			values[n.Path] = string(n.Value)
		}
	}
	return values
}

func (f *follower) states() string {
	var all []string
	for g, v := range f.views {
		for _, n := range v.nodes {
			if len(all) < 8 {
				all = append(all, show(n))
			}
		}
		all = append(all, fmt.Sprintf("(%s: %d events, %d Synced)", g, v.events, v.synced))
	}
	return strings.Join(all, "; ")
}
