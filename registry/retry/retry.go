package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/tool"
)

// Config says how often and after which pauses. The zero value is ElasticJob's: 3 retries, with pauses of 1 s to 3 s.
type Config struct {
	// Base is the first pause, 1 s when zero.
	Base time.Duration
	// Max is the longest pause, 3 s when zero.
	Max time.Duration
	// Retries is how often a call is repeated, 3 when zero.
	Retries int
}

const (
	defaultBase    = time.Second
	defaultMax     = 3 * time.Second
	defaultRetries = 3
	mostRetries    = 1000
)

// Validate says what is wrong, in one line that names the field and the fix. The error wraps registry.ErrInvalid.
func (c Config) Validate() error {
	switch full := c.complete(); {
	case full.Base < time.Millisecond:
		return fmt.Errorf("retry: %w: base %v is too short a pause; give at least 1ms", registry.ErrInvalid, c.Base)
	case full.Max < full.Base:
		return fmt.Errorf("retry: %w: max %v is shorter than base %v; give at least as much", registry.ErrInvalid, full.Max, full.Base)
	case full.Retries < 0, full.Retries > mostRetries:
		return fmt.Errorf("retry: %w: %d retries; give 1 to %d", registry.ErrInvalid, c.Retries, mostRetries)
	}
	return nil
}

func (c Config) complete() Config {
	c.Base = cmp.Or(c.Base, defaultBase)
	c.Max = cmp.Or(c.Max, max(defaultMax, c.Base))
	c.Retries = cmp.Or(c.Retries, defaultRetries)
	return c
}

// Open is registry.Open, repeated while the service cannot be reached, and then Wrap.
func Open(ctx context.Context, rawURL string, c Config) (registry.Registry, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	reg, err := opened(ctx, c.complete(), nil, func(ctx context.Context) (registry.Registry, error) {
		return registry.Open(ctx, rawURL)
	})
	if err != nil {
		return nil, err
	}
	return Wrap(reg, c)
}

// Wrap puts the repetition around a registry, which the caller closes by what Wrap returns.
func Wrap(reg registry.Registry, c Config) (registry.Registry, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &wrapped{Registry: reg, config: c.complete()}
	w.open, w.close = context.WithCancel(context.Background())
	return w, nil
}

// worth reports whether a failure is worth another attempt: it certainly had no effect, and passes by.
func worth(err error) bool {
	return errors.Is(err, registry.ErrUnavailable) && !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrSessionLost) &&
		!errors.Is(err, registry.ErrClosed) && !errors.Is(err, registry.ErrDenied) && !errors.Is(err, registry.ErrInvalid)
}

// again calls until it succeeds, fails for good, or the retries are used up. When over is closed,
// the next call is the last: its error says so.
func again(ctx context.Context, c Config, over <-chan struct{}, call func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = c.Base, c.Max, 2
	for tried := 0; ; tried++ {
		err := call()
		if err == nil || tried >= c.Retries || ctx.Err() != nil || !worth(err) {
			return err
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return err
		case <-over:
			tried = c.Retries
		}
	}
}

func opened[T any](ctx context.Context, c Config, over <-chan struct{}, open func(context.Context) (T, error)) (s T, err error) {
	err = again(ctx, c, over, func() (err error) {
		s, err = open(ctx)
		return err
	})
	return s, err
}

type wrapped struct {
	registry.Registry

	config Config
	open   context.Context // until Close
	close  context.CancelFunc
}

func (r *wrapped) Open(ctx context.Context) (registry.Session, error) {
	s, err := opened(ctx, r.config, r.open.Done(), r.Registry.Open)
	if err != nil {
		return nil, err
	}
	return &session{life: life{s}, Store: r.repeating(s, s.Done())}, nil
}

func (r *wrapped) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	s, err := opened(ctx, r.config, r.open.Done(), r.Registry.OpenStore)
	if err != nil {
		return nil, err
	}
	open, end := context.WithCancel(r.open)
	return &storeCloser{closer: s, end: end, Store: r.repeating(s, open.Done())}, nil
}

// repeating returns a store that repeats the calls of s, without a pause once over is closed.
func (r *wrapped) repeating(s registry.Store, over <-chan struct{}) registry.Store {
	return tool.Each(s.Limits(), func(ctx context.Context, call func(registry.Store) error) error {
		return again(ctx, r.config, over, func() error { return call(s) })
	})
}

func (r *wrapped) Close() error {
	r.close()
	return r.Registry.Close()
}

// Warnings are those of the adapter, which a scheduler tells.
func (r *wrapped) Warnings() []string {
	if w, ok := r.Registry.(interface{ Warnings() []string }); ok {
		return w.Warnings()
	}
	return nil
}

// A life is a session, of which a store that stands beside it serves what both have.
type life struct{ registry.Session }

// A session is a life, and a store that repeats.
type session struct {
	life
	registry.Store
}

// A storeCloser is a store without a life.
type storeCloser struct {
	registry.Store

	closer registry.StoreCloser
	end    context.CancelFunc
}

func (s *storeCloser) Close(ctx context.Context) error {
	s.end()
	return s.closer.Close(ctx)
}
