package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// ownerClosed says that a session was closed, and not lost.
func ownerClosed(s *flawed) bool {
	return s.Session.Err() != nil && strings.Contains(s.Session.Err().Error(), "closed by its owner")
}

// registryClosed says that the registry of a session was closed.
func registryClosed(s *flawed) bool {
	st, err := s.reg.OpenStore(context.Background())
	if err == nil {
		_ = st.Close(context.Background())
	}
	return errors.Is(err, registry.ErrClosed)
}

// onEnded changes the error of a call that failed because its session has ended.
func onEnded(s *flawed, err error, change func() error) error {
	if errors.Is(err, registry.ErrSessionLost) && registryClosed(s) {
		return change()
	}
	return err
}

// comeBack has what was in flight when a session ended be made again, by somebody who outlives it.
func comeBack(when func(s *flawed) bool) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		alive := s.Session.Err() == nil
		rev, err := s.Session.Commit(ctx, ops...)
		if !alive || err == nil || s.Session.Err() == nil || !when(s) || ops[0].Kind != registry.OpCreateEphemeral {
			return rev, err
		}
		st, failed := s.reg.OpenStore(ctx)
		if failed != nil {
			return rev, err
		}
		go func() {
			defer st.Close(context.Background())
			for range 1000 {
				brief, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				_, failed := st.Commit(brief, registry.Create(ops[0].Path, nil))
				cancel()
				if failed == nil || errors.Is(failed, registry.ErrClosed) {
					return
				}
				<-time.After(pollEvery)
			}
		}()
		return rev, err
	}}
}

// uncertainOwned remembers ephemeral nodes whose create had an unknown outcome.
func uncertainOwned(s *flawed, ops []registry.Op, err error) {
	if errors.Is(err, registry.ErrUncertain) && ops[0].Kind == registry.OpCreateEphemeral {
		s.remember("uncertain", ops[0].Path)
	}
}

// endedSoon waits a moment, since Lost may be closed before Done.
func endedSoon(s *flawed) bool {
	select {
	case <-s.Session.Done():
		return true
	case <-time.After(20 * time.Millisecond):
		return false
	}
}

// afterLocking has something follow each Lock and TryLock.
func afterLocking(then func(s *flawed, ctx context.Context, l registry.Lock) (registry.Lock, error)) flaw {
	return flaw{
		lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.Lock(ctx, dir, value)
			if err != nil {
				return nil, err
			}
			return then(s, ctx, l)
		},
		try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			if err != nil {
				return nil, err
			}
			return then(s, ctx, l)
		},
	}
}

// together is an Open that others may share.
type together struct {
	sync.Mutex

	under int
	s     registry.Session
}

// openTogether has Opens that are under way at once return one session.
func openTogether() flaw {
	return flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
		all := sharedBy(r.Registry, "together", func() *together { return new(together) })
		all.Lock()
		all.under++
		all.Unlock()
		<-time.After(10 * time.Millisecond)
		all.Lock()
		defer all.Unlock()
		all.under--
		var err error
		if all.s == nil {
			all.s, err = r.sound(ctx)
		}
		s := all.s
		if all.under == 0 {
			all.s = nil
		}
		return s, err
	}}
}

// lingers is a goroutine that ends long after what has started it.
func lingers() { go func() { <-time.After(brokenTime) }() }

