package polled

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/tool"
)

// A client is a registry on a Store.
type client struct {
	Config

	store  Store
	ctx    context.Context // ends with the registry
	cancel context.CancelFunc
	closed func() error
	turns  chan struct{} // one for each read and commit in flight
	ear    ear
	tasks  sync.WaitGroup // follows a Bell

	mu       sync.Mutex
	sessions map[*session]struct{} // not closed yet
}

var _ registry.Registry = (*client)(nil)

// New returns a registry on store, which becomes its own: it is closed with the
// registry, or here when cfg is not valid. New asks the store nothing: an Opener
// finds out by itself whether the service can be reached.
func New(store Store, cfg Config) (registry.Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	c := &client{Config: cfg.withDefaults(), store: store, sessions: map[*session]struct{}{}}
	c.turns = make(chan struct{}, c.MaxInFlight)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.closed = sync.OnceValue(c.close)
	join(c)
	if bell, rings := store.(Bell); rings {
		c.tasks.Go(func() { c.listen(bell) })
	}
	return c, nil
}

func (c *client) Namespace() string { return c.Config.Namespace }

// Warnings returns those of Config.
func (c *client) Warnings() []string { return slices.Clone(c.Config.Warnings) }

func (c *client) Open(ctx context.Context) (registry.Session, error) {
	ctx, cancel := both(ctx, c.ctx)
	defer cancel()
	var s *session
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		s, err = c.begin(ctx)
		return err
	})
	if c.ctx.Err() != nil {
		err = registry.ErrClosed
	}
	if err != nil {
		return nil, c.wrap("open session", err)
	}
	return s, nil
}

// begin makes one attempt, with an ID of its own: a session whose answer was lost
// has nobody who raises its counter, and expires.
func (c *client) begin(ctx context.Context) (*session, error) {
	s, sent := newSession(c), time.Now()
	err := c.store.Begin(ctx, s.id, c.SessionTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmp.Or(err, c.ctx.Err()); err != nil { // after its end Close does not see a session
		s.end(err)
		return nil, err
	}
	c.sessions[s] = struct{}{}
	s.acknowledged(sent)
	s.spawn(s.keepAlive)
	return s, nil
}

// OpenStore asks the store nothing: it is a session that has no row.
func (c *client) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, c.wrap("open store", registry.ErrClosed)
	}
	s := newSession(c)
	s.id = NoSession
	c.sessions[s] = struct{}{}
	s.spawn(s.lookAround)
	return tool.One(c.Name, s), nil
}

func (c *client) Close() error { return c.closed() }

func (c *client) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.SessionTimeout/10)
	defer cancel()
	var closing sync.WaitGroup
	c.mu.Lock()
	c.cancel()
	for s := range c.sessions {
		closing.Go(func() { _ = s.Close(ctx) }) // what cannot be told expires
	}
	c.mu.Unlock()
	closing.Wait()
	part(c)
	c.tasks.Wait()
	return c.store.Close()
}

// open returns the sessions that are not closed yet.
func (c *client) open() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.sessions))
}

func (c *client) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s)
}

// wrap names the adapter and what it did.
func (c *client) wrap(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", c.Name, what, err)
}

// Between two attempts.
const (
	minPause = 20 * time.Millisecond
	maxPause = 200 * time.Millisecond
)

// attempt bounds one request: another may get through where this one is stuck, and
// a session's first heartbeat, and its next, are of use only while they are fresh.
func (c *client) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.SessionTimeout/2)
}

// retry makes attempts at what may be repeated, until one succeeds or ctx ends.
func (c *client) retry(ctx context.Context, ask func(context.Context) error) error {
	return c.repeat(ctx, func(ctx context.Context) error {
		attempt, cancel := c.attempt(ctx)
		defer cancel()
		return ask(attempt)
	})
}

// repeat is retry for who bounds attempts by himself. Who is refused is refused again.
func (c *client) repeat(ctx context.Context, ask func(context.Context) error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := ask(ctx)
		if err == nil || errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrInvalid) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
			return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
		}
	}
}

// both returns a context that ends with the first of two.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}
