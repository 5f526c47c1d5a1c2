package lifetime

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Open is the sessions of a registry that are not closed yet. The zero value is ready.
type Open[S interface {
	comparable
	Close(ctx context.Context) error
}] struct {
	mu       sync.Mutex
	closed   bool
	sessions map[S]struct{}
}

// Add takes a session in. False: the registry is closed.
func (o *Open[S]) Add(s S) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.sessions == nil {
		o.sessions = map[S]struct{}{}
	}
	o.sessions[s] = struct{}{}
	return true
}

// Remove forgets a session that is closed.
func (o *Open[S]) Remove(s S) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, s)
}

// All returns the sessions that are open.
func (o *Open[S]) All() []S {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.sessions))
}

// Closed reports whether Close was called.
func (o *Open[S]) Closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// Close closes the sessions that are open, and waits for the service no longer than
// patience: one that does not answer ends them by expiry. It reports whether this call
// was the first.
func (o *Open[S]) Close(patience time.Duration) bool {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	var work sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for s := range o.sessions {
		work.Go(func() { _ = s.Close(ctx) })
	}
	o.mu.Unlock()
	work.Wait()
	return first
}
