package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
)

// toldOfEnd closes Lost by Release, and for another end only where told says so.
func toldOfEnd(told func(s *flawed, l registry.Lock) bool) flaw {
	return flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		inner, err := s.Session.Lock(ctx, dir, value)
		if err != nil {
			return nil, err
		}
		lost := make(chan struct{})
		end := sync.OnceFunc(func() { close(lost) })
		s.remember("latest", inner.Path())
		go func() {
			if <-inner.Lost(); told(s, inner) {
				end()
			}
		}()
		return &flawedLock{Lock: inner, lost: lost, release: func(ctx context.Context) error {
			defer end()
			return inner.Release(ctx)
		}}, nil
	}}
}

func isLatest(s *flawed, l registry.Lock) bool {
	latest, _ := remembered[string](s, "latest")
	return latest == l.Path()
}

// heldBy remembers the locks that a session has and had.
func heldBy(s *flawed, path string) registry.Lock {
	l, _ := remembered[registry.Lock](s, "lock "+path)
	return l
}

// judgedHere leaves out the guards of locks that a session believes to hold.
func judgedHere() flaw {
	f := afterLocking(func(s *flawed, _ context.Context, l registry.Lock) (registry.Lock, error) {
		s.remember("lock "+l.Path(), l)
		return l, nil
	})
	f.commit = func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		rest := slices.DeleteFunc(slices.Clone(ops), func(op registry.Op) bool {
			l := heldBy(s, op.Path)
			return op.Kind == registry.OpCheck && l != nil && !isClosed(l.Lost())
		})
		if len(rest) == 0 {
			rest = ops
		}
		return s.Session.Commit(ctx, rest...)
	}
	return f
}

// phantom has a waiter look at itself once, and at who is ahead before what it is told of itself.
func phantom() flaw {
	return queued(flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if ops[0].Kind == registry.OpCreateEphemeral {
				s.remember("own", ops[0].Path)
			}
			return s.Session.Commit(ctx, ops...)
		},
		next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			own, _ := remembered[string](w.s, "own")
			slices.SortStableFunc(events, func(a, b registry.Event) int {
				return boolToInt(a.Path == own) - boolToInt(b.Path == own)
			})
			return events, err
		},
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if err == nil {
				own := nodes[0]
				nodes[0] = once(s, "node "+own.Path, func() registry.Node { return own })
			}
			return nodes, err
		},
	})
}

// gaveUp counts the Locks of a session that were given up.
func gaveUp(s *flawed) *atomic.Int64 {
	return once(s, "gave up", func() *atomic.Int64 { return new(atomic.Int64) })
}

// movedByOthers makes the waiters of a session begin anew when another of its waiters gives up.
func movedByOthers() flaw {
	f := rejoinWhen(func(s *flawed) func() bool {
		before := gaveUp(s).Load()
		return func() bool { return gaveUp(s).Load() > before }
	})
	lock := f.lock
	f.lock = func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		l, err := lock(s, ctx, dir, value)
		if err != nil && ctx.Err() != nil {
			gaveUp(s).Add(1)
		}
		return l, err
	}
	return f
}

// siblings are the nodes by which the sessions of a registry have joined, and whose they are.
func siblings(s *flawed) *sync.Map {
	return sharedBy(s.reg, "siblings", func() *sync.Map { return new(sync.Map) })
}

// ofSibling says that a node is that of another session of the registry.
func ofSibling(s *flawed, path string) bool {
	by, ours := siblings(s).Load(path)
	return ours && by != s.Session
}

// amongSiblings queues up on a session that knows the nodes of its siblings.
func amongSiblings(below flaw) flaw {
	below.commit = func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		if isEphemeral(ops[0]) {
			siblings(s).Store(ops[0].Path, s.Session)
		}
		return s.Session.Commit(ctx, ops...)
	}
	return queued(below)
}

// heldUntilReleased has a session believe that it holds what it has not released.
func heldUntilReleased() flaw {
	return flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		if held, _ := remembered[bool](s, "held "+dir); held {
			return nil, registry.ErrHeld
		}
		return s.Session.TryLock(ctx, dir, value)
	}, lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		l, err := s.Session.Lock(ctx, dir, value)
		if err != nil {
			return nil, err
		}
		s.remember("held "+dir, true)
		return &flawedLock{Lock: l, release: func(ctx context.Context) error {
			s.remember("held "+dir, false)
			return l.Release(ctx)
		}}, nil
	}}
}

