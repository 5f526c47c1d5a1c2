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
	*pending.Consumer

	s       *session
	targets map[pending.Key]*target
}

// Watch returns a watcher with no targets; it sends nothing.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	return &watcher{
		Consumer: pending.NewConsumer("zookeeper", s, &s.tracker.mu), s: s, targets: map[pending.Key]*target{},
	}, nil
}

var _ latch.EndWatcher = (*watcher)(nil)

func (w *watcher) Add(path string, scope registry.Scope) error { return w.add(path, scope, false) }

// AddUntilGone is Add of a node alone, which arms nothing once the node is gone.
// See latch.EndWatcher.
func (w *watcher) AddUntilGone(path string) error { return w.add(path, registry.Self, true) }

func (w *watcher) add(path string, scope registry.Scope, ends bool) error {
	tr := w.s.tracker
	tr.mu.Lock()
	defer tr.mu.Unlock()
	admitted, err := w.Admit(path, scope)
	if err != nil || w.targets[admitted.Key] != nil {
		return err
	}
	t := &target{Target: admitted, w: w, ends: ends}
	w.targets[t.Key] = t
	tr.add(t)
	return nil
}

func (w *watcher) Remove(path string, scope registry.Scope) {
	tr := w.s.tracker
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if t := w.targets[pending.Key{Path: path, Scope: scope}]; t != nil {
		w.drop(t)
	}
}

// drop forgets a target and what was queued for it.
func (w *watcher) drop(t *target) {
	delete(w.targets, t.Key)
	w.Drop(&t.Target)
	w.s.tracker.remove(t)
}

// refuse gives a target up; Next says so once.
func (w *watcher) refuse(t *target, err error) {
	w.drop(t)
	w.Refuse(t.Key, err)
}

// put queues a state, if it is news.
func (w *watcher) put(t *target, n registry.Node) {
	if !t.isNews(n) {
		return
	}
	n.Value = bytes.Clone(n.Value) // others get the same answer
	w.Put(&t.Target, n)
	w.Announce()
}

// sync queues the end of the initial state.
func (w *watcher) sync(t *target) {
	w.Synced(&t.Target)
	w.Announce()
}

// Close frees what the watcher holds here at once.
func (w *watcher) Close() error {
	w.s.tracker.mu.Lock()
	defer w.s.tracker.mu.Unlock()
	if !w.End() {
		return nil
	}
	for _, t := range w.targets {
		w.s.tracker.remove(t)
	}
	w.targets = nil
	return nil
}
