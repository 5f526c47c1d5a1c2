package conformance

import (
	"context"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// A hoard keeps what it is given.
type hoard struct {
	mu   sync.Mutex
	kept []any
}

func keep(reg any, v any) {
	h := sharedBy(reg, "hoard", func() *hoard { return &hoard{} })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, v)
}

// freedBreakages keep what nobody needs any more.
var freedBreakages = []breakage{
	{"R114", "a registry keeps its closed sessions", "Sessions/ClosedIsFreed", "sessions that were closed, their registry open, are not freed",
		flaw{opened: func(s *flawed, _ context.Context) { keep(s.reg, s) }}},
	{"R114", "a registry keeps the sessions that were lost", "Sessions/ClosedIsFreed", "10 of 20 sessions that were closed",
		onClose(func(s *flawed, ctx context.Context) error {
			if s.Session.Err() != nil {
				keep(s.reg, s)
			}
			return s.Session.Close(ctx)
		})},
	{"R114", "a registry keeps its closed stores", "Sessions/ClosedIsFreed", "20 of 20 stores that were closed",
		flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
			st, err := r.Registry.OpenStore(ctx)
			keep(r.Registry, st)
			return st, err
		}}},
	{"R114", "a session keeps its closed watchers", "Sessions/ClosedIsFreed", "40 of 40 watchers that were closed",
		flaw{watch: func(s *flawed, ctx context.Context) (registry.Watcher, error) {
			w, err := s.watcher(ctx)
			keep(s.reg, w)
			return w, err
		}}},
	{"R114", "a session keeps every fourth of its locks", "Sessions/ClosedIsFreed", "5 of 40 locks that were released",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.Lock(ctx, dir, value)
			n, _ := remembered[int](s, "locks")
			s.remember("locks", n+1)
			if n%4 == 0 {
				keep(s.reg, l)
			}
			return l, err
		}}},
	{"R115", "each read waits for the end of its context", "Sessions/ContextKeepsNothing", "6 wait for it",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			context.AfterFunc(ctx, func() {})
			return s.Session.Get(ctx, paths...)
		}}},
	{"R115", "a commit that is refused leaves something at its context", "Sessions/ContextKeepsNothing", "6 wait for it",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			stop := context.AfterFunc(ctx, func() {})
			rev, err := s.Session.Commit(ctx, ops...)
			if err == nil {
				stop()
			}
			return rev, err
		}}},
	{"R115", "a watcher lives by the context of Watch", "Sessions/ContextKeepsNothing", "wait for it",
		flaw{watch: func(s *flawed, ctx context.Context) (registry.Watcher, error) {
			w, err := s.watcher(ctx)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = w.Close() })
			}
			return w, err
		}}},
	{"R115", "Release is tried again at the end of its context", "Sessions/ContextKeepsNothing", "wait for it",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			inner, err := s.Session.Lock(ctx, dir, value)
			if err != nil {
				return nil, err
			}
			return &flawedLock{Lock: inner, release: func(ctx context.Context) error {
				context.AfterFunc(ctx, func() { _ = inner.Release(context.WithoutCancel(ctx)) })
				return inner.Release(ctx)
			}}, nil
		}}},
}
