package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// blink is less than the blips of CallsThroughBlips last.
const blink = flawedTimeout / 8

// hasty asks again and again for what is not answered soon.
func hasty[T any](ctx context.Context, call func(context.Context) (T, error)) (is T, err error) {
	for {
		is, err = impatient(ctx, flawedTimeout/20, call)
		if ctx.Err() != nil || !errors.Is(err, registry.ErrUnavailable) {
			return is, err
		}
	}
}

// skittish is a watcher that ends when a fault hits.
type skittish struct {
	registry.Watcher
	reg *memory.Registry
}

func (w skittish) Next(ctx context.Context) ([]registry.Event, error) {
	if w.reg.Hits() > 0 {
		return nil, registry.ErrUnavailable
	}
	return w.Watcher.Next(ctx)
}

// blipBreakages do not bear a short fault.
var blipBreakages = []breakage{
	{"R74", "Get asks again before a slow answer can come", "Uncertain/CallsThroughBlips", "has not returned",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			return hasty(ctx, func(ctx context.Context) ([]registry.Node, error) { return s.Session.Get(ctx, paths...) })
		}}},
	{"R74", "Children asks again before a slow answer can come", "Uncertain/CallsThroughBlips", "has not returned",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			return hasty(ctx, func(ctx context.Context) ([]string, error) { return s.Session.Children(ctx, path) })
		}}},
	{"R74", "Sync of a store gives up at once", "Uncertain/CallsThroughBlips", "Sync of a store, called during",
		onStores(storeFlaw{sync: func(s *flawedStore, ctx context.Context) error {
			_, err := impatient(ctx, blink, func(ctx context.Context) (bool, error) { return true, s.StoreCloser.Sync(ctx) })
			return err
		}})},
	{"R74", "Children of a store gives up at once", "Uncertain/CallsThroughBlips", "Children of a store, called during",
		onStores(storeFlaw{children: func(s *flawedStore, ctx context.Context, path string) ([]string, error) {
			return impatient(ctx, blink, func(ctx context.Context) ([]string, error) { return s.StoreCloser.Children(ctx, path) })
		}})},
	{"R74", "Children gives up at once", "Uncertain/CallsThroughAPause", "Children of a session, called during Pause",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			return impatient(ctx, blink, func(ctx context.Context) ([]string, error) { return s.Session.Children(ctx, path) })
		}}},
	{"R74", "a store does not ask again when its connection breaks", "Uncertain/ReadsThroughARestart", "Get of a store, called during RestartServer",
		onStores(storeFlaw{get: func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error) {
			before := s.reg.Hits()
			nodes, err := s.StoreCloser.Get(ctx, paths...)
			<-time.After(20 * time.Millisecond) // so that one is under way
			if s.reg.Hits() != before {
				return nil, registry.ErrUnavailable
			}
			return nodes, err
		}})},
	{"R69", "Open gives up at once, but for connections that are refused", "Uncertain/CallsThroughBlips", "Open, called during",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			return impatient(ctx, blink+100*time.Millisecond, r.sound)
		}}},
	{"R111", "Release gives up at once", "Uncertain/CallsThroughBlips", "Release, called during",
		onRelease(func(_ *flawed, l registry.Lock) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := impatient(ctx, blink, func(ctx context.Context) (bool, error) { return true, l.Release(ctx) })
				return err
			}
		})},
	{"R26 R74", "a watcher of a store ends with a broken connection", "Uncertain/CallsThroughBlips", "Watch of a store, called during",
		onStores(storeFlaw{watch: func(s *flawedStore, ctx context.Context) (registry.Watcher, error) {
			w, err := s.StoreCloser.Watch(ctx)
			return skittish{w, s.reg}, err
		}})},
	{"R40", "a commit of a store that was not answered is called refused", "Uncertain/CallsThroughBlips", "Commit of a store, called during",
		onStores(storeFlaw{commit: func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.StoreCloser.Commit(ctx, ops...)
			if errors.Is(err, registry.ErrUncertain) {
				err = registry.ErrUnavailable
			}
			return rev, err
		}})},
	{"R99", "Close does not wait for a service that is slow", "Uncertain/CallsThroughBlips", "Close, called during",
		flaw{close: func(s *flawed, ctx context.Context) error {
			closed := make(chan error, 1)
			go func() { closed <- s.Session.Close(ctx) }()
			select {
			case err := <-closed:
				return err
			case <-time.After(blink):
				return nil
			}
		}}},
}
