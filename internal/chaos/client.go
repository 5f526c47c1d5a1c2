package main

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A client is the driver's own way to the servers, past all proxies.
type client struct {
	reg registry.Registry
	mu  sync.Mutex
	ses registry.Session
}

// attemptTime bounds one attempt; a server may be down meanwhile.
const attemptTime = 2 * time.Second

// do calls f with a live session until it succeeds, ctx ends, or all faults must be over.
func (c *client) do(ctx context.Context, f func(ctx context.Context, ses registry.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	var last error
	for {
		err := c.attempt(ctx, f)
		if err == nil {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return errors.Join(err, last)
		}
		last = err
	}
}

func (c *client) attempt(ctx context.Context, f func(ctx context.Context, ses registry.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	ses, err := c.session(ctx)
	if err != nil {
		return err
	}
	return f(ctx, ses)
}

func (c *client) session(ctx context.Context) (registry.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ses != nil && c.ses.Err() == nil {
		return c.ses, nil
	}
	ses, err := c.reg.Open(ctx)
	if err == nil {
		c.ses = ses
	}
	return ses, err
}

// job is the layout of a job of the run.
func jobLayout(name string) layout.Job {
	j, err := layout.New(namespace, name)
	if err != nil {
		panic(err) // the names are constants
	}
	return j
}

// configure edits a job's configuration as an operator would.
func (c *client) configure(ctx context.Context, job string, edit func(*layout.Config)) error {
	j := jobLayout(job)
	return c.do(ctx, func(ctx context.Context, ses registry.Session) error {
		nodes, err := ses.Get(ctx, j.Config())
		if err != nil {
			return err
		}
		cfg, err := j.UnmarshalConfig(nodes[0].Value)
		if err != nil {
			return err
		}
		edit(&cfg)
		value, err := layout.MarshalConfig(cfg)
		if err != nil || bytes.Equal(value, nodes[0].Value) {
			return err
		}
		_, err = ses.Commit(ctx, registry.Set(j.Config(), value, nodes[0].Version))
		return err
	})
}

// put makes a node have a value, or be absent when value is nil.
func (c *client) put(ctx context.Context, path string, value []byte) error {
	return c.do(ctx, func(ctx context.Context, ses registry.Session) error {
		nodes, err := ses.Get(ctx, path)
		if err != nil {
			return err
		}
		switch n := nodes[0]; {
		case value == nil && !n.Exists(), value != nil && n.Exists() && bytes.Equal(n.Value, value):
			return nil
		case value == nil:
			_, err = ses.Commit(ctx, registry.Delete(path, n.Version))
		case n.Exists():
			_, err = ses.Commit(ctx, registry.Set(path, value, n.Version))
		default:
			_, err = ses.Commit(ctx, registry.Create(path, value))
		}
		return err
	})
}
