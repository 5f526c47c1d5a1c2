package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// onLockFailure calls change for every failure of Lock.
func onLockFailure(change func(s *flawed, ctx context.Context, err error) error) flaw {
	return flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		l, err := s.Session.Lock(ctx, dir, value)
		if err != nil {
			err = change(s, ctx, err)
		}
		return l, err
	}}
}

// cancelledPlain is the context's error alone when that was cancelled.
func cancelledPlain(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return err
}

// impatient calls with a context of its own.
func impatient[T any](ctx context.Context, patience time.Duration, call func(context.Context) (T, error)) (T, error) {
	brief, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	is, err := call(brief)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		err = registry.ErrUnavailable
	}
	return is, err
}

// endBreakages are wrong about what ends a call that is under way.
var endBreakages = []breakage{
	{"R19", "a commit that is cancelled on the way says only that", "Uncertain/CutOffCommit", "context canceled; want ErrUncertain",
		onCommitFailure(func(_ *flawed, ctx context.Context, _ []registry.Op, err error) error {
			return cancelledPlain(ctx, err)
		})},
	{"R82", "a commit in flight at Close is called lost", "Uncertain/CommitInFlightAtClose", "closed by its owner; want ErrUncertain",
		onCommitFailure(func(s *flawed, _ context.Context, _ []registry.Op, err error) error {
			if errors.Is(err, registry.ErrUncertain) && s.Session.Err() != nil {
				return s.Session.Err()
			}
			return err
		})},
	{"R8", "a commit that is called after the loss is uncertain", "Sessions/ErrorEveryMethod", "want ErrSessionLost alone",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if err := s.Session.Err(); err != nil {
				return 0, errors.Join(registry.ErrUncertain, err)
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R69", "Open that is cancelled says only that", "Sessions/OpenWaitsThenUnavailable", `context canceled; want "registry unavailable"`,
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			s, err := r.sound(ctx)
			return s, cancelledPlain(ctx, err)
		}}},
	{"R69", "Open gives up when it has waited longer than the session's timeout", "Sessions/OpenThroughSlowAnswers", "its context goes on",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			return impatient(ctx, flawedTimeout*5/4, r.sound)
		}}},
	{"R69", "Open returns a session that was lost on the way", "Sessions/OpenThroughSlowAnswers", "returned a session",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			s, err := impatient(ctx, flawedTimeout*5/4, r.sound)
			if err == nil || ctx.Err() != nil {
				return s, err
			}
			other := r.h.srv.Registry("flawed")
			defer other.Close()
			return other.Open(ctx)
		}}},
	{"R69", "Open says of a session that was lost on the way that it was", "Sessions/OpenThroughSlowAnswers", "want no ErrSessionLost",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			began := time.Now()
			s, err := r.sound(ctx)
			if err != nil && time.Since(began) > flawedTimeout {
				err = errors.Join(err, registry.ErrSessionLost)
			}
			return s, err
		}}},
	{"R93", "Lock that is cancelled says only that", "Locks/CutOffLock", `context canceled; want "registry unavailable" as well`,
		onLockFailure(func(_ *flawed, ctx context.Context, err error) error { return cancelledPlain(ctx, err) })},
	{"R93", "a waiter that gives up says that the service is away", "Locks/CancelWhileWaitingLeavesNoNode", "the service could be reached",
		onLockFailure(func(_ *flawed, ctx context.Context, err error) error {
			if ctx.Err() != nil {
				return errors.Join(registry.ErrUnavailable, err)
			}
			return err
		})},
	{"R93", "Lock gives up after 700 ms", "Locks/CutOffLock", "Lock, called while the service could not be reached for",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			return impatient(ctx, 700*time.Millisecond, func(ctx context.Context) (registry.Lock, error) {
				return s.Session.Lock(ctx, dir, value)
			})
		}}},
	{"R74", "a read gives up after 700 ms", "Uncertain/ReadsAreRetried", "Get, called while the service could not be reached for",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			return impatient(ctx, 700*time.Millisecond, func(ctx context.Context) ([]registry.Node, error) {
				return s.Session.Get(ctx, paths...)
			})
		}}},
	{"R35", "a read that a loss cuts short is unavailable as well", "Sessions/CallsInFlightAtLoss", "want ErrSessionLost alone",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if errors.Is(err, registry.ErrSessionLost) {
				err = errors.Join(registry.ErrUnavailable, err)
			}
			return nodes, err
		}}},
	{"R8", "Lock whose session is lost says that the service is away", "Sessions/CallsInFlightAtLoss", "error registry unavailable; want ErrSessionLost",
		onLockFailure(func(s *flawed, _ context.Context, err error) error {
			if s.Session.Err() != nil {
				return registry.ErrUnavailable
			}
			return err
		})},
	{"R103", "a Sync that Close cuts short has succeeded", "Sessions/CloseRacesCalls", "Sync, in flight when Close was called: error <nil>",
		flaw{sync: func(s *flawed, ctx context.Context) error {
			if err := s.Session.Sync(ctx); !errors.Is(err, registry.ErrSessionLost) {
				return err
			}
			return nil
		}}},
	{"R65", "Next drops what comes when its context ends", "Watch/NextGivesUp", "waited for: value 0 to arrive everywhere",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return events, err
		}}},
	{"R64", "a target that was refused cannot be added again", "Sessions/Denied", "Next after",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if _, known := remembered[bool](w.s, "target "+path); known {
				return nil
			}
			w.s.remember("target "+path, true)
			return w.Watcher.Add(path, scope)
		}}},
	{"R41", "who adds a target that is denied already is not told", "Sessions/Denied", "Next after Add",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			for {
				events, err := w.Watcher.Next(ctx)
				if errors.Is(err, registry.ErrDenied) {
					if _, before := w.notes.LoadOrStore("denied", true); before {
						continue
					}
				}
				return events, err
			}
		}}},
	{"R8", "Add of what is watched succeeds after the loss", "Sessions/ErrorEveryMethod", "Watcher.Add of what it watches on a lost session",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			err := w.Watcher.Add(path, scope)
			if _, known := remembered[bool](w.s, "target "+path+scope.String()); known && errors.Is(err, registry.ErrSessionLost) {
				return nil
			}
			w.s.remember("target "+path+scope.String(), true)
			return err
		}}},
	{"R67", "Close of a watcher wakes nobody while cut off", "Watch/CallsWhileCutOff", `want "closed"`,
		flaw{closed: func(w *flawedWatcher) error {
			if w.s.reg.Hits() > 0 {
				return nil
			}
			return w.Watcher.Close()
		}}},
}

