package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
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
func New(cfg Config) registry.StoreCloser { return newStore(cfg, nil) }

// One returns a StoreCloser of a session that nothing but Close can end, that of its registry too.
func One(name string, s registry.Session) registry.StoreCloser {
	return newStore(Config{
		Name: name, Limits: s.Limits(), Closed: func() bool { return s.Err() != nil },
		Open: func(context.Context) (registry.Session, error) { return nil, registry.ErrClosed },
	}, s)
}

func newStore(cfg Config, first registry.Session) *store {
	s := &store{Config: cfg, turn: make(chan struct{}, 1), session: first}
	s.life, s.end = context.WithCancel(context.Background())
	s.Store = Each(cfg.Limits, s.ask)
	return s
}

type store struct {
	Config
	registry.Store

	life context.Context // ends with Close
	end  func()

	// turn is full while somebody uses session, who may wait for the service.
	turn    chan struct{}
	session registry.Session // nil before the first call
}

func (s *store) Limits() registry.Limits { return s.Config.Limits }

func (s *store) Close(ctx context.Context) error {
	s.end()
	s.turn <- struct{}{} // nobody keeps it long: life has ended
	last := s.session
	<-s.turn
	if last == nil {
		return nil
	}
	return last.Close(ctx)
}

func (s *store) closed() error {
	if s.life.Err() == nil && !s.Closed() {
		return nil
	}
	return fmt.Errorf("%s: store: %w", s.Name, registry.ErrClosed)
}

// current returns the session that serves the next call.
func (s *store) current(ctx context.Context) (registry.Store, error) {
	if err := cmp.Or(s.closed(), ctx.Err()); err != nil {
		return nil, err
	}
	ctx, release := lifetime.Both(ctx, s.life)
	defer release()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: store: %w: %w", s.Name,
			registry.ErrUnavailable, ctx.Err())
	}
	if lost := s.session; lost != nil && lost.Err() != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		// It may take longer than ctx; the registry, whose session it is, joins it when it is closed.
		go func() { _ = lost.Close(ended) }()
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

// Get waits for no session with what no session would take, as Children and Commit do not.
func (s *store) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := lifetime.Validate(s.Name, "get", paths...); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, paths...)
}

func (s *store) Children(ctx context.Context, path string) ([]string, error) {
	if err := lifetime.Validate(s.Name, "children", path); err != nil {
		return nil, err
	}
	return s.Store.Children(ctx, path)
}

func (s *store) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.Config.Limits.Validate(ops); err != nil {
		return 0, fmt.Errorf("%s: commit: %w", s.Name, err)
	}
	for i, op := range ops {
		if op.Kind == registry.OpCreateEphemeral {
			return 0, fmt.Errorf("%s: %w: operation %d: a store owns no ephemeral node",
				s.Name, registry.ErrInvalid, i)
		}
	}
	return s.Store.Commit(ctx, ops...)
}

func (s *store) Watch(ctx context.Context) (registry.Watcher, error) {
	w, err := s.Store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	return &watcher{Watcher: w, store: s}, nil
}

// ask calls one store after another, as long as it is only lost that they are.
func (s *store) ask(ctx context.Context, call func(registry.Store) error) error {
	for {
		current, err := s.current(ctx)
		if err != nil {
			return s.translate(err)
		}
		err = call(current)
		lost := errors.Is(err, registry.ErrSessionLost) && !errors.Is(err, registry.ErrUncertain)
		if !lost || s.closed() != nil || ctx.Err() != nil {
			return s.translate(err)
		}
	}
}

// translate says what the loss of a session, or Close, is to somebody who has none to lose.
func (s *store) translate(err error) error {
	lost := errors.Is(err, registry.ErrSessionLost)
	class := registry.ErrUnavailable
	if errors.Is(err, registry.ErrUncertain) {
		class = registry.ErrUncertain
	} else if closed := s.closed(); closed != nil && (lost || errors.Is(err, class)) {
		return closed
	}
	if lost {
		err = fmt.Errorf("%s: %w: %s", s.Name, class, err.Error())
	}
	return err
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

// Each returns a store each of whose calls is what ask makes of a call of another.
func Each(limits registry.Limits, ask func(context.Context, func(registry.Store) error) error) registry.Store {
	return &each{limits: limits, ask: ask}
}

type each struct {
	limits registry.Limits
	ask    func(ctx context.Context, call func(registry.Store) error) error
}

func (e *each) Limits() registry.Limits { return e.limits }

// answer is what a call of one of the stores returns.
func answer[T any](ctx context.Context, e *each, call func(registry.Store) (T, error)) (is T, err error) {
	err = e.ask(ctx, func(s registry.Store) (err error) {
		is, err = call(s)
		return err
	})
	return is, err
}

func (e *each) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	return answer(ctx, e, func(s registry.Store) ([]registry.Node, error) { return s.Get(ctx, paths...) })
}

func (e *each) Children(ctx context.Context, path string) ([]string, error) {
	return answer(ctx, e, func(s registry.Store) ([]string, error) { return s.Children(ctx, path) })
}

func (e *each) Sync(ctx context.Context) error {
	return e.ask(ctx, func(s registry.Store) error { return s.Sync(ctx) })
}

func (e *each) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	return answer(ctx, e, func(s registry.Store) (registry.Revision, error) { return s.Commit(ctx, ops...) })
}

func (e *each) Watch(ctx context.Context) (registry.Watcher, error) {
	return answer(ctx, e, func(s registry.Store) (registry.Watcher, error) { return s.Watch(ctx) })
}
