package polledtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

var (
	errRefused = fmt.Errorf("%w: connection refused", registry.ErrUnavailable)
	errReset   = errors.New("connection reset")
)

// A server is the one process that has the store open. Clients reach it by wires.
type server struct {
	open    func(context.Context) (polled.Store, error)
	ctx     context.Context // of what it serves: not the callers'
	cancel  context.CancelFunc
	serving sync.WaitGroup
	running sync.RWMutex // held for reading by each call of the store

	mu      sync.Mutex   // guards the wires too
	store   polled.Store // nil while it is down
	paused  int
	resumed chan struct{}    // open while paused
	wires   map[string]*wire // by session
	lines   map[*line]struct{}
}

func newServer(open func(context.Context) (polled.Store, error)) *server {
	s := &server{open: open, wires: map[string]*wire{}, lines: map[*line]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *server) start() error {
	store, err := s.open(s.ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = store
	return nil
}

// shut lets what runs in the store come to its end, and closes it.
func (s *server) shut() error {
	s.mu.Lock()
	store := s.store
	s.store = nil
	for _, w := range s.wires {
		w.cut()
	}
	s.hangUp(func(*line) bool { return true }) // those without a session too
	s.mu.Unlock()
	s.running.Lock()
	defer s.running.Unlock()
	if store == nil {
		return nil // it was down already
	}
	return store.Close()
}

func (s *server) restart() error {
	if err := s.shut(); err != nil {
		return err
	}
	return s.start()
}

// stop ends the server.
func (s *server) stop() error {
	s.cancel()
	err := s.shut()
	s.serving.Wait()
	return err
}

// pause keeps every request waiting that comes from now on.
func (s *server) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused++; s.paused == 1 {
		s.resumed = make(chan struct{})
	}
}

func (s *server) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused--; s.paused == 0 {
		close(s.resumed)
	}
}

// serve runs a request when it has arrived, whether anybody waits for it or not.
func serve[T any](s *server, delay time.Duration, run func(context.Context, polled.Store) (T, error)) (answer T, err error) {
	if err := s.await(delay); err != nil {
		return answer, err
	}
	s.running.RLock()
	defer s.running.RUnlock()
	store := s.opened()
	if store == nil {
		return answer, errRefused
	}
	return run(s.ctx, store)
}

func (s *server) opened() polled.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// await lasts as long as the way of a request and a pause of the server.
func (s *server) await(delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	for {
		s.mu.Lock()
		paused, resumed := s.paused > 0, s.resumed
		s.mu.Unlock()
		if !paused {
			return nil
		}
		select {
		case <-resumed:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
}
