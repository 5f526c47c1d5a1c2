package polled

import (
	"context"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A watcher looks at targets that may have changed when its bell rings, and begins to only while Next is called: a
// consumer who does not come misses nothing but the steps in between. A look goes on when the call that began it gives
// up: an answer may take longer than any call waits.
type watcher struct {
	*pending.Consumer[*pending.Target]

	session *session
	bell    chan struct{}

	mu      sync.Mutex
	stale   map[*pending.Target]struct{} // targets that may have changed
	looking bool
}

func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{session: s, bell: make(chan struct{}, 1), stale: map[*pending.Target]struct{}{}}
	w.Consumer = pending.NewConsumer(s.Context(), s.client.Name, &w.mu, pending.Hooks[*pending.Target]{
		New:   func(t pending.Target) *pending.Target { return &t },
		Start: func(t *pending.Target) { w.mark(t) },
		Stop:  func(t *pending.Target) { delete(w.stale, t) },
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
	return w, nil
}

func (w *watcher) Close() error {
	w.session.mu.Lock()
	delete(w.session.watchers, w)
	w.session.mu.Unlock()
	return w.Consumer.Close()
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events, _, err := w.Now()
		if err != nil || len(events) > 0 {
			return events, err
		}
		w.mu.Lock()
		if !w.looking && len(w.stale) > 0 {
			w.looking = w.session.Go(w.look)
		}
		w.mu.Unlock()
		select {
		case <-w.bell:
		case <-w.Context.Done():
		case <-ctx.Done():
		}
	}
}

// recheck says that targets, if they are watched, may have changed.
func (w *watcher) recheck(keys []pending.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if t := w.Targets[key.Scope][key.Path]; t != nil {
			w.mark(t)
		}
	}
}

func (w *watcher) recheckAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, targets := range w.Targets {
		w.mark(slices.Collect(maps.Values(targets))...)
	}
}

// mark has targets looked at. w.mu is held.
func (w *watcher) mark(targets ...*pending.Target) {
	for _, t := range targets {
		w.stale[t] = struct{}{}
		wait.Wake(w.bell)
	}
}

// look reads the targets that are stale, in one request.
func (w *watcher) look() {
	w.mu.Lock()
	asked := slices.Collect(maps.Keys(w.stale))
	clear(w.stale)
	w.mu.Unlock()
	now, err := w.session.read(w.Context, pathsOf(asked, registry.Self), pathsOf(asked, registry.Children))
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := map[pending.Key][]registry.Node{}
	for _, n := range now {
		nodes[pending.Key{Path: n.Path}] = []registry.Node{n}
		if n.Path != "/" {
			n.Value = slices.Clone(n.Value) // another target may have it too
			dir := pending.Key{Path: path.Dir(n.Path), Scope: registry.Children}
			nodes[dir] = append(nodes[dir], n)
		}
	}
	for _, t := range asked {
		switch {
		case t.Ended, w.Context.Err() != nil: // Next tells
		case err != nil:
			// It is refused; the store does not tell which.
			w.Refuse(t, err)
		default:
			w.Show(t, nodes[t.Key()])
		}
	}
	w.looking = false
	wait.Wake(w.bell)
}

func pathsOf(targets []*pending.Target, scope registry.Scope) []string {
	var paths []string
	for _, t := range targets {
		if t.Scope == scope {
			paths = append(paths, t.Path)
		}
	}
	return paths
}