// A storeFlaw is what is wrong with the stores of a registry. A nil hook leaves it sound.
type storeFlaw struct {
	get      func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error)
	children func(s *flawedStore, ctx context.Context, path string) ([]string, error)
	commit   func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error)
	sync     func(s *flawedStore, ctx context.Context) error
	watch    func(s *flawedStore, ctx context.Context) (registry.Watcher, error)
	close    func(s *flawedStore, ctx context.Context) error
}

// flawedStore is a store of the memory adapter with a flaw.
type flawedStore struct {
	registry.StoreCloser

	reg    *memory.Registry
	flaw   storeFlaw
	opened context.Context // of OpenStore
	mu     sync.Mutex
	kept   map[string]keptRead
}

type keptRead struct {
	at    time.Time
	nodes []registry.Node
}

func onStores(f storeFlaw) flaw {
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		st, err := r.Registry.OpenStore(ctx)
		if err != nil {
			return nil, err
		}
		return &flawedStore{StoreCloser: st, reg: r.Registry, flaw: f, opened: ctx, kept: map[string]keptRead{}}, nil
	}}
}

func (s *flawedStore) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if s.flaw.get != nil {
		return s.flaw.get(s, ctx, paths)
	}
	return s.StoreCloser.Get(ctx, paths...)
}

func (s *flawedStore) Children(ctx context.Context, path string) ([]string, error) {
	if s.flaw.children != nil {
		return s.flaw.children(s, ctx, path)
	}
	return s.StoreCloser.Children(ctx, path)
}

func (s *flawedStore) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if s.flaw.commit != nil {
		return s.flaw.commit(s, ctx, ops)
	}
	return s.StoreCloser.Commit(ctx, ops...)
}

func (s *flawedStore) Sync(ctx context.Context) error {
	if s.flaw.sync != nil {
		return s.flaw.sync(s, ctx)
	}
	return s.StoreCloser.Sync(ctx)
}

func (s *flawedStore) Watch(ctx context.Context) (registry.Watcher, error) {
	if s.flaw.watch != nil {
		return s.flaw.watch(s, ctx)
	}
	return s.StoreCloser.Watch(ctx)
}

func (s *flawedStore) Close(ctx context.Context) error {
	if s.flaw.close != nil {
		return s.flaw.close(s, ctx)
	}
	return s.StoreCloser.Close(ctx)
}

