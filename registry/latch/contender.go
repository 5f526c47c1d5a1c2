package latch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/elasticron/elasticron/registry"
)

// marker is in the name of every contender.
const marker = "latch-"

// errVanished: the contender's own node is gone, by somebody else's hand.
var errVanished = errors.New("contender deleted by somebody else")

// A contender is one place in the queue for a lock.
type contender struct {
	session registry.Session
	spawn   Spawn
	dir     string
	path    string
	value   []byte
	watcher registry.Watcher // nil before it is needed

	joined  bool              // its node has been created, for all we know
	unknown int               // attempts to create it that may still be applied
	token   registry.Revision // Created of its node, once read
}

func newContender(ses registry.Session, dir string, value []byte, spawn Spawn) *contender {
	return &contender{session: ses, spawn: spawn, dir: dir, path: child(dir, newName()), value: value}
}

// newName follows Curator's form; order is by Created, so the number says nothing.
func newName() string { return "_c_" + uuid.NewString() + "-" + marker + "0000000000" }

func child(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// join creates the node, and the directory when it is missing.
func (c *contender) join(ctx context.Context) error {
	var pause pause
	for {
		_, err := c.session.Commit(ctx, registry.CreateEphemeral(c.path, c.value))
		switch {
		case err == nil:
			c.joined = true
			return nil
		case errors.Is(err, registry.ErrExists) && c.unknown > 0:
			c.unknown--
			c.joined = true
			return nil
		case errors.Is(err, registry.ErrUncertain):
			c.unknown++
		case errors.Is(err, registry.ErrNoParent):
			err = registry.EnsurePath(ctx, c.session, c.dir)
		}
		if err := pause.beforeRetry(ctx, c.session, err); err != nil {
			return err
		}
	}
}

// wait returns once the contender is the first of all. With try it fails with
// ErrHeld instead of waiting.
func (c *contender) wait(ctx context.Context, try bool) error {
	names, err := c.contenders(ctx)
	if err != nil {
		return err
	}
	ahead, err := c.ahead(ctx, names)
	for err == nil && len(ahead) > 0 {
		if try {
			return registry.ErrHeld
		}
		if err = c.awaitGone(ctx, ahead[len(ahead)-1]); err == nil {
			ahead, err = c.ahead(ctx, paths(ahead))
		}
	}
	return err
}

// contenders lists the paths of all contenders of the directory.
func (c *contender) contenders(ctx context.Context) ([]string, error) {
	names, err := c.session.Children(ctx, c.dir)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, errVanished
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if strings.Contains(name, marker) {
			found = append(found, child(c.dir, name))
		}
	}
	return found, nil
}

// ahead reads the contender's own node, and returns those of others that were
// created before it, in order. Others cannot come before it any more, so it
// is enough to ask about those that were ahead the last time.
func (c *contender) ahead(ctx context.Context, others []string) ([]registry.Node, error) {
	ask := []string{c.path}
	for _, path := range others {
		if path != c.path {
			ask = append(ask, path)
		}
	}
	nodes, err := c.session.Get(ctx, ask...)
	if err != nil {
		return nil, err
	}
	own := nodes[0]
	if !own.Exists() || (c.token != 0 && c.token != own.Created) {
		return nil, errVanished
	}
	c.token = own.Created
	before := slices.DeleteFunc(nodes[1:], func(n registry.Node) bool { return !n.Exists() || compare(n, own) > 0 })
	slices.SortFunc(before, compare)
	return before, nil
}

// compare orders contenders; those of one commit by path.
func compare(a, b registry.Node) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Path, b.Path))
}

func paths(nodes []registry.Node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.Path
	}
	return all
}

// awaitGone waits until the node is gone, or the contender's own.
func (c *contender) awaitGone(ctx context.Context, n registry.Node) error {
	if err := c.watchSelf(ctx); err != nil {
		return err
	}
	if err := c.watcher.Add(n.Path, registry.Self); err != nil {
		return err
	}
	defer c.watcher.Remove(n.Path, registry.Self)
	for {
		events, err := c.watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, ev := range events {
			switch {
			case ev.Synced:
			case ev.Path == c.path && !ev.Node.Exists():
				return errVanished
			case ev.Path == n.Path && ev.Node.Created != n.Created:
				return nil
			}
		}
	}
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

// mayExist reports whether the node exists or may come to.
func (c *contender) mayExist() bool { return c.joined || c.unknown > 0 }

// leave removes the contender in the background, as long as the session lives,
// and returns a channel that is closed when its node is gone.
func (c *contender) leave() *departure {
	d := &departure{gone: make(chan struct{})}
	if c.watcher != nil {
		_ = c.watcher.Close() // frees; it cannot matter any more
	}
	if !c.mayExist() {
		close(d.gone)
		return d
	}
	c.spawn(func(ctx context.Context) {
		deleted, err := c.remove(ctx)
		d.err = err
		close(d.gone)
		if deleted && !c.joined {
			c.unknown--
		}
		if err == nil && c.unknown > 0 {
			c.removeLatecomers(ctx)
		}
	})
	return d
}

// remove deletes the node and reports whether this very commit did.
func (c *contender) remove(ctx context.Context) (deleted bool, err error) {
	var pause pause
	for {
		_, err := c.session.Commit(ctx, registry.Delete(c.path, registry.AnyVersion))
		if err == nil || errors.Is(err, registry.ErrNotFound) {
			return err == nil, nil
		}
		if err := pause.beforeRetry(ctx, c.session, err); err != nil {
			return false, err
		}
	}
}

// removeLatecomers deletes the node each time an old attempt to create it is
// applied after all.
func (c *contender) removeLatecomers(ctx context.Context) {
	w, err := c.session.Watch(ctx)
	if err != nil {
		return // the session has ended
	}
	defer w.Close()
	if err := w.Add(c.path, registry.Self); err != nil {
		return
	}
	for c.unknown > 0 {
		events, err := w.Next(ctx)
		if err != nil {
			return
		}
		for _, ev := range events {
			if !ev.Node.Exists() {
				continue
			}
			deleted, err := c.remove(ctx)
			if err != nil {
				return
			}
			if deleted {
				c.unknown--
			}
		}
	}
}
