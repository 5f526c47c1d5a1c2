package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// more adds events to each batch.
func more(add func(w *flawedWatcher, e registry.Event) []registry.Event) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		var all []registry.Event
		for _, e := range events {
			all = append(all, e)
			all = append(all, add(w, e)...)
		}
		return all, err
	}}
}

var followBreakages = []breakage{
	{"R54", "Children delivers the node itself", "Watch/OneLevelOnly", "not one level below",
		more(func(_ *flawedWatcher, e registry.Event) []registry.Event {
			if e.Synced && e.Scope == registry.Children {
				return []registry.Event{{Path: e.Path, Scope: e.Scope, Node: registry.Node{Path: e.Path, Created: 1, Modified: 1}}}
			}
			return nil
		})},
	{"R56", "changes are not coalesced", "Watch/SlowConsumerBoundedMemory", "they are not coalesced",
		more(func(_ *flawedWatcher, e registry.Event) []registry.Event {
			if e.Synced {
				return nil
			}
			all := make([]registry.Event, 50)
			for i := range all {
				all[i] = e
				all[i].Node.Modified += registry.Revision(i + 1)
			}
			return all
		})},
	{"R57", "after a broken connection everything is told again", "Watch/SurvivesDrop", "the state that was delivered before",
		more(func(w *flawedWatcher, e registry.Event) []registry.Event {
			if w.s.reg.Hits() > 0 && !e.Synced {
				return []registry.Event{e}
			}
			return nil
		})},
	{"R59", "an incarnation that is gone comes back", "Watch/DirectoryVanishesReturns", "was delivered as gone before",
		more(func(w *flawedWatcher, e registry.Event) []registry.Event {
			old := w.past[e.Node.Path]
			w.past[e.Node.Path] = e
			if !e.Synced && !e.Node.Exists() && old.Node.Exists() {
				return []registry.Event{old}
			}
			return nil
		})},
	{"R60", "the watchers of a session are one", "Watch/WatchersAreApart", "closed",
		flaw{watch: func(s *flawed, ctx context.Context) (registry.Watcher, error) {
			w, err := s.watcher(ctx)
			if shared, known := remembered[registry.Watcher](s, "shared"); known && err == nil {
				return endsWith{w, shared}, nil
			}
			s.remember("shared", w)
			return w, err
		}}},
	{"R61", "Add waits for the service", "Watch/CallsWhileCutOff", "it waits for the service",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			ctx, cancel := context.WithTimeout(context.Background(), flawedTimeout/2)
			defer cancel()
			_, _ = w.s.Session.Get(ctx, "/")
			return w.Watcher.Add(path, scope)
		}}},
	{"R63", "Remove does nothing", "Watch/RemoveStops", "",
		flaw{remove: func(*flawedWatcher, string, registry.Scope) {}}},
	{"R64", "a target that was removed stays silent when it is added again", "Watch/RemoveAddAgain", "waited for: Synced",
		flaw{remove: func(*flawedWatcher, string, registry.Scope) {}}},
	{"R65", "Next loses a watcher whose context ended", "Watch/EndsOnCtx", "closed",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				_ = w.Watcher.Close()
			}
			return events, err
		}}},
	{"R67", "Close of a watcher wakes nobody", "Watch/EndsOnClose", "waited for: Next to fail",
		flaw{closed: func(*flawedWatcher) error { return nil }}},
}

// endsWith is a watcher that closes another one too.
type endsWith struct {
	registry.Watcher
	other registry.Watcher
}

func (w endsWith) Close() error {
	_ = w.other.Close()
	return w.Watcher.Close()
}

// contenders are how many nodes a queue has.
func contenders(s *flawed, dir string) int {
	names, _ := s.Session.Children(context.Background(), dir)
	return len(names)
}

// giveUpWhen makes Lock fail once a condition holds while it waits.
func giveUpWhen(condition func(s *flawed, dir string) func() bool) flaw {
	return flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		var mu sync.Mutex
		look := condition(s, dir)
		holds := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return look()
		}
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
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
		}()
		l, err := s.Session.Lock(waiting, dir, value)
		if err == nil && holds() {
			_ = l.Release(ctx)
			return nil, registry.ErrUnavailable
		}
		if err != nil && ctx.Err() == nil && s.Session.Err() == nil {
			err = registry.ErrUnavailable
		}
		return l, err
	}}
}

