package etcd

import (
	"context"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

// A watcher serves any number of targets with one stream and two goroutines:
// run feeds the stream, receive reads it. What arrives is kept as the latest
// state of each path until Next takes it, so a slow consumer costs no more
// memory than there are nodes, and never holds the stream up.
type watcher struct {
	s      *session
	ctx    context.Context // ends with the session or Close
	cancel context.CancelFunc
	ended  chan struct{} // run has returned

	wake chan struct{} // the queue is not empty
	feed chan struct{} // there is something to read or send

	mu      sync.Mutex
	closed  bool
	targets map[pending.Key]*target
	byID    map[int64]*target
	lastID  int64
	queue   pending.Queue
	refused []error // of targets that the service denies

	pinged  bool // a sign of life is asked for and has not come
	pingDue bool // it is to be asked for

	unread   []*target // need the present state
	unsent   []*target // have it, need a watch from rev+1
	canceled []int64   // watches that nobody needs any more
	inOrder  []int64   // watches asked for and not confirmed, in order
}

// A target is one path and scope, and its watch.
type target struct {
	pending.Target

	id      int64 // of its watch on the present stream
	rev     int64 // everything up to it has been taken in
	synced  bool  // the initial state is in the queue
	removed bool
	alone   bool    // read by itself: another of its batch, or it, was denied
	parts   []event // of a revision that came in fragments
}

// Watch returns a watcher with no targets; it sends nothing yet.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{
		s: s, ended: make(chan struct{}), wake: make(chan struct{}, 1), feed: make(chan struct{}, 1),
		targets: map[pending.Key]*target{}, byID: map[int64]*target{},
	}
	w.ctx, w.cancel = context.WithCancel(s.life)
	if !s.join(w.run) {
		w.cancel()
		return nil, s.Err()
	}
	return w, nil
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	if err := registry.ValidatePath(path); err != nil {
		return fmt.Errorf("etcd: watch: %w", err)
	}
	if scope != registry.Self && scope != registry.Children {
		return fmt.Errorf("etcd: watch: %w: unknown scope %d", registry.ErrInvalid, scope)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.over(); err != nil {
		return err
	}
	key := pending.Key{Path: path, Scope: scope}
	if w.targets[key] != nil {
		return nil
	}
	t := &target{Target: pending.Target{Key: key}}
	w.targets[key] = t
	w.unread = append(w.unread, t)
	signal(w.feed)
	return nil
}

func (w *watcher) Remove(path string, scope registry.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.targets[pending.Key{Path: path, Scope: scope}]; t != nil {
		w.drop(t)
		signal(w.feed)
	}
}

// drop forgets a target and what was queued for it. w.mu is held.
func (w *watcher) drop(t *target) {
	t.removed = true
	delete(w.targets, t.Key)
	if t.id != 0 {
		delete(w.byID, t.id)
		w.canceled = append(w.canceled, t.id)
		t.id = 0
	}
	w.queue.Drop(&t.Target)
}

// maxEvents bounds what one Next returns.
const maxEvents = 4096

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.mu.Lock()
		events, err := w.take()
		w.mu.Unlock()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// take returns what is queued. w.mu is held.
func (w *watcher) take() ([]registry.Event, error) {
	if err := w.over(); err != nil {
		return nil, err
	}
	if len(w.refused) > 0 {
		err := w.refused[0]
		w.refused = w.refused[1:]
		return nil, err
	}
	return w.queue.Take(maxEvents), nil
}

// over reports why nothing more can come. w.mu is held.
func (w *watcher) over() error {
	if w.closed {
		return fmt.Errorf("etcd: watch: %w", registry.ErrClosed)
	}
	return w.s.Err()
}

func (w *watcher) Close() error {
	w.mu.Lock()
	w.closed = true
	w.targets, w.byID = map[pending.Key]*target{}, map[int64]*target{}
	w.unread, w.unsent, w.refused = nil, nil, nil
	w.queue.Clear()
	w.mu.Unlock()
	w.cancel()
	<-w.ended
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
