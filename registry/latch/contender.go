package latch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/elasticron/elasticron/registry"
)

// errVanished: the contender's own node is gone, by somebody else's hand.
var errVanished = errors.New("contender deleted by somebody else")

// A contender is one place in the queue for a lock.
type contender struct {
	session registry.Session
	spawn   Spawn
	form    Form
	dir     string
	prefix  string // of the paths of its nodes
	value   []byte
	watcher registry.Watcher // nil before it is needed

	known string // path, where it is known before the answer
	// Those that have been created, for all we know; several after unknown outcomes.
	nodes   []string
	unknown int // attempts to create one that may still be applied

	path  string            // of the node that counts
	place int64             // of path
	token registry.Revision // Created of path, once read
}

func newContender(ses registry.Session, dir string, value []byte, spawn Spawn) *contender {
	return &contender{
		session: ses, spawn: spawn, form: byCreated{ses}, dir: dir, value: value,
		prefix: child(dir, "_c_"+uuid.NewString()+"-"+marker), // Curator's form
	}
}

func child(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// join creates the node, and the directory when it is missing.
func (c *contender) join(ctx context.Context) error {
	var pause pause
	for len(c.nodes) == 0 {
		path, err := c.form.Join(ctx, c.prefix, c.value)
		switch {
		case err == nil:
			c.nodes = append(c.nodes, path)
		case errors.Is(err, registry.ErrExists) && c.known != "":
			c.unknown--
			c.nodes = append(c.nodes, path)
		case errors.Is(err, registry.ErrUncertain):
			c.unknown++
			c.known = path
			switch failed := c.look(ctx); {
			case failed != nil && ctx.Err() != nil && c.session.Err() == nil:
				return unreachable(ctx, err)
			case failed != nil:
				return failed
			}
		case errors.Is(err, registry.ErrNoParent):
			err = registry.EnsurePath(ctx, c.session, c.dir)
		}
		if len(c.nodes) > 0 {
			break
		}
		if err := pause.beforeRetry(ctx, c.session, err); err != nil {
			return err
		}
	}
	return c.choose(c.nodes[0])
}

// look finds the nodes of attempts whose outcome was unknown and whose path is, among the children.
func (c *contender) look(ctx context.Context) error {
	if c.known != "" {
		return nil // the next attempt tells
	}
	settled := c.form.Settle(ctx)
	if err := c.session.Sync(ctx); err != nil {
		return err
	}
	names, err := c.session.Children(ctx, c.dir)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	for _, name := range names {
		c.recognize(child(c.dir, name))
	}
	if settled {
		c.unknown = 0
	}
	return nil
}

// recognize reports whether the node is the contender's own. One that it has not
// heard of comes from an attempt of unknown outcome.
func (c *contender) recognize(path string) bool {
	if !strings.HasPrefix(path, c.prefix) {
		return false
	}
	if !slices.Contains(c.nodes, path) {
		c.nodes = append(c.nodes, path)
		c.unknown = max(c.unknown-1, 0)
	}
	return true
}

// choose makes the node at path the one that counts.
func (c *contender) choose(path string) error {
	place, _, err := c.form.Place(path[strings.LastIndexByte(path, '/')+1:])
	c.path, c.place = path, place
	return err
}

// watchSelf makes the watcher and lets it follow the contender's own node.
func (c *contender) watchSelf(ctx context.Context) error {
	if c.watcher != nil {
		return nil
	}
	w, err := c.session.Watch(ctx)
	if err != nil {
		return err
	}
	c.watcher = w
	return w.Add(c.path, registry.Self)
}

// awaitGone waits until the node is gone, or the contender's own.
func (c *contender) awaitGone(ctx context.Context, r rival) error {
	if err := c.watchSelf(ctx); err != nil {
		return err
	}
	if err := addUntilGone(c.watcher, r.path); err != nil {
		return err
	}
	defer c.watcher.Remove(r.path, registry.Self)
	for {
		events, err := c.watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, ev := range events {
			switch {
			case ev.Synced:
			case ev.Path == c.path && ev.Node.Created != c.token:
				return errVanished
			case ev.Path == r.path && r.created == 0 && ev.Node.Exists():
				r.created = ev.Node.Created
			case ev.Path == r.path && (!ev.Node.Exists() || ev.Node.Created != r.created):
				return nil
			}
		}
	}
}

func addUntilGone(w registry.Watcher, path string) error {
	if w, ok := w.(EndWatcher); ok {
		return w.AddUntilGone(path)
	}
	return w.Add(path, registry.Self)
}
