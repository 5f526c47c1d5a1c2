package tool

import (
	"context"

	"github.com/elasticron/elasticron/registry"
)

// Each returns a store each of whose calls is what ask makes of a call of another.
func Each(limits registry.Limits, ask func(context.Context, func(registry.Store) error) error) registry.Store {
	return &each{limits: limits, ask: ask}
}

type each struct {
	limits registry.Limits
	ask    func(ctx context.Context, call func(registry.Store) error) error
}

func (e *each) Limits() registry.Limits { return e.limits }

func (e *each) Get(ctx context.Context, paths ...string) (nodes []registry.Node, err error) {
	err = e.ask(ctx, func(s registry.Store) (err error) {
		nodes, err = s.Get(ctx, paths...)
		return err
	})
	return nodes, err
}

func (e *each) Children(ctx context.Context, path string) (names []string, err error) {
	err = e.ask(ctx, func(s registry.Store) (err error) {
		names, err = s.Children(ctx, path)
		return err
	})
	return names, err
}

func (e *each) Sync(ctx context.Context) error {
	return e.ask(ctx, func(s registry.Store) error { return s.Sync(ctx) })
}

func (e *each) Commit(ctx context.Context, ops ...registry.Op) (rev registry.Revision, err error) {
	err = e.ask(ctx, func(s registry.Store) (err error) {
		rev, err = s.Commit(ctx, ops...)
		return err
	})
	return rev, err
}

func (e *each) Watch(ctx context.Context) (w registry.Watcher, err error) {
	err = e.ask(ctx, func(s registry.Store) (err error) {
		w, err = s.Watch(ctx)
		return err
	})
	return w, err
}
