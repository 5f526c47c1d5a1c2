package zookeeper

import (
	"bytes"
	"context"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/latch"
)

// A watcher is a queue that the session's tracker fills. It has no goroutine. The
// tracker's mutex guards it.
type watcher struct {
	*pending.Consumer[*target]
}

// Watch returns a watcher with no targets; it sends nothing.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{}
	w.Consumer = pending.NewConsumer("zookeeper", s.Context(), &s.tracker.mu, pending.Hooks[*target]{
		New:   func(t pending.Target) *target { return &target{Target: t, w: w} },
		Start: s.tracker.add, Stop: s.tracker.remove,
	})
	return w, nil
}

var _ latch.EndWatcher = (*watcher)(nil)

// AddUntilGone is Add of a node alone, which arms nothing once the node is gone.
// See latch.EndWatcher.
func (w *watcher) AddUntilGone(path string) error {
	return w.AddAs(path, registry.Self, func(t pending.Target) *target { return &target{Target: t, w: w, ends: true} })
}

// tell queues a state.
func (t *target) tell(n registry.Node) {
	n.Value = bytes.Clone(n.Value) // others get the same answer
	t.w.Put(&t.Target, n)
}