// apartBreakages are sound with one session, one lock, one waiter or one failure, and not with the next.
var apartBreakages = []breakage{
	{"R8 R70", "after Registry.Close a read of a session says that it was closed", "Sessions/RegistryCloseEndsCalls",
		"Get of a session whose registry was closed",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			return nodes, onEnded(s, err, func() error { return registry.ErrClosed })
		}}},
	{"R70", "a Lock that waits goes on when its registry is closed",
		"Sessions/RegistryCloseEndsCalls", "a Lock that waited when the registry was closed",
		onLockFailure(func(s *flawed, ctx context.Context, err error) error {
			return onEnded(s, err, func() error { <-ctx.Done(); return ctx.Err() })
		})},
	{"R66 R70", "a Next that waits goes on when its registry is closed",
		"Sessions/RegistryCloseEndsCalls", "a Next that waited when the registry was closed",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			return events, onEnded(w.s, err, func() error { <-ctx.Done(); return ctx.Err() })
		}}},
	{"R103 R70", "a read that Registry.Close cuts short is unavailable", "Sessions/CallsInFlightAtRegistryClose",
		"Get, in flight when the registry was closed: error registry unavailable",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			return nodes, onEnded(s, err, func() error { return registry.ErrUnavailable })
		}}},
	{"R70", "a Registry.Close beside another returns at once",
		"Sessions/RegistryClosedByMany", "Registry.Close has returned, and Done of session",
		flaw{ends: func(r *flawedRegistry) error {
			if sharedBy(r.Registry, "closing", func() *atomic.Bool { return new(atomic.Bool) }).Swap(true) {
				return nil
			}
			<-time.After(flawedTimeout / 40)
			return r.Registry.Close()
		}}},
	{"R10", "an ephemeral create in flight at Close is sent again by who outlives the session",
		"Sessions/EphemeralInFlightAtEnd", " exists",
		comeBack(ownerClosed)},
	{"R10", "an ephemeral create in flight at the loss is sent again by who outlives the session",
		"Sessions/EphemeralInFlightAtEnd", " exists",
		comeBack(func(s *flawed) bool { return !ownerClosed(s) })},
	{"R10 R99", "what is made while Close is under way stays", "Sessions/EphemeralsRaceClose", "of the nodes that were on their way",
		flaw{close: func(s *flawed, ctx context.Context) error {
			s.remember("closing", true)
			<-time.After(10 * time.Millisecond)
			return s.Session.Close(ctx)
		}, commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if _, closing := remembered[bool](s, "closing"); closing && isEphemeral(ops[0]) {
				return s.Session.Commit(ctx, registry.Create(ops[0].Path, ops[0].Value))
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R9 R99", "an ephemeral node of unknown outcome outlives Close", "Uncertain/AnswerLostCreate", "/e exists",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			uncertainOwned(s, ops, err)
			return rev, err
		}, close: func(s *flawed, ctx context.Context) error {
			if path, some := remembered[string](s, "uncertain"); some {
				return closeThenMake(s, ctx, []string{path})
			}
			return s.Session.Close(ctx)
		}}},
	{"R49", "an ephemeral node of unknown outcome is nobody's",
		"Uncertain/AnswerLostCreate", "the ephemeral create to be applied",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			uncertainOwned(s, ops, err)
			return rev, err
		}, get: onNode(func(s *flawed, n *registry.Node) {
			path, _ := remembered[string](s, "uncertain")
			n.Owned = n.Owned && n.Path != path
		}).get}},
	{"R97", "Deadline is the zero time after Close", "Sessions/ErrTellsWithDone", "Deadline went back",
		flaw{deadline: func(s *flawed) time.Time {
			if ownerClosed(s) {
				return time.Time{}
			}
			return s.Session.Deadline()
		}}},
	{"R99", "Close of a session that the service has ended says that it does not know it",
		"Sessions/CloseAfterLossEndsAtService", "want nil, its nodes are gone",
		onClose(func(s *flawed, ctx context.Context) error {
			if s.Session.Err() != nil {
				return s.Session.Close(ctx)
			}
			_, unknown := s.Session.Get(ctx, "/")
			err := s.Session.Close(ctx)
			if errors.Is(unknown, registry.ErrSessionLost) && !ownerClosed(s) {
				return unknown
			}
			return err
		})},
	{"R13", "Done is late in an outage after a broken connection", "Sessions/DoneNotAfterDeadline", "Done is open",
		flaw{dropped: func(s *flawed) { s.remember("dropped", true) }, done: func(s *flawed) <-chan struct{} {
			return once(s, "done", func() chan struct{} {
				done := make(chan struct{})
				go func() {
					<-s.Session.Done()
					if _, before := remembered[bool](s, "dropped"); before {
						<-time.After(flawedTimeout * 3 / 4)
					}
					close(done)
				}()
				return done
			})
		}}},
	{"R86", "Opens that are under way at once have one session",
		"Sessions/IDsAreUnique", "opened beside others has the ID", openTogether()},
	{"R37", "a session takes over what another of its registry has made",
		"Sessions/OwnedFlag", `want "node exists" at operation 0`,
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			made := sharedBy(s.reg, "made", func() *sync.Map { return new(sync.Map) })
			rev, err := s.Session.Commit(ctx, ops...)
			if err == nil {
				for _, op := range ops {
					made.Store(op.Path, s.Session.ID())
				}
			}
			by, ours := made.Load(ops[0].Path)
			theirs := ours && by != s.Session.ID()
			if !errors.Is(err, registry.ErrExists) || len(ops) > 1 || !isEphemeral(ops[0]) || !theirs {
				return rev, err
			}
			_, _ = s.Session.Commit(ctx, registry.Delete(ops[0].Path, registry.AnyVersion))
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R14", "the tenth broken connection ends the session", "Sessions/DropReconnectSameSession", "was lost",
		flaw{dropped: func(s *flawed) {
			n, _ := remembered[int](s, "dropped")
			if s.remember("dropped", n+1); n == 9 {
				_ = s.Session.Close(context.Background())
			}
		}}},
	{"R16", "the Locks of a registry that wait end when a session of it is closed",
		"Sessions/SessionsAreApart", "while another holds it",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			all := sharedBy(s.reg, "waiting", func() *sync.Map { return new(sync.Map) })
			waiting, cancel := context.WithCancel(ctx)
			defer cancel()
			all.Store(&cancel, cancel)
			defer all.Delete(&cancel)
			return s.Session.Lock(waiting, dir, value)
		}, close: func(s *flawed, ctx context.Context) error {
			all := sharedBy(s.reg, "waiting", func() *sync.Map { return new(sync.Map) })
			err := s.Session.Close(ctx)
			all.Range(func(_, cancel any) bool { cancel.(context.CancelFunc)(); return true })
			return err
		}}},
	{"R100", "a goroutine for each Lock that was given up outlives the session",
		"Sessions/NoGoroutineLeak", "goroutines; there were",
		onLockFailure(func(_ *flawed, _ context.Context, err error) error { lingers(); return err })},
	{"R100", "a goroutine for each lock outlives a session that is lost",
		"Sessions/NoGoroutineLeak", "after the Close of sessions that were lost",
		afterLocking(func(s *flawed, _ context.Context, l registry.Lock) (registry.Lock, error) {
			go func() {
				if <-l.Lost(); endedSoon(s) && !ownerClosed(s) {
					lingers()
				}
			}()
			return l, nil
		})},
	{"R114", "a session keeps the locks that it had by TryLock", "Sessions/ClosedIsFreed", "20 of 40 locks",
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			keep(s.reg, l)
			return l, err
		}}},
	{"R114", "a session keeps the locks whose nodes others have deleted", "Sessions/ClosedIsFreed", "20 of 40 locks",
		afterLocking(func(s *flawed, _ context.Context, inner registry.Lock) (registry.Lock, error) {
			l := &flawedLock{Lock: inner}
			l.release = func(ctx context.Context) error {
				if isClosed(inner.Lost()) {
					keep(s.reg, l)
				}
				return inner.Release(ctx)
			}
			return l, nil
		})},
}
