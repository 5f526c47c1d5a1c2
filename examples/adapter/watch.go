package sqlite

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// A target is what a watcher follows.
type target struct {
	path  string
	scope registry.Scope
}

// A picture is what a watcher has told of a target: the Modified of each node. It
// is all that a watcher keeps, so that a consumer who does not come costs nothing
// and misses nothing but the steps in between.
type picture struct {
	told   map[string]registry.Revision
	synced bool
}

// A watcher looks at targets that may have changed when its bell rings.
type watcher struct {
	session *session
	ctx     context.Context // ends with the session and with Close
	cancel  context.CancelCauseFunc
	bell    chan struct{}

	mu      sync.Mutex
	targets map[target]*picture
	stale   map[target]*picture // of targets: what may have changed
}

var _ registry.Watcher = (*watcher)(nil)

func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, err
	}
	w := &watcher{session: s, bell: make(chan struct{}, 1), targets: map[target]*picture{}, stale: map[target]*picture{}}
	w.ctx, w.cancel = context.WithCancelCause(s.ctx)
	watchers.Lock()
	defer watchers.Unlock()
	watchers.all[w] = struct{}{}
	return w, nil
}

// Add implements registry.Watcher.
func (w *watcher) Add(path string, scope registry.Scope) error {
	if err := registry.ValidatePath(path); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := (target{path, scope}); w.targets[t] == nil {
		w.targets[t] = &picture{told: map[string]registry.Revision{}}
		w.doubt(t)
	}
	return context.Cause(w.ctx)
}

// Remove implements registry.Watcher.
func (w *watcher) Remove(path string, scope registry.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.targets, target{path, scope})
}

// Close implements registry.Watcher.
func (w *watcher) Close() error {
	w.cancel(registry.ErrClosed)
	wake(func(*watcher) {}) // forgets it
	return nil
}

// Next implements registry.Watcher.
func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		select {
		case <-w.ctx.Done():
			return nil, context.Cause(w.ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.bell:
		}
		events, err := w.look(ctx)
		if err = cmp.Or(context.Cause(w.ctx), err); err != nil {
			return nil, err
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// look reads the targets that are stale and returns what is new.
func (w *watcher) look(ctx context.Context) ([]registry.Event, error) {
	ctx, cancel := both(ctx, w.ctx)
	defer cancel()
	w.mu.Lock()
	asked := w.stale
	w.stale = map[target]*picture{}
	w.mu.Unlock()
	now := map[target][]registry.Node{}
	for scope, query := range map[registry.Scope]string{registry.Self: selectNodes, registry.Children: selectChildren} {
		var paths []string
		for t := range asked {
			if t.scope == scope {
				paths = append(paths, t.path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		found, err := w.session.read(ctx, query, list(paths))
		if err != nil { // the next call looks again
			w.mu.Lock()
			defer w.mu.Unlock()
			w.doubt(slices.Collect(maps.Keys(asked))...)
			return nil, err
		}
		for _, n := range found {
			t := target{n.Path, scope}
			if scope == registry.Children {
				t.path = path.Dir(n.Path)
			}
			now[t] = append(now[t], n)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []registry.Event
	for t, p := range asked {
		if w.targets[t] == p { // not removed meanwhile, nor added again
			events = append(events, p.compare(t, now[t])...)
		}
	}
	return events, nil
}

// compare returns what the nodes of a target are that they were not before.
func (p *picture) compare(t target, now []registry.Node) []registry.Event {
	var events []registry.Event
	tell := func(n registry.Node) { events = append(events, registry.Event{Path: t.path, Scope: t.scope, Node: n}) }
	gone := p.told
	p.told = make(map[string]registry.Revision, len(now))
	for _, n := range now {
		if gone[n.Path] != n.Modified { // which a new incarnation does not repeat
			n.Value = slices.Clone(n.Value) // another target may have it too
			tell(n)
		}
		delete(gone, n.Path)
		p.told[n.Path] = n.Modified
	}
	if t.scope == registry.Self && !p.synced && len(now) == 0 {
		tell(registry.Node{Path: t.path})
	}
	for name := range gone {
		tell(registry.Node{Path: name})
	}
	if !p.synced {
		p.synced = true
		events = append(events, registry.Event{Path: t.path, Scope: t.scope, Synced: true})
	}
	return events
}

// doubt says that targets may have changed. The caller holds mu.
func (w *watcher) doubt(targets ...target) {
	for _, t := range targets {
		if p := w.targets[t]; p != nil {
			w.stale[t] = p
		}
	}
	if len(w.stale) > 0 {
		select {
		case w.bell <- struct{}{}:
		default: // it has rung already
		}
	}
}

// watchers are all of this process. To make them doubt is only a hint to look: what
// they tell comes from reads of their own session.
var watchers = struct {
	sync.Mutex
	all map[*watcher]struct{}
}{all: map[*watcher]struct{}{}}

// wake calls doubt for each watcher, and forgets those that have ended.
func wake(doubt func(*watcher)) {
	watchers.Lock()
	defer watchers.Unlock()
	for w := range watchers.all {
		if w.ctx.Err() != nil {
			delete(watchers.all, w)
			continue
		}
		w.mu.Lock()
		doubt(w)
		w.mu.Unlock()
	}
}

// wakeFor wakes those who follow what a commit of this process wrote.
func wakeFor(ops []registry.Op) {
	var touched []target
	for _, op := range ops {
		if op.Kind != registry.OpCheck {
			touched = append(touched, target{op.Path, registry.Self}, target{path.Dir(op.Path), registry.Children})
		}
	}
	wake(func(w *watcher) { w.doubt(touched...) })
}

// wakeWatchers wakes those of the session.
func (s *session) wakeWatchers() {
	wake(func(w *watcher) {
		if w.session == s {
			w.doubt(slices.Collect(maps.Keys(w.targets))...)
		}
	})
}
