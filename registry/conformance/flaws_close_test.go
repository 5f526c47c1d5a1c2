package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// sharedBy returns what the sessions of one registry share, the same for each key.
func sharedBy[T any](reg any, key string, produce func() *T) *T {
	v, _ := shared.LoadOrStore(sharing{reg, key}, produce())
	return v.(*T)
}

type sharing struct {
	reg any
	key string
}

var shared sync.Map

// onClose replaces Close.
func onClose(change func(s *flawed, ctx context.Context) error) flaw { return flaw{close: change} }

// underWay lets change see an Open that fails because its registry was closed meanwhile.
func underWay(change func(r *flawedRegistry, ctx context.Context) (registry.Session, error)) flaw {
	return flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
		called := time.Now()
		s, err := r.sound(ctx)
		if errors.Is(err, registry.ErrClosed) && time.Since(called) > 20*time.Millisecond {
			return change(r, ctx)
		}
		return s, err
	}}
}

// closeBreakages end, but not as they should.
var closeBreakages = []breakage{
	{"R99", "a second Close succeeds where the first has failed", "Sessions/CloseUnreachableBounded", "Close returned nil",
		onClose(func(s *flawed, ctx context.Context) error {
			if _, again := remembered[bool](s, "closed"); again {
				return nil
			}
			err := s.Session.Close(ctx)
			s.remember("closed", true)
			return err
		})},
	{"R99 R104", "a Close beside another succeeds at once", "Sessions/CloseUnreachableBounded", "Close returned nil",
		onClose(func(s *flawed, ctx context.Context) error {
			if _, begun := remembered[bool](s, "closing"); begun {
				return nil
			}
			s.remember("closing", true)
			return s.Session.Close(ctx)
		})},
	{"R99", "Close of a lost session tries and succeeds in any case", "Sessions/CloseAfterLossEndsAtService", "Close returned nil",
		onClose(func(s *flawed, ctx context.Context) error {
			lost := s.Session.Err() != nil
			if err := s.Session.Close(ctx); !lost {
				return err
			}
			return nil
		})},
	{"R102", "a Close waits for the one before it", "Sessions/CloseUnreachableBounded", "Close with a",
		onClose(func(s *flawed, ctx context.Context) error {
			turn := once(s, "turn", func() *sync.Mutex { return new(sync.Mutex) })
			turn.Lock()
			defer turn.Unlock()
			return s.Session.Close(ctx)
		})},
	{"R102", "Close does not heed a cancel", "Sessions/CloseUnreachableBounded", "Close with a cancel",
		onClose(func(s *flawed, ctx context.Context) error {
			if time.Until(deadlineOf(ctx)) > flawedTimeout/2 {
				stubborn, cancel := context.WithTimeout(context.WithoutCancel(ctx), flawedTimeout*5/8)
				defer cancel()
				ctx = stubborn
			}
			return s.Session.Close(ctx)
		})},
	{"R102", "Close waits for a Release that was given up", "Sessions/CloseUnreachableBounded", "Close with a deadline",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			inner, err := s.Session.Lock(ctx, dir, value)
			if err != nil {
				return nil, err
			}
			return &flawedLock{Lock: inner, release: func(ctx context.Context) error {
				err := inner.Release(ctx)
				s.remember("given up", err)
				return err
			}}, nil
		}, close: func(s *flawed, ctx context.Context) error {
			if _, waits := remembered[error](s, "given up"); waits && s.Session.Err() == nil {
				<-time.After(flawedTimeout * 5 / 8)
			}
			return s.Session.Close(ctx)
		}}},
	{"R100", "a Close that fails leaves a goroutine behind", "Sessions/NoGoroutineLeak", "after the return of Close, cut off",
		onClose(func(s *flawed, ctx context.Context) error {
			err := s.Session.Close(ctx)
			if err != nil {
				go func() { <-time.After(2 * brokenTime) }()
			}
			return err
		})},
	{"R16", "reads wait while another session of the registry closes", "Sessions/CloseHoldsUpNobody", "a call beside a Close that waits",
		flaw{close: func(s *flawed, ctx context.Context) error {
			goodbye := sharedBy(s.reg, "goodbye", func() *sync.RWMutex { return new(sync.RWMutex) })
			goodbye.Lock()
			defer goodbye.Unlock()
			return s.Session.Close(ctx)
		}, get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			goodbye := sharedBy(s.reg, "goodbye", func() *sync.RWMutex { return new(sync.RWMutex) })
			goodbye.RLock()
			defer goodbye.RUnlock()
			return s.Session.Get(ctx, paths...)
		}}},
	{"R71", "closing a registry waits for a Close that is under way", "Sessions/RegistryCloseCutOff", "Registry.Close, while",
		flaw{close: func(s *flawed, ctx context.Context) error {
			closing := sharedBy(s.reg, "closing", func() *sync.RWMutex { return new(sync.RWMutex) })
			closing.RLock()
			defer closing.RUnlock()
			return s.Session.Close(ctx)
		}, ends: func(r *flawedRegistry) error {
			closing := sharedBy(r.Registry, "closing", func() *sync.RWMutex { return new(sync.RWMutex) })
			closing.Lock()
			closing.Unlock() //nolint:staticcheck // it waits
			return r.Registry.Close()
		}}},
	{"R43", "an Open that waits goes on when its registry is closed", "Sessions/OpenRacesRegistryClose", "Open goes on",
		underWay(func(_ *flawedRegistry, ctx context.Context) (registry.Session, error) {
			<-ctx.Done()
			return nil, errors.Join(registry.ErrUnavailable, ctx.Err())
		})},
	{"R43", "an Open that is cut off goes on when its registry is closed", "Sessions/RegistryCloseCutOff", "Open goes on",
		underWay(func(_ *flawedRegistry, ctx context.Context) (registry.Session, error) {
			<-ctx.Done()
			return nil, errors.Join(registry.ErrUnavailable, ctx.Err())
		})},
	{"R70", "an Open that is under way when its registry is closed succeeds", "Sessions/OpenRacesRegistryClose", "returned a session that lives",
		underWay(func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			another := r.h.srv.Registry("flawed")
			context.AfterFunc(ctx, func() { _ = another.Close() })
			return another.Open(ctx)
		})},
}
