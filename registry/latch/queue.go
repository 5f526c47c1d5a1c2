package latch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/elasticron/elasticron/registry"
)

// A rival is another contender for the lock.
type rival struct {
	path    string
	place   int64
	created registry.Revision // 0: not read
}

func compare(a, b rival) int {
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.created, b.created), strings.Compare(a.path, b.path))
}

// wait returns once the contender is the first of all. With try it fails with ErrHeld instead of waiting.
func (c *contender) wait(ctx context.Context, try bool) error {
	ahead, err := c.lookAround(ctx)
	for err == nil && len(ahead) > 0 {
		if try {
			return registry.ErrHeld
		}
		if err = c.awaitGone(ctx, ahead[len(ahead)-1]); err == nil {
			ahead, err = c.lookAgain(ctx, ahead)
		}
	}
	return err
}

// lookAround lists the directory and returns those ahead, in order. The first look decides which of its own nodes
// counts: one from an attempt of unknown outcome may come before the one that was answered, and others may wait for it
// already.
func (c *contender) lookAround(ctx context.Context) ([]rival, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	rivals := all[:0]
	for _, r := range all {
		switch {
		case !c.recognize(r.path):
			rivals = append(rivals, r)
		case c.token == 0 && r.place < c.place:
			c.path, c.place = r.path, r.place
		}
	}
	return c.ahead(ctx, rivals)
}

// lookAgain returns who of those ahead still is. Nobody can have come before the contender meanwhile. So if it had to
// read them for their Created, it reads them again; if their names say it all, one list is cheaper.
func (c *contender) lookAgain(ctx context.Context, ahead []rival) ([]rival, error) {
	if ahead[0].place < c.place {
		return c.lookAround(ctx)
	}
	return c.ahead(ctx, ahead)
}

// list returns all contenders of the directory.
func (c *contender) list(ctx context.Context) ([]rival, error) {
	names, err := c.session.Children(ctx, c.dir)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	var all []rival
	for _, name := range names {
		place, ok, err := c.form.Place(name)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, rival{path: child(c.dir, name), place: place})
		}
	}
	return all, nil
}

// ahead reads the contender's own node, which must be there still and not be one that
// somebody else made there, and returns those of rivals that come before it, in order.
func (c *contender) ahead(ctx context.Context, rivals []rival) ([]rival, error) {
	var before []rival
	ask := []string{c.path}
	for _, r := range rivals {
		switch cmp.Compare(r.place, c.place) {
		case -1:
			before = append(before, r)
		case 0:
			ask = append(ask, r.path)
		}
	}
	nodes, err := c.session.Get(ctx, ask...)
	if err != nil {
		return nil, err
	}
	own := nodes[0]
	if !own.Owned || (c.token != 0 && c.token != own.Created) {
		return nil, errVanished
	}
	c.token = own.Created
	self := rival{c.path, c.place, c.token}
	for _, n := range nodes[1:] {
		if r := (rival{n.Path, c.place, n.Created}); n.Exists() && compare(r, self) < 0 {
			before = append(before, r)
		}
	}
	slices.SortFunc(before, compare)
	return before, nil
}
