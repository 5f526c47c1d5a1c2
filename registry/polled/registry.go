package polled

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/tool"
	"github.com/elasticron/elasticron/registry/internal/wait"
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

	sessions lifetime.Open[*session]
}

// New returns a registry on store, which becomes its own: it is closed with the registry, or here when cfg is not
// valid. New asks the store nothing: an Opener finds out by itself whether the service can be reached.
func New(store Store, cfg Config) (registry.Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	c := &client{Config: cfg.withDefaults(), store: store}
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
	ctx, release := lifetime.Both(ctx, c.ctx)
	defer release()
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
	id, sent := rand.Text(), time.Now()
	if err := c.store.Begin(ctx, id, c.SessionTimeout); err != nil {
		return nil, err
	}
	s := newSession(c)
	if !c.sessions.Add(s) {
		return nil, registry.ErrClosed
	}
	deadline, lead := c.acknowledged(sent)
	s.Begin(id, deadline, lead)
	s.Go(s.keepAlive)
	return s, nil
}

// OpenStore asks the store nothing: it is a session that has no row.
func (c *client) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSession(c) // its ID is NoSession
	if !c.sessions.Add(s) {
		return nil, c.wrap("open store", registry.ErrClosed)
	}
	s.Go(s.lookAround)
	return tool.One(c.Name, s), nil
}

func (c *client) Close() error { return c.closed() }

func (c *client) close() error {
	c.cancel()
	c.sessions.Close(c.SessionTimeout / 10)
	part(c)
	c.tasks.Wait()
	return c.store.Close()
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
	for n := 0; ; n++ {
		err := ask(ctx)
		if err == nil || errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrInvalid) {
			return err
		}
		if !wait.For(ctx, wait.Growing(n, minPause, maxPause)) {
			if !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
			return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
		}
	}
}
