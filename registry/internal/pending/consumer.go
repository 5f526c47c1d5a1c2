package pending

import (
	"context"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// maxEvents bounds what one Next returns.
const maxEvents = 4096

// Hooks are an adapter's part of a watcher. All are called with its mutex held.
type Hooks[T any] struct {
	// New makes a target of the adapter's own, around one of the queue's.
	New func(Target) T
	// Start begins it, Stop ends it: nothing is put to it any more.
	Start, Stop func(t T)
	// Ready, where it is set, says whether events may be taken, and what is closed when that may have changed.
	Ready func() (ok bool, changed <-chan struct{})
}

// A watched is a target of an adapter's own, which embeds a Target.
type watched interface{ own() *Target }

func (t *Target) own() *Target { return t }

// A Consumer is the side of a watcher that its user sees: its targets, what waits to be
// taken, and why nothing more can come. NewConsumer makes it.
type Consumer[T watched] struct {
	Queue
	Hooks[T]

	// Targets are those that were added and neither removed nor refused, by scope and path: maps by both would have
	// larger keys, and there are many targets.
	Targets map[registry.Scope]map[string]T

	// Context ends with the session and with Close.
	Context context.Context

	adapter string
	life    context.Context // of the session, whose cause is why it ended
	cancel  context.CancelCauseFunc
	mu      sync.Locker
	closed  bool
	refused []error // of targets that the service denies
}

// NewConsumer returns the consumer's side of a watcher, which ends with life, a session's context.
// mu guards it, and is held by who calls what is not a method of registry.Watcher.
func NewConsumer[T watched](life context.Context, adapter string, mu sync.Locker, hooks Hooks[T]) *Consumer[T] {
	c := &Consumer[T]{Hooks: hooks, adapter: adapter, life: life, mu: mu}
	c.Targets = map[registry.Scope]map[string]T{registry.Self: {}, registry.Children: {}}
	c.wake = make(chan struct{}, 1)
	c.Context, c.cancel = context.WithCancelCause(life)
	return c
}

// Add is registry.Watcher's.
func (c *Consumer[T]) Add(path string, scope registry.Scope) error {
	return c.AddAs(path, scope, c.New)
}

// AddAs is Add of what another than Hooks.New makes.
func (c *Consumer[T]) AddAs(path string, scope registry.Scope, newTarget func(Target) T) error {
	if err := registry.ValidatePath(path); err != nil {
		return fmt.Errorf("%s: watch: %w", c.adapter, err)
	}
	if scope != registry.Self && scope != registry.Children {
		return fmt.Errorf("%s: watch: %w: unknown scope %d", c.adapter, registry.ErrInvalid, scope)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.Targets[scope][path]; twice || c.over() != nil {
		return c.over()
	}
	t := newTarget(Target{Path: path, Scope: scope})
	c.Targets[scope][path] = t
	c.Start(t)
	return nil
}

// Remove is registry.Watcher's.
func (c *Consumer[T]) Remove(path string, scope registry.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, known := c.Targets[scope][path]; known {
		c.forget(t)
	}
}

// forget ends a target, and drops what was queued for it.
func (c *Consumer[T]) forget(t T) {
	delete(c.Targets[t.own().Scope], t.own().Path)
	c.Stop(t)
	c.end(t.own())
}

// Refuse gives a target up; Next says so once.
func (c *Consumer[T]) Refuse(t T, err error) {
	c.forget(t)
	c.refused = append(c.refused, fmt.Errorf("watch %s (%s): %w", t.own().Path, t.own().Scope, err))
	wait.Wake(c.wake)
}

// over reports why nothing more can come.
func (c *Consumer[T]) over() error {
	if c.closed {
		return fmt.Errorf("%s: watch: %w", c.adapter, registry.ErrClosed)
	}
	return context.Cause(c.life)
}

// Next is registry.Watcher's.
func (c *Consumer[T]) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events, changed, err := c.Now()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-c.wake:
		case <-changed:
		case <-c.Context.Done():
		case <-ctx.Done():
		}
	}
}

// Now is Next without waiting. Where it returns nothing, changed is closed when Hooks.Ready is to be asked again.
func (c *Consumer[T]) Now() (events []registry.Event, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return nil, nil, err
	}
	if c.Ready != nil {
		ok, changed := c.Ready()
		if !ok || c.Len()+len(c.refused) == 0 {
			return nil, changed, nil
		}
	}
	if len(c.refused) > 0 {
		err := c.refused[0]
		c.refused = c.refused[1:]
		return nil, nil, err
	}
	return c.Take(maxEvents), nil, nil
}

// Close is registry.Watcher's.
func (c *Consumer[T]) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.cancel(registry.ErrClosed)
	for _, targets := range c.Targets {
		for _, t := range targets {
			c.forget(t)
		}
	}
	c.refused = nil
	return nil
}
