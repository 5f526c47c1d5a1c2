package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// bySession is a store that has a life, and does not say so.
type bySession struct{ registry.Session }

func storeOf(change func(registry.Session) registry.StoreCloser) flaw {
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		s, err := r.Registry.Open(ctx)
		if err != nil {
			return nil, err
		}
		return change(s), nil
	}}
}

var lifeBreakages = []breakage{
	{"R11", "the last ephemeral node goes 100 ms after the others", "Sessions/EphemeralsGoTogether", "after Sync",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if len(nodes) < 10 {
				return nodes, err
			}
			for i, n := range nodes {
				if old, known := remembered[registry.Node](s, "seen "+n.Path); known && !n.Exists() {
					gone := once(s, "gone "+n.Path, time.Now)
					if time.Since(gone) < 100*time.Millisecond && n.Path[len(n.Path)-2:] == "/7" {
						nodes[i] = old
					}
				} else if n.Ephemeral {
					s.remember("seen "+n.Path, n)
				}
			}
			return nodes, err
		}}},
	{"R12", "Close deletes what the session had made, by name", "Sessions/NamesAreFreeAtOnce", "the node changed",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			for _, op := range ops {
				if err == nil && op.Kind == registry.OpCreateEphemeral {
					s.remember("mine", op.Path)
				}
			}
			return rev, err
		}, close: func(s *flawed, ctx context.Context) error {
			err := s.Session.Close(ctx)
			if mine, known := remembered[string](s, "mine"); known {
				if other, failed := s.reg.Open(ctx); failed == nil {
					_, _ = other.Commit(ctx, registry.Delete(mine, registry.AnyVersion))
					_ = other.Close(ctx)
				}
			}
			return err
		}}},
	{"R15", "a consumer that does not come ends the session", "Sessions/ReachableServiceKeepsSession", "the session was lost",
		flaw{watch: func(s *flawed, ctx context.Context) (registry.Watcher, error) {
			w, err := s.watcher(ctx)
			timer := time.AfterFunc(flawedTimeout, func() { _ = s.Session.Close(context.Background()) })
			go func() {
				<-s.Session.Done()
				timer.Stop()
			}()
			return w, err
		}}},
	{"R16", "the end of one session ends all of its registry", "Sessions/SessionsAreApart", "was lost",
		flaw{opened: func(s *flawed, _ context.Context) {
			family.Lock()
			defer family.Unlock()
			family.of[s.reg] = append(family.of[s.reg], s)
		}, close: func(s *flawed, ctx context.Context) error {
			family.Lock()
			all := slices.Clone(family.of[s.reg])
			family.Unlock()
			for _, other := range all {
				_ = other.Session.Close(ctx)
			}
			return s.Session.Close(ctx)
		}}},
	{"R49", "a store owns what sessions made", "Stores/OwnsNothing", "a store reads",
		flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
			st, err := r.Registry.OpenStore(ctx)
			return owningStore{st}, err
		}}},
	{"R72", "a store makes ephemeral nodes", "Stores/OwnsNothing", "want ErrInvalid",
		storeOf(func(s registry.Session) registry.StoreCloser { return bySession{s} })},
	{"R73", "a store is a session that can be lost", "Stores/OutlivesOutage", "no session to lose",
		storeOf(func(s registry.Session) registry.StoreCloser { return bySession{s} })},
	{"R43", "a store that was closed has lost its session", "Stores/Closes", "want ErrClosed",
		storeOf(func(s registry.Session) registry.StoreCloser { return bySession{s} })},
	{"R68", "the namespace begins with a slash", "Sessions/Namespace", "Namespace is",
		flaw{namespace: func(r *flawedRegistry) string { return "/" + r.Registry.Namespace() }}},
	{"R70", "closing a registry leaves its sessions open", "Sessions/RegistryCloseEndsSessions", "Done of session",
		flaw{ends: func(*flawedRegistry) error { return nil }}},
	{"R70", "closing a registry ends its sessions a moment later", "Sessions/RegistryCloseEndsSessions", "has returned, and Done of session",
		flaw{ends: func(r *flawedRegistry) error {
			time.AfterFunc(flawedTimeout/20, func() { _ = r.Registry.Close() })
			return nil
		}}},
	{"R71", "closing a registry waits for the service", "Sessions/RegistryCloseCutOff", "Registry.Close, while",
		flaw{ends: func(r *flawedRegistry) error {
			sharedBy(r.Registry, "waits", func() *sync.Once { return new(sync.Once) }).Do(func() { <-time.After(flawedTimeout * 5 / 8) })
			return r.Registry.Close()
		}}},
	{"R86", "IDs come again", "Sessions/IDsAreUnique", "of one before", flaw{id: func(s *flawed) string { return s.Session.ID()[:9] }}},
	{"R96", "Deadline is counted from when the answer came", "Sessions/DeadlineThroughSlowAnswers", "before the session's Deadline",
		flaw{deadline: func(s *flawed) time.Time {
			if s.reg.Hits() > 0 {
				return s.Session.Deadline().Add(flawedTimeout / 5)
			}
			return s.Session.Deadline()
		}}},
	{"R97", "Deadline goes back now and then", "Sessions/DeadlineAdvances", "Deadline went back",
		flaw{deadline: func(s *flawed) time.Time {
			n, _ := remembered[int](s, "asked")
			s.remember("asked", n+1)
			return s.Session.Deadline().Add(-time.Duration(n%2) * 10 * time.Millisecond)
		}}},
	{"R100", "a session leaves ten goroutines behind", "Sessions/NoGoroutineLeak", "goroutines; there were",
		flaw{opened: func(*flawed, context.Context) {
			for range 10 {
				go func() { <-time.After(2 * brokenTime) }()
			}
		}}},
	{"R101", "Close of a lost session tells nobody", "Sessions/CloseAfterLossEndsAtService", "/a exists",
		flaw{close: func(s *flawed, ctx context.Context) error {
			if s.Session.Err() != nil {
				return nil
			}
			return s.Session.Close(ctx)
		}}},
	{"R102", "Close waits longer than its context", "Sessions/CloseUnreachableBounded", "Close with a deadline",
		flaw{close: func(s *flawed, ctx context.Context) error {
			if _, bounded := ctx.Deadline(); bounded && s.reg.Hits() >= 0 && time.Until(deadlineOf(ctx)) < time.Second/2 {
				<-time.After(flawedTimeout * 5 / 8)
			}
			return s.Session.Close(ctx)
		}}},
	{"R104", "a second Close fails", "Sessions/CloseIdempotent", "called eight times at once",
		flaw{close: func(s *flawed, ctx context.Context) error {
			if _, again := remembered[bool](s, "closed"); again {
				return errors.New("closed already")
			}
			s.remember("closed", true)
			return s.Session.Close(ctx)
		}}},
}

