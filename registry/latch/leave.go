package latch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
)

// A departure is a contender's way out of the queue.
type departure struct {
	gone    chan struct{}
	err     error // once gone is closed
	refused atomic.Bool
}

// wait returns when the contender has left. When ctx ends first the removal goes on.
func (d *departure) wait(ctx context.Context) error {
	select {
	case <-d.gone:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave removes the contender in the background, as long as the session lives. What is at the path of a node that is
// gone is somebody else's. Who cannot ask again insists where the service refuses.
func (c *contender) leave(gone, insist bool) *departure {
	d := &departure{gone: make(chan struct{})}
	if c.watcher != nil {
		_ = c.watcher.Close() // frees; it cannot matter any more
	}
	if gone {
		c.nodes = slices.DeleteFunc(c.nodes, func(path string) bool {
			return path == c.path
		})
	}
	if len(c.nodes) == 0 && c.unknown == 0 {
		close(d.gone)
		return d
	}
	c.spawn(func(ctx context.Context) {
		err := c.removeAll(ctx)
		d.err = err
		d.refused.Store(errors.Is(err, registry.ErrDenied))
		close(d.gone)
		var pause pause
		for ; insist && errors.Is(err, registry.ErrDenied); err = c.removeAll(ctx) {
			_ = pause.beforeRetry(ctx, c.session, registry.ErrUncertain)
		}
		if err == nil && c.unknown > 0 {
			c.removeLatecomers(ctx)
		}
	})
	return d
}

// removeAll deletes the nodes that are there, with those that it has not heard of.
func (c *contender) removeAll(ctx context.Context) error {
	joined := len(c.nodes) > 0 || c.token != 0
	if err := c.removeNodes(ctx); err != nil || c.unknown == 0 {
		return err
	}
	if c.known == "" {
		if err := c.look(ctx); err != nil {
			return err
		}
		return c.removeNodes(ctx)
	}
	if joined {
		return nil
	}
	deleted, err := c.remove(ctx, c.known)
	if deleted {
		c.unknown--
	}
	return err
}

func (c *contender) removeNodes(ctx context.Context) error {
	for len(c.nodes) > 0 {
		if _, err := c.remove(ctx, c.nodes[0]); err != nil {
			return err
		}
		c.nodes = slices.Delete(c.nodes, 0, 1)
	}
	return nil
}

// remove deletes the node and reports whether this very commit did.
func (c *contender) remove(ctx context.Context, path string) (deleted bool, err error) {
	var pause pause
	for {
		_, err := c.session.Commit(ctx, registry.Delete(path, registry.AnyVersion))
		if err == nil || errors.Is(err, registry.ErrNotFound) {
			return err == nil, nil
		}
		if err := pause.beforeRetry(ctx, c.session, err); err != nil {
			return false, err
		}
	}
}

// removeLatecomers deletes the node of each old attempt to create one that is applied after all.
func (c *contender) removeLatecomers(ctx context.Context) {
	w, err := c.session.Watch(ctx)
	if err != nil {
		return // the session has ended
	}
	defer w.Close()
	path, scope := c.known, registry.Self
	if path == "" {
		path, scope = c.dir, registry.Children
	}
	if err := w.Add(path, scope); err != nil {
		return
	}
	for c.unknown > 0 {
		events, err := w.Next(ctx)
		if err != nil {
			return
		}
		for _, ev := range events {
			if !ev.Node.Owned || !strings.HasPrefix(ev.Node.Path, c.prefix) {
				continue
			}
			deleted, err := c.remove(ctx, ev.Node.Path)
			if err != nil {
				return
			}
			if deleted {
				c.unknown--
			}
		}
	}
}
