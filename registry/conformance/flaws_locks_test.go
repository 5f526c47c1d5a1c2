package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

// acquire queues up as the memory adapter does, on the session with another flaw.
func acquire(ctx context.Context, s *flawed, dir string, value []byte, try bool, below flaw) (*flawedLock, error) {
	on := &flawed{Session: s.Session, reg: s.reg, flaw: &below, state: map[string]any{}}
	spawn := s.Session.(interface{ Spawn(f func(context.Context)) }).Spawn
	l, err := latch.Acquire(ctx, on, dir, value, try, spawn)
	if err != nil {
		return nil, err
	}
	joined, _ := remembered[registry.Revision](on, "joined")
	return &flawedLock{Lock: l, token: joined}, nil
}

// queued queues up on a session with another flaw.
func queued(below flaw) flaw {
	with := func(try bool) func(*flawed, context.Context, string, []byte) (registry.Lock, error) {
		return func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := acquire(ctx, s, dir, value, try, below)
			if err != nil {
				return nil, err
			}
			return l, nil
		}
	}
	return flaw{lock: with(false), try: with(true)}
}

// onJoin replaces the commits that make a contender's node; they are counted from 1.
func onJoin(join func(s *flawed, nr int, op registry.Op, commit func(registry.Op) (registry.Revision, error)) (registry.Revision, error)) flaw {
	return queued(flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		if ops[0].Kind != registry.OpCreateEphemeral {
			return s.Session.Commit(ctx, ops...)
		}
		nr, _ := remembered[int](s, "joins")
		s.remember("joins", nr+1)
		return join(s, nr+1, ops[0], func(op registry.Op) (registry.Revision, error) { return s.Session.Commit(ctx, op) })
	}})
}

// otherValue gives the owner's node another value.
func otherValue(change func(s *flawed, value []byte) []byte) flaw {
	return flaw{
		lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			return s.Session.Lock(ctx, dir, change(s, value))
		},
		try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			return s.Session.TryLock(ctx, dir, change(s, value))
		},
	}
}

// rejoinWhen makes a waiter begin anew whenever a condition holds.
func rejoinWhen(condition func(s *flawed) func() bool) flaw {
	return flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		for {
			waiting, cancel := context.WithCancel(ctx)
			var watch sync.WaitGroup
			holds := condition(s)
			watch.Go(func() {
				for tick := time.Tick(time.Millisecond); ; {
					select {
					case <-waiting.Done():
						return
					case <-tick:
						if holds() {
							cancel()
						}
					}
				}
			})
			l, err := s.Session.Lock(waiting, dir, value)
			cancel()
			watch.Wait()
			if err == nil || ctx.Err() != nil || s.Session.Err() != nil {
				return l, err
			}
		}
	}}
}

// ownAgain takes what is made again at the path of the contender's node for that node.
func ownAgain() flaw {
	return queued(flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		return w.filter(ctx, func(e registry.Event) bool { return !e.Node.Exists() || e.Node.Owned })
	}})
}

var latchBreakages = []breakage{
	{"R88", "who has changed last is last in the queue", "Locks/GuardAfterSet", "while another holds it",
		queued(onNode(func(_ *flawed, n *registry.Node) {
			if !n.Owned {
				n.Created = n.Modified
			}
		}))},
	{"R87", "whatever is in the directory holds the lock", "Locks/OtherChildren", "lock is held",
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			if contenders(s, dir) > 0 {
				return nil, registry.ErrHeld
			}
			return s.Session.TryLock(ctx, dir, value)
		}}},
	{"R105", "a waiter that takes a new place keeps its first token", "Locks/WaiterIsDeleted", "the owner's node is",
		onJoin(func(s *flawed, nr int, op registry.Op, commit func(registry.Op) (registry.Revision, error)) (registry.Revision, error) {
			rev, err := commit(op)
			if nr == 1 {
				s.remember("joined", rev)
			}
			return rev, err
		})},
	{"R89", "a waiter that takes a new place has no value any more", "Locks/WaiterIsDeleted", "the owner's node is",
		onJoin(func(_ *flawed, nr int, op registry.Op, commit func(registry.Op) (registry.Revision, error)) (registry.Revision, error) {
			if nr > 1 {
				op.Value = nil
			}
			return commit(op)
		})},
	{"R89 R1", "a directory that vanishes twice is given up", "Locks/DirectoryVanishes", "Lock of session",
		onJoin(func(s *flawed, _ int, op registry.Op, commit func(registry.Op) (registry.Revision, error)) (registry.Revision, error) {
			rev, err := commit(op)
			if _, before := remembered[bool](s, "vanished"); before && errors.Is(err, registry.ErrNoParent) {
				return rev, errors.New("the directory has vanished again")
			}
			if errors.Is(err, registry.ErrNoParent) {
				s.remember("vanished", true)
			}
			return rev, err
		})},
	{"R89", "an empty value becomes the session's ID", "Locks/MakesDirectory", "the owner's node is",
		otherValue(func(s *flawed, value []byte) []byte {
			if len(value) == 0 {
				return []byte(s.Session.ID())
			}
			return value
		})},
	{"R89", "a value is cut at 1 KiB", "Locks/MakesDirectory", "of 1024 bytes",
		otherValue(func(_ *flawed, value []byte) []byte { return value[:min(len(value), 1024)] })},
	{"R91", "a waiter joins anew when it was cut off for half of its session's time", "Locks/WaitSurvivesDrop", "children of",
		rejoinWhen(func(s *flawed) func() bool {
			long := false
			return func() bool {
				left := time.Until(s.Session.Deadline())
				long = long || left < flawedTimeout/2
				return long && left > flawedTimeout/2
			}
		})},
	{"R91", "a waiter joins anew after a restart of the service", "Locks/TokenIncreasesOverRestart", "children of",
		rejoinWhen(func(s *flawed) func() bool {
			before := s.reg.Hits()
			return func() bool { return s.reg.Hits() > before }
		})},
	{"R92", "a waiter holds what was made again at its path for its own node", "Locks/ReleaseSparesOthers", "3 nodes in the queue", ownAgain()},
	{"R109", "a holder holds what was made again at its path for its own node", "Locks/LostWhileCutOff", "is open to the end of the case", ownAgain()},
	{"R94", "nobody looks for a join that is applied late", "Uncertain/LateJoinLeavesNoNode", "nodes in the queue",
		queued(flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if ops[0].Kind != registry.OpDelete {
				return s.Session.Commit(ctx, ops...)
			}
			if _, twice := remembered[bool](s, ops[0].Path); twice {
				return 0, registry.ErrNotFound
			}
			s.remember(ops[0].Path, true)
			return s.Session.Commit(ctx, ops...)
		}})},
	{"R94", "a waiter that gives up is removed once, refused or not", "Locks/ReleaseDenied", "0 nodes in the queue",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			if contenders(s, dir) == 0 {
				return s.Session.Lock(ctx, dir, value)
			}
			return acquire(ctx, s, dir, value, false, flaw{
				commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
					rev, err := s.Session.Commit(ctx, ops...)
					if errors.Is(err, registry.ErrDenied) && ops[0].Kind == registry.OpDelete {
						err = registry.ErrNotFound
					}
					return rev, err
				},
			})
		}}},
	{"R32", "a lock that was waited for ends with the context of its Lock", "Sessions/ContextsEndAfterReturn", "was lost",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			waits := contenders(s, dir) > 0
			l, err := s.Session.Lock(ctx, dir, value)
			if err == nil && waits {
				tied(ctx, func() { _ = l.Release(context.Background()) })
			}
			return l, err
		}}},
}