var queueBreakages = []breakage{
	{"R42", "TryLock waits", "Locks/TryLock", "",
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			return s.Session.Lock(ctx, dir, value)
		}}},
	{"R42", "a TryLock that has seen the lock free waits for who was faster", "Locks/TryLockRace", `want "lock is held"`,
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			if names, err := s.Session.Children(ctx, dir); err == nil && len(names) > 0 {
				return nil, registry.ErrHeld
			}
			return s.Session.Lock(ctx, dir, value)
		}}},
	{"R94", "TryLock leaves its node behind when the lock is held", "Locks/TryLockThoroughly", "nodes in the queue",
		flaw{try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			if errors.Is(err, registry.ErrHeld) {
				name := dir + "/_c_left-latch-" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "")
				_, _ = s.Session.Commit(ctx, registry.CreateEphemeral(name, nil))
			}
			return l, err
		}}},
	{"R87", "a lock that is held is had all the same", "Locks/Exclusive", "both hold the lock",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.TryLock(ctx, dir, value)
			if errors.Is(err, registry.ErrHeld) {
				return &flawedLock{token: 1 << 40}, nil
			}
			return l, err
		}}},
	{"R88", "every other who had to wait goes to the end once more", "Locks/Fair", "next in line, did not get the lock",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			waits := contenders(s, dir) > 0
			l, err := s.Session.Lock(ctx, dir, value)
			if id := s.Session.ID(); err == nil && waits && id[len(id)-1]%2 == 0 && contenders(s, dir) > 2 {
				_ = l.Release(ctx)
				return s.Session.Lock(ctx, dir, value)
			}
			return l, err
		}}},
	{"R88", "all who wait look when one leaves", "Locks/NoHerd", "more than in as long without one",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			queue, err := s.Session.Watch(ctx)
			if err != nil {
				return nil, err
			}
			defer queue.Close()
			if err := queue.Add(dir, registry.Children); err != nil {
				return nil, err
			}
			return s.Session.Lock(ctx, dir, value)
		}}},
	{"R89", "the owner's node has no value", "Locks/MakesDirectory", "the owner's node is",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, _ []byte) (registry.Lock, error) {
			return s.Session.Lock(ctx, dir, nil)
		}}},
	{"R91", "a waiter gives up when its connection breaks", "Locks/WaitSurvivesDrop", "registry unavailable",
		giveUpWhen(func(s *flawed, _ string) func() bool {
			before := s.reg.Hits()
			return func() bool { return s.reg.Hits() > before }
		})},
	{"R92", "a waiter whose node is deleted gives up", "Locks/WaiterIsDeleted", "registry unavailable",
		giveUpWhen(func(s *flawed, dir string) func() bool {
			most := 0
			return func() bool {
				n := contenders(s, dir)
				most = max(most, n)
				return n < most
			}
		})},
	{"R107", "the guard names the version of the owner's node", "Locks/GuardAfterSet", "node has another version",
		onLock(func(_ *flawed, _ string, l *flawedLock) {
			first := registry.Check(l.Path(), 0)
			l.guard = &first
		})},
	{"R108", "a lock is never lost", "Locks/LostClosesOnExpire", "is open to the end of the case",
		onLock(func(_ *flawed, _ string, l *flawedLock) { l.lost = make(chan struct{}) })},
	{"R109", "a deletion while cut off is not noticed", "Locks/LostWhileCutOff", "is open to the end of the case",
		onLock(func(s *flawed, _ string, l *flawedLock) {
			lost := make(chan struct{})
			l.lost = lost
			go func() {
				<-l.Lock.Lost()
				if s.reg.Hits() == 0 {
					close(lost)
				}
			}()
		})},
	{"R111", "Release of what is gone fails", "Locks/ReleaseOfDeleted", "want nil, it is gone",
		onLock(func(s *flawed, _ string, l *flawedLock) {
			l.release = func(ctx context.Context) error {
				if nodes, err := s.Session.Get(ctx, l.Path()); err == nil && !nodes[0].Exists() {
					return registry.ErrNotFound
				}
				return l.Lock.Release(ctx)
			}
		})},
}
