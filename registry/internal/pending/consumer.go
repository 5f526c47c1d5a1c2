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

// A Life is the session's that a watcher ends with.
type Life interface {
	Done() <-chan struct{}
	Err() error
}

// A Consumer is the side of a watcher that its user sees: what waits to be taken, and why
// nothing more can come. NewConsumer makes it.
type Consumer struct {
	Queue
	// Ready, where it is set, says with mu held whether events may be taken, and what is closed
	// when that may have changed.
	Ready func() (ok bool, changed <-chan struct{})

	adapter string
	life    Life
	mu      sync.Locker
	wake    chan struct{} // there is something to take
	gone    chan struct{} // closed by End
	ended   bool
	refused []error // of targets that the service denies
}

// NewConsumer returns the consumer's side of a watcher. mu guards it, and is held by who
// calls its methods, but for Next.
func NewConsumer(adapter string, life Life, mu sync.Locker) *Consumer {
	return &Consumer{adapter: adapter, life: life, mu: mu, wake: make(chan struct{}, 1), gone: make(chan struct{})}
}

// Admit returns the target of a path and scope, or why it cannot be watched.
func (c *Consumer) Admit(path string, scope registry.Scope) (Target, error) {
	if err := registry.ValidatePath(path); err != nil {
		return Target{}, fmt.Errorf("%s: watch: %w", c.adapter, err)
	}
	if scope != registry.Self && scope != registry.Children {
		return Target{}, fmt.Errorf("%s: watch: %w: unknown scope %d", c.adapter, registry.ErrInvalid, scope)
	}
	return Target{Key: Key{Path: path, Scope: scope}}, c.over()
}

// over reports why nothing more can come.
func (c *Consumer) over() error {
	if c.ended {
		return fmt.Errorf("%s: watch: %w", c.adapter, registry.ErrClosed)
	}
	return c.life.Err()
}

// Announce wakes Next if there is something to take.
func (c *Consumer) Announce() {
	if c.Len() > 0 || len(c.refused) > 0 {
		wait.Wake(c.wake)
	}
}

// Refuse has Next say once that a target is watched no more.
func (c *Consumer) Refuse(k Key, err error) {
	c.refused = append(c.refused, fmt.Errorf("watch %s (%s): %w", k.Path, k.Scope, err))
	c.Announce()
}

// Next is registry.Watcher's.
func (c *Consumer) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events, changed, err := c.take()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-c.wake:
		case <-changed:
		case <-c.gone:
		case <-c.life.Done():
		case <-ctx.Done():
		}
	}
}

func (c *Consumer) take() (events []registry.Event, changed <-chan struct{}, err error) {
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

// End forgets what was not taken. False: it has ended already.
func (c *Consumer) End() bool {
	if c.ended {
		return false
	}
	c.ended = true
	close(c.gone)
	c.refused = nil
	c.Clear()
	return true
}