// onRelease replaces the Release of each lock, had by Lock or TryLock.
func onRelease(release func(s *flawed, l registry.Lock) func(ctx context.Context) error) flaw {
	change := func(s *flawed, l registry.Lock, err error) (registry.Lock, error) {
		if err != nil {
			return nil, err
		}
		return &flawedLock{Lock: l, release: release(s, l)}, nil
	}
	return flaw{
		lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.Lock(ctx, dir, value)
			return change(s, l, err)
		},
		try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			return change(s, l, err)
		},
	}
}

// released changes what Release returns, which knows how the session was before.
func released(change func(before, err error) error) flaw {
	return onRelease(func(s *flawed, l registry.Lock) func(context.Context) error {
		return func(ctx context.Context) error {
			before := s.Session.Err()
			return change(before, l.Release(ctx))
		}
	})
}

var releaseBreakages = []breakage{
	{"R8", "Release on a lost session is nil", "Locks/ReleaseOnLostSession", "error <nil>",
		released(func(before, err error) error {
			if before != nil {
				return nil
			}
			return err
		})},
	{"R110", "Release of what was released fails once the session is lost", "Locks/ReleaseOnLostSession", "Release of",
		released(func(before, err error) error {
			if before != nil {
				return before
			}
			return err
		})},
	{"R103", "a Release that Close cuts short is nil", "Sessions/CloseRacesCalls", "Release, in flight when Close was called: error <nil>",
		released(func(before, err error) error {
			if before == nil && errors.Is(err, registry.ErrSessionLost) {
				return nil
			}
			return err
		})},
	{"R111 R41", "what is denied is released", "Locks/ReleaseDenied", "error <nil>",
		released(func(_, err error) error {
			if errors.Is(err, registry.ErrDenied) {
				return nil
			}
			return err
		})},
	{"R111", "a Release that is denied once is denied for ever", "Locks/ReleaseDenied", "permission denied",
		onRelease(func(_ *flawed, l registry.Lock) func(context.Context) error {
			var denied atomic.Bool
			return func(ctx context.Context) error {
				if denied.Load() {
					return registry.ErrDenied
				}
				err := l.Release(ctx)
				denied.Store(errors.Is(err, registry.ErrDenied))
				return err
			}
		})},
	{"R111", "a second Release is nil while the first is under way", "Locks/ReleaseWithEndedContext", "a second Release returned nil",
		onRelease(func(_ *flawed, l registry.Lock) func(context.Context) error {
			var called atomic.Bool
			return func(ctx context.Context) error {
				if called.Swap(true) {
					return nil
				}
				return l.Release(ctx)
			}
		})},
	{"R110", "Release deletes whatever is at its path", "Locks/ReleaseSparesOthers", "the node changed",
		onRelease(func(s *flawed, l registry.Lock) func(context.Context) error {
			return func(ctx context.Context) error {
				_, _ = s.Session.Commit(ctx, registry.Delete(l.Path(), registry.AnyVersion))
				return l.Release(ctx)
			}
		})},
	{"R110", "what comes at the path of a released lock is deleted", "Locks/ReleaseSparesOthers", "the node changed",
		onRelease(func(s *flawed, l registry.Lock) func(context.Context) error {
			return func(ctx context.Context) error {
				err := l.Release(ctx)
				w, failed := s.Session.Watch(context.Background())
				if err != nil || failed != nil || w.Add(l.Path(), registry.Self) != nil {
					return err
				}
				go func() {
					for failed == nil {
						var events []registry.Event
						events, failed = w.Next(context.Background())
						for _, e := range events {
							if e.Node.Exists() {
								_, _ = s.Session.Commit(context.Background(), registry.Delete(l.Path(), registry.AnyVersion))
							}
						}
					}
				}()
				return nil
			}
		})},
}
