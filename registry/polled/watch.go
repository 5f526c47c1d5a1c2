package polled

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A target is what a watcher follows.
type target struct {
	path  string
	scope registry.Scope
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
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{session: s, bell: make(chan struct{}, 1), targets: map[target]*picture{}, stale: map[target]*picture{}}
	w.ctx, w.cancel = context.WithCancelCause(s.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
	return w, nil
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	if err := registry.ValidatePath(path); err != nil {
		return err
	}
	t := target{path, scope}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := context.Cause(w.ctx); err != nil || w.targets[t] != nil {
		return err
	}
	w.targets[t] = &picture{told: map[string]registry.Revision{}}
	w.mark(t)
	return nil
}

func (w *watcher) Remove(path string, scope registry.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.targets, target{path, scope})
	delete(w.stale, target{path, scope})
}

func (w *watcher) Close() error {
	w.cancel(registry.ErrClosed)
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	delete(w.session.watchers, w)
	return nil
}

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

// recheck says that targets, if they are watched, may have changed.
func (w *watcher) recheck(targets ...target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark(targets...)
}

func (w *watcher) recheckAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark(slices.Collect(maps.Keys(w.targets))...)
}

// mark is recheck for who holds mu.
func (w *watcher) mark(targets ...target) {
	for _, t := range targets {
		if p := w.targets[t]; p != nil {
			w.stale[t] = p
		}
	}
	if len(w.stale) > 0 {
		wait.Wake(w.bell)
	}
}

// look reads the targets that are stale, in one request, and returns what is new.
func (w *watcher) look(ctx context.Context) ([]registry.Event, error) {
	w.mu.Lock()
	asked := w.stale
	w.stale = map[target]*picture{}
	w.mu.Unlock()
	ctx, release := lifetime.Both(ctx, w.ctx)
	defer release()
	now, err := w.session.read(ctx, pathsOf(asked, registry.Self), pathsOf(asked, registry.Children))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed(asked, err)
		return nil, err
	}
	nodes := map[target][]registry.Node{}
	for _, n := range now {
		nodes[target{n.Path, registry.Self}] = []registry.Node{n}
		if n.Path != "/" {
			dir := target{path.Dir(n.Path), registry.Children}
			nodes[dir] = append(nodes[dir], n)
		}
	}
	var events []registry.Event
	for t, p := range asked {
		if w.targets[t] == p { // not removed meanwhile, nor added again
			events = append(events, p.compare(t, nodes[t])...)
		}
	}
	return events, nil
}

// failed gives up the targets that the store refuses, which it does not tell
// apart; the next call looks at others again.
func (w *watcher) failed(asked map[target]*picture, err error) {
	if !errors.Is(err, registry.ErrDenied) {
		w.mark(slices.Collect(maps.Keys(asked))...)
		return
	}
	for t, p := range asked {
		if w.targets[t] == p {
			delete(w.targets, t)
		}
	}
}

func pathsOf(targets map[target]*picture, scope registry.Scope) []string {
	var paths []string
	for t := range targets {
		if t.scope == scope {
			paths = append(paths, t.path)
		}
	}
	return paths
}

// A picture is what a watcher has told of a target: the Modified of each node. It
// is all that a watcher keeps, so that a consumer who does not come costs nothing
// and misses nothing but the steps in between.
type picture struct {
	told   map[string]registry.Revision
	synced bool
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
	for path := range gone {
		tell(registry.Node{Path: path})
	}
	if !p.synced {
		p.synced = true
		events = append(events, registry.Event{Path: t.path, Scope: t.scope, Synced: true})
	}
	return events
}