// tiedWatch ends a store's watchers with a context.
func tiedWatch(to func(s *flawedStore, ctx context.Context) context.Context) flaw {
	return onStores(storeFlaw{watch: func(s *flawedStore, ctx context.Context) (registry.Watcher, error) {
		w, err := s.StoreCloser.Watch(ctx)
		if err == nil {
			tied(to(s, ctx), func() { _ = w.Close() })
		}
		return w, err
	}})
}

// deafAfterFaults is a watcher that says nothing more once a fault has hit.
type deafAfterFaults struct {
	registry.Watcher
	reg *memory.Registry
}

func (w deafAfterFaults) Next(ctx context.Context) ([]registry.Event, error) {
	if w.reg.Hits() == 0 {
		if events, err := w.Watcher.Next(ctx); w.reg.Hits() == 0 {
			return events, err
		}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

var storeBreakages = []breakage{
	{"R19", "a commit of a store in flight at Close is called refused", "Uncertain/CommitInFlightAtClose", "closed; want ErrUncertain",
		onStores(storeFlaw{commit: func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.StoreCloser.Commit(ctx, ops...)
			if errors.Is(err, registry.ErrUncertain) && ctx.Err() == nil {
				err = registry.ErrClosed
			}
			return rev, err
		}})},
	{"R33", "Sync of a store does not look at its context", "Sessions/EndedContextEveryMethod", "a store's Sync with an ended context",
		onStores(storeFlaw{sync: func(s *flawedStore, _ context.Context) error { return s.StoreCloser.Sync(context.Background()) }})},
	{"R32", "the watchers of a store end with the context of OpenStore", "Sessions/ContextsEndAfterReturn", "closed",
		tiedWatch(func(s *flawedStore, _ context.Context) context.Context { return s.opened })},
	{"R32", "a watcher of a store ends with the context of its Watch", "Sessions/ContextsEndAfterReturn", "closed",
		tiedWatch(func(_ *flawedStore, ctx context.Context) context.Context { return ctx })},
	{"R41", "a store asks again for what is denied", "Sessions/Denied", "Get of a store of what is denied: error registry unavailable",
		onStores(storeFlaw{get: func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error) {
			for {
				nodes, err := s.StoreCloser.Get(ctx, paths...)
				if ctx.Err() != nil {
					err = errors.Join(registry.ErrUnavailable, ctx.Err())
				}
				if ctx.Err() != nil || !errors.Is(err, registry.ErrDenied) {
					return nodes, err
				}
				<-time.After(10 * time.Millisecond)
			}
		}})},
	{"R24", "what a store has read is as old as 300 ms, after Sync too", "Stores/SyncSeesOthers", "after Sync a store reads",
		onStores(storeFlaw{get: func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error) {
			s.mu.Lock()
			old := s.kept[paths[0]]
			s.mu.Unlock()
			if time.Since(old.at) < 300*time.Millisecond {
				return old.nodes, nil
			}
			nodes, err := s.StoreCloser.Get(ctx, paths...)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept[paths[0]] = keptRead{time.Now(), nodes}
			return nodes, err
		}})},
	{"R26 R73", "a store's watcher is silent after an outage", "Stores/OutlivesOutage", "neither delivers what changed in an outage, nor ends",
		onStores(storeFlaw{watch: func(s *flawedStore, ctx context.Context) (registry.Watcher, error) {
			w, err := s.StoreCloser.Watch(ctx)
			return deafAfterFaults{w, s.reg}, err
		}})},
	{"R75", "the calls of a store wait for one another", "Stores/OutlivesOutage", "Get of a store took",
		onStores(storeFlaw{get: func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.StoreCloser.Get(ctx, paths...)
		}})},
	{"R102", "Close of a store waits for a call that is under way", "Stores/OutlivesOutage", "Close of a store took",
		onStores(storeFlaw{get: func(s *flawedStore, ctx context.Context, paths []string) ([]registry.Node, error) {
			if deadlineOf(ctx).Before(time.Now().Add(flawedTimeout)) {
				return s.StoreCloser.Get(ctx, paths...)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.StoreCloser.Get(ctx, paths...)
		}, close: func(s *flawedStore, ctx context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.StoreCloser.Close(ctx)
		}})},
	{"R102", "a Close of a store waits for the one before it", "Stores/OutlivesOutage", "Close beside another one of a store took",
		onStores(storeFlaw{close: func(s *flawedStore, ctx context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			err := s.StoreCloser.Close(ctx)
			if s.reg.Hits() > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(flawedTimeout):
				}
			}
			return err
		}})},
}