// lockApartBreakages are sound with one lock, one waiter or one unknown outcome, and not with the next.
var lockApartBreakages = []breakage{
	{"R108", "only the latest lock of a session is told of the loss",
		"Locks/LocksAreApart", "is open to the end of the case",
		toldOfEnd(func(s *flawed, l registry.Lock) bool { return isLatest(s, l) || !endedSoon(s) })},
	{"R109", "only the latest lock of a session is told of a deletion",
		"Locks/LocksAreApart", "is open to the end of the case",
		toldOfEnd(func(s *flawed, l registry.Lock) bool { return isLatest(s, l) || endedSoon(s) })},
	{"R88 R94", "a waiter that gives up takes those of its session to the end",
		"Locks/WaitersOfOneSession", "does not exist", movedByOthers()},
	{"R87 R92", "a waiter whose node goes with the holder's holds the lock",
		"Locks/DeletedTogether", "while another holds it", phantom()},
	{"R105", "a token is the Modified of the owner's node", "Locks/GuardAfterSet", "the owner's node is",
		afterLocking(func(s *flawed, ctx context.Context, l registry.Lock) (registry.Lock, error) {
			nodes, err := s.Session.Get(context.WithoutCancel(ctx), l.Path())
			if err != nil {
				return l, nil // the session has ended
			}
			return &flawedLock{Lock: l, token: nodes[0].Modified}, nil
		})},
	{"R106", "the guard of a lock is judged by what its holder knows",
		"Locks/GuardIsJudgedByTheService", "succeeded; want", judgedHere()},
	{"R107", "the guard of a lock does not pass in a store",
		"Locks/GuardPassesWhileHeld", "a store's commit with the Guard",
		onStores(storeFlaw{commit: func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			for i, op := range ops {
				if op.Kind == registry.OpCheck && strings.Contains(op.Path, "latch-") {
					return 0, &registry.CommitError{Index: i, Op: op, Err: registry.ErrNotFound}
				}
			}
			return s.StoreCloser.Commit(ctx, ops...)
		}})},
	{"R89", "who finds that another has made the directory gives up", "Locks/DirectoryMadeByMany", "node exists",
		queued(flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if ops[0].Kind == registry.OpCreate && errors.Is(err, registry.ErrExists) {
				err = errors.New("node exists: the directory") // EnsurePath would look again
			}
			return rev, err
		}})},
	{"R91 R93", "a Lock gives up when its second attempt is of unknown outcome too",
		"Locks/JoinThroughManyDrops", "outcome unknown again",
		onJoin(func(s *flawed, nr int, op registry.Op, commit func(registry.Op) (registry.Revision, error)) (registry.Revision, error) {
			rev, err := commit(op)
			if errors.Is(err, registry.ErrUncertain) && nr > 1 && s.Session.Err() == nil {
				err = errors.New("outcome unknown again")
			}
			return rev, err
		})},
	{"R94", "who gives up while it reads its node leaves the lock held",
		"Locks/GivenUpAtEachStep", "waited for: nothing to be left in the queues",
		afterLocking(func(s *flawed, ctx context.Context, l registry.Lock) (registry.Lock, error) {
			if _, err := s.Session.Get(ctx, l.Path()); err != nil {
				return nil, err
			}
			return l, nil
		})},
	{"R87", "sessions of one registry do not exclude each other", "Locks/SessionsOfOneRegistry", "want \"lock is held\"",
		amongSiblings(flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			return slices.DeleteFunc(names, func(name string) bool { return ofSibling(s, path+"/"+name) }), err
		}})},
	{"R87", "a waiter is not told that a session of its registry has left", "Locks/SessionsOfOneRegistry", "did not get the lock",
		amongSiblings(flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			return w.filter(ctx, func(e registry.Event) bool {
				return e.Synced || e.Node.Exists() || !ofSibling(w.s, e.Path)
			})
		}})},
	{"R42", "a session believes to hold what others have deleted until its Release", "Locks/LostOnDelete", "lock is held", heldUntilReleased()},
	{"R111", "Release where the directory is gone fails", "Locks/ReleaseOfDeleted", "whose directory somebody else has deleted",
		onRelease(func(s *flawed, l registry.Lock) func(context.Context) error {
			return func(ctx context.Context) error {
				_, missing := s.Session.Children(context.WithoutCancel(ctx), l.Path()[:strings.LastIndexByte(l.Path(), '/')])
				err := l.Release(ctx)
				if err == nil && errors.Is(missing, registry.ErrNotFound) {
					return missing
				}
				return err
			}
		})},
	{"R111", "a Release of unknown outcome is done", "Locks/UncertainJoin", "waited for: 0 nodes in the queue",
		flaw{try: queued(flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if ops[0].Kind == registry.OpDelete && errors.Is(err, registry.ErrUncertain) && s.Session.Err() == nil {
				return 1, nil
			}
			return rev, err
		}}).try}},
}
