package etcd

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A watcher serves any number of targets with one stream and two goroutines: run feeds the stream, receive reads it.
// What arrives is kept as the latest state of each path until Next takes it, so a slow consumer costs no more memory
// than there are nodes, and never holds the stream up.
type watcher struct {
	*pending.Consumer[*target]

	s     *session
	ctx   context.Context // the Consumer's, as requests need it
	ended chan struct{}   // run has returned
	feed  chan struct{}   // there is something to read or send

	mu        sync.Mutex
	byID      map[int64]*target
	asked     int64 // the last watch that was asked for, by its id: they are numbered
	confirmed int64 // the last of them that was confirmed

	pinged  bool // a sign of life is asked for and has not come
	pingDue bool // it is to be asked for

	unsent   []*target // need a watch
	unread   []*target // have one, and need the present state
	canceled []int64   // watches that nobody needs any more

	early map[*target][]*mvccpb.Event // what watches showed before the state of their targets was read
}

// A target is one path and scope, and its watch.
type target struct {
	pending.Target

	id  int64 // of its watch on the present stream
	rev int64 // everything up to it has been taken in; 0: nothing has
}

// Watch returns a watcher with no targets; it sends nothing yet.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{s: s, ended: make(chan struct{}), feed: make(chan struct{}, 1)}
	w.Consumer = pending.NewConsumer(s.Context(), "etcd", &w.mu, pending.Hooks[*target]{
		New:   func(t pending.Target) *target { return &target{Target: t} },
		Start: w.start, Stop: w.stop,
	})
	w.ctx = withLeader(w.Context)
	if !s.Go(w.run) {
		return nil, s.Err()
	}
	return w, nil
}

// start has the target watched, and then read. w.mu is held.
func (w *watcher) start(t *target) {
	w.unsent = append(w.unsent, t)
	wait.Wake(w.feed)
}

// stop gives the target's watch back. w.mu is held.
func (w *watcher) stop(t *target) {
	delete(w.early, t)
	if t.id != 0 {
		delete(w.byID, t.id)
		w.canceled = append(w.canceled, t.id)
		t.id = 0
	}
	wait.Wake(w.feed)
}

func (w *watcher) Close() error {
	err := w.Consumer.Close()
	<-w.ended
	return err
}