func deadlineOf(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

// family are the sessions of a registry.
var family = struct {
	sync.Mutex
	of map[any][]*flawed
}{of: map[any][]*flawed{}}

type owningStore struct{ registry.StoreCloser }

func (s owningStore) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	nodes, err := s.StoreCloser.Get(ctx, paths...)
	for i := range nodes {
		nodes[i].Owned = nodes[i].Ephemeral
	}
	return nodes, err
}

// tied ends what a call made when the context of the call ends.
func tied(ctx context.Context, end func()) { context.AfterFunc(ctx, end) }

var contextBreakages = []breakage{
	{"R32", "a session ends with the context of its Open", "Sessions/ContextsEndAfterReturn", "session lost",
		flaw{opened: func(s *flawed, ctx context.Context) { tied(ctx, func() { _ = s.Session.Close(context.Background()) }) }}},
	{"R32", "a watcher ends with the context of its Watch", "Sessions/ContextsEndAfterReturn", "closed",
		flaw{watch: func(s *flawed, ctx context.Context) (registry.Watcher, error) {
			w, err := s.watcher(ctx)
			if err == nil {
				tied(ctx, func() { _ = w.Close() })
			}
			return w, err
		}}},
	{"R32", "a lock ends with the context of its TryLock", "Sessions/ContextsEndAfterReturn", "was lost",
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			if err == nil {
				tied(ctx, func() { _ = l.Release(context.Background()) })
			}
			return l, err
		}}},
	{"R33", "Sync does not look at its context", "Sessions/EndedContextEveryMethod", "Sync with an ended context",
		flaw{sync: func(s *flawed, _ context.Context) error { return s.Session.Sync(context.Background()) }}},
	{"R34", "Close with an ended context does nothing at the service", "Sessions/CloseWithEndedContext", "exists",
		flaw{close: func(s *flawed, ctx context.Context) error {
			if ctx.Err() != nil {
				heal := s.reg.Refuse()
				_ = s.Session.Close(ctx)
				heal()
				return nil
			}
			return s.Session.Close(ctx)
		}}},
	{"R34", "Close with an ended context tries for a whole timeout", "Sessions/CloseWithEndedContext", "a quarter of the timeout is",
		flaw{close: func(s *flawed, ctx context.Context) error {
			if ctx.Err() != nil && s.reg.Hits() >= 0 {
				limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flawedTimeout)
				defer cancel()
				return s.Session.Close(limited)
			}
			return s.Session.Close(ctx)
		}}},
	{"R34", "Release with an ended context does nothing", "Locks/ReleaseWithEndedContext", "did not get the lock",
		onLock(func(_ *flawed, _ string, l *flawedLock) {
			l.release = func(ctx context.Context) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return l.Lock.Release(ctx)
			}
		})},
}
