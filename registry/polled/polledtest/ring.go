package polledtest

import (
	"context"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry/polled"
)

// A ringing wire is one to a store that is a Bell: what that tells travels back, and meets the faults.
type ringing struct{ *wire }

var _ polled.Bell = ringing{}

// A line is what one Listen hears by. The server's mu guards lossy.
type line struct {
	wire   *wire
	rings  chan ring
	deafen context.CancelFunc // its connection broke
	lossy  bool               // a fault has swallowed something
}

// A ring is on its way until it is due.
type ring struct {
	step polled.Step
	due  time.Time
}

// attach returns a new wire as polled.New is to see it.
func (s *server) attach() polled.Store {
	w := s.connect()
	if _, is := s.opened().(polled.Bell); is {
		return ringing{w}
	}
	return w
}

// Listen lasts as long as the connection that was there when it was called.
func (r ringing) Listen(ctx context.Context, heard func(polled.Step)) error {
	if err := do(ctx, r.wire, func(context.Context, polled.Store) error { return nil }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &line{wire: r.wire, rings: make(chan ring, 1000), deafen: cancel}
	r.mu.Lock()
	r.lines[l] = struct{}{}
	r.mu.Unlock()
	var listening sync.WaitGroup
	listening.Go(func() { _ = l.listen(ctx) }) // whatever it says, the line is dead
	defer func() {
		r.mu.Lock()
		delete(r.lines, l)
		r.mu.Unlock()
		cancel()
		listening.Wait()
	}()
	for {
		select {
		case next := <-l.rings:
			if l.arrives(ctx, next) {
				heard(next.step)
			}
		case <-ctx.Done():
			return errReset
		}
	}
}

// listen is served as a request is that lasts.
func (l *line) listen(ctx context.Context) error {
	defer l.deafen()
	s := l.wire.server
	s.running.RLock()
	defer s.running.RUnlock()
	bell, is := s.opened().(polled.Bell)
	if !is {
		return errRefused
	}
	return bell.Listen(ctx, func(step polled.Step) {
		s.mu.Lock()
		due := time.Now().Add(l.wire.delay)
		s.mu.Unlock()
		select {
		case l.rings <- ring{step, due}:
		case <-ctx.Done():
		}
	})
}

// arrives waits until a ring is due and the server answers, and says whether it comes through.
func (l *line) arrives(ctx context.Context, next ring) bool {
	late := time.Until(next.due)
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	s := l.wire.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.paused > 0 && ctx.Err() == nil {
		resumed := s.resumed
		s.mu.Unlock()
		select {
		case <-resumed:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	swallowed := l.wire.swallowAnswers > 0
	switch {
	case ctx.Err() != nil:
		return false
	case swallowed: // no hit: a bell tells everybody, and who waits for a lock is not woken by that
		l.lossy = true
	case late > 0:
		l.wire.hits++
	}
	return !swallowed
}

// hangUp breaks the lines of which says so. The caller holds mu.
func (s *server) hangUp(which func(*line) bool) {
	for l := range s.lines {
		if which(l) {
			l.deafen()
		}
	}
}
