package zookeeper

import (
	"context"
	"fmt"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// A connection is what a store without a life stands on: ZooKeeper knows nothing but
// sessions, so it has one, and another when that is lost.
type connection struct {
	reg *Registry

	mu      sync.Mutex
	session registry.Session // nil before the first call
	closed  bool
}

// store returns the session that serves the next call.
func (c *connection) store(ctx context.Context) (registry.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.reg.sessions.Closed() {
		return nil, errRegistryClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.session != nil && c.session.Err() == nil {
		return c.session, nil
	}
	if c.session != nil { // it is lost
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.session.Close(ended)
		c.session = nil
	}
	s, err := c.reg.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: store: %w", err)
	}
	c.session = s
	return s, nil
}

func (c *connection) close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.session == nil {
		return nil
	}
	return c.session.Close(ctx)
}
