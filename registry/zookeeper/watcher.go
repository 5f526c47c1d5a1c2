package zookeeper

import (
	"bytes"
	"context"
	"fmt"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/latch"
)

// A watcher is a queue that the session's tracker fills. It has no goroutine.
type watcher struct {
	s    *session
	wake chan struct{} // the queue is not empty
	gone chan struct{} // closed by Close

	// Guarded by the tracker's mutex.
	closed  bool
	targets map[pending.Key]*target
	queue   pending.Queue
	refused []error // of targets that the service denies
}

// Watch returns a watcher with no targets; it sends nothing.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.alive(ctx); err != nil {
		return nil, err
	}
	return &watcher{
		s: s, wake: make(chan struct{}, 1), gone: make(chan struct{}), targets: map[pending.Key]*target{},
	}, nil
}

var _ latch.EndWatcher = (*watcher)(nil)

func (w *watcher) Add(path string, scope registry.Scope) error { return w.add(path, scope, false) }

// AddUntilGone is Add of a node alone, which arms nothing once the node is gone.
// See latch.EndWatcher.
func (w *watcher) AddUntilGone(path string) error { return w.add(path, registry.Self, true) }

func (w *watcher) add(path string, scope registry.Scope, ends bool) error {
	if err := registry.ValidatePath(path); err != nil {
		return fmt.Errorf("zookeeper: watch: %w", err)
	}
	if scope != registry.Self && scope != registry.Children {
		return fmt.Errorf("zookeeper: watch: %w: unknown scope %d", registry.ErrInvalid, scope)
	}
	tr := w.s.tracker
	lost := w.s.link.Err()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if w.closed {
		return errWatcherClosed
	}
	if lost != nil {
		return lost
	}
	key := pending.Key{Path: path, Scope: scope}
	if w.targets[key] != nil {
		return nil
	}
	t := &target{Target: pending.Target{Key: key}, w: w, ends: ends}
	w.targets[key] = t
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
	w.queue.Drop(&t.Target)
	w.s.tracker.remove(t)
}

// refuse gives a target up; Next says so once.
func (w *watcher) refuse(t *target, err error) {
	w.drop(t)
	w.refused = append(w.refused, fmt.Errorf("watch %s (%s): %w", t.Path, t.Scope, err))
	signal(w.wake)
}

// put queues a state, if it is news.
func (w *watcher) put(t *target, n registry.Node) {
	if !t.isNews(n) {
		return
	}
	n.Value = bytes.Clone(n.Value) // others get the same answer
	w.queue.Put(&t.Target, n)
	signal(w.wake)
}

// sync queues the end of the initial state.
func (w *watcher) sync(t *target) {
	w.queue.Synced(&t.Target)
	signal(w.wake)
}

// maxEvents bounds what one Next returns.
const maxEvents = 4096

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if events, err := w.take(w.s.link.Err()); err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-w.wake:
		case <-w.gone:
		case <-w.s.link.Done():
		case <-ctx.Done():
		}
	}
}

// take returns what is queued. lost is why the session has ended.
func (w *watcher) take(lost error) ([]registry.Event, error) {
	w.s.tracker.mu.Lock()
	defer w.s.tracker.mu.Unlock()
	if w.closed {
		return nil, errWatcherClosed
	}
	if lost != nil {
		return nil, lost
	}
	if len(w.refused) > 0 {
		err := w.refused[0]
		w.refused = w.refused[1:]
		return nil, err
	}
	return w.queue.Take(maxEvents), nil
}

var errWatcherClosed = fmt.Errorf("zookeeper: watch: %w", registry.ErrClosed)

// Close frees what the watcher holds here at once.
func (w *watcher) Close() error {
	w.s.tracker.mu.Lock()
	defer w.s.tracker.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.gone)
	for _, t := range w.targets {
		w.s.tracker.remove(t)
	}
	w.targets, w.refused = nil, nil
	w.queue.Clear()
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
