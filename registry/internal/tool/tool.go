package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// Config is what New needs.
type Config struct {
	// Name of the adapter: every error begins with it.
	Name string
	// Limits of a commit.
	Limits registry.Limits
	// Open opens a session, for the first call and once the one before is lost.
	Open func(ctx context.Context) (registry.Session, error)
	// Closed says whether the registry was closed around the store.
	Closed func() bool
}

// New returns a StoreCloser.
func New(cfg Config) registry.StoreCloser { return &store{Config: cfg, done: make(chan struct{})} }

// One returns a StoreCloser of a session that nothing but Close can end, that of its
// registry too.
func One(name string, s registry.Session) registry.StoreCloser {
	return &store{done: make(chan struct{}), session: s, Config: Config{
		Name: name, Limits: s.Limits(), Closed: func() bool { return s.Err() != nil },
		Open: func(context.Context) (registry.Session, error) { return nil, registry.ErrClosed },
	}}
}

type store struct {
	Config

	done    chan struct{}
	closing sync.Once
	err     error

	mu      sync.Mutex
	session registry.Session // nil before the first call
}

func (s *store) Limits() registry.Limits { return s.Config.Limits }

func (s *store) Close(ctx context.Context) error {
	s.closing.Do(func() {
		close(s.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.session != nil {
			s.err = s.session.Close(ctx)
		}
	})
	return s.err
}

func (s *store) closed() error {
	select {
	case <-s.done:
	default:
		if !s.Closed() {
			return nil
		}
	}
	return fmt.Errorf("%s: store: %w", s.Name, registry.ErrClosed)
}

// current returns the session that serves the next call.
func (s *store) current(ctx context.Context) (registry.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.closed(), ctx.Err()); err != nil {
		return nil, err
	}
	if s.session != nil && s.session.Err() != nil { // it is lost
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = s.session.Close(ended)
		s.session = nil
	}
	if s.session == nil {
		opened, err := s.Open(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: store: %w", s.Name, err)
		}
		s.session = opened
	}
	return s.session, nil
}

func (s *store) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	return ask(ctx, s, func(from registry.Store) ([]registry.Node, error) { return from.Get(ctx, paths...) })
}

func (s *store) Children(ctx context.Context, path string) ([]string, error) {
	return ask(ctx, s, func(from registry.Store) ([]string, error) { return from.Children(ctx, path) })
}

func (s *store) Sync(ctx context.Context) error {
	_, err := ask(ctx, s, func(from registry.Store) (struct{}, error) { return struct{}{}, from.Sync(ctx) })
	return err
}

func (s *store) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	for i, op := range ops {
		if op.Kind == registry.OpCreateEphemeral {
			return 0, fmt.Errorf("%s: %w: operation %d: a store without a session makes no ephemeral node",
				s.Name, registry.ErrInvalid, i)
		}
	}
	return ask(ctx, s, func(to registry.Store) (registry.Revision, error) { return to.Commit(ctx, ops...) })
}

func (s *store) Watch(ctx context.Context) (registry.Watcher, error) {
	w, err := ask(ctx, s, func(from registry.Store) (registry.Watcher, error) { return from.Watch(ctx) })
	if err != nil {
		return nil, err
	}
	return &watcher{Watcher: w, store: s}, nil
}

// ask calls one store after another, as long as it is only lost that they are.
func ask[T any](ctx context.Context, s *store, call func(registry.Store) (T, error)) (T, error) {
	var none T
	for {
		current, err := s.current(ctx)
		if err != nil {
			return none, s.translate(err)
		}
		answer, err := call(current)
		lost := errors.Is(err, registry.ErrSessionLost) && !errors.Is(err, registry.ErrUncertain)
		if !lost || s.closed() != nil || ctx.Err() != nil {
			return answer, s.translate(err)
		}
	}
}

// translate says what the loss of a session is to somebody who has none.
func (s *store) translate(err error) error {
	closed := s.closed()
	switch {
	case err == nil || !errors.Is(err, registry.ErrSessionLost):
		return err
	case errors.Is(err, registry.ErrUncertain):
		return fmt.Errorf("%s: %w: %v", s.Name, registry.ErrUncertain, err) //nolint:errorlint // not lost: there is no life
	case closed != nil:
		return closed
	}
	return fmt.Errorf("%s: %w: %v", s.Name, registry.ErrUnavailable, err) //nolint:errorlint // as above
}

type watcher struct {
	registry.Watcher

	store *store
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	return w.store.translate(w.Watcher.Add(path, scope))
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	events, err := w.Watcher.Next(ctx)
	return events, w.store.translate(err)
}
