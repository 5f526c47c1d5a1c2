package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// cutOff says whether the service cannot be reached now.
func (s *flawed) cutOff() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Session.Get(ctx, "/")
	return err != nil
}

// empty says whether a target has no node now.
func (s *flawed) empty(g target) bool {
	if g.scope == registry.Children {
		names, _ := s.Session.Children(context.Background(), g.path)
		return len(names) == 0
	}
	nodes, err := s.Session.Get(context.Background(), g.path)
	return err == nil && !nodes[0].Exists()
}

func (w *flawedWatcher) noted(key any) bool {
	_, known := w.notes.Load(key)
	return known
}

// inFront calls before for each batch, and delivers what it returns in front of the batch.
func inFront(before func(w *flawedWatcher, events []registry.Event) []registry.Event) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		return append(before(w, events), events...), err
	}}
}

// again tells, with the first events after a fault has hit, something of each path again.
func again(tell func(last, before registry.Event) []registry.Event) flaw {
	type history struct{ last, before registry.Event }
	return inFront(func(w *flawedWatcher, events []registry.Event) (stale []registry.Event) {
		known, _ := w.notes.LoadOrStore("histories", map[string]history{})
		histories := known.(map[string]history)
		hits := w.s.reg.Hits()
		if old, seen := w.notes.Swap("hits", hits); seen && old != hits {
			for _, h := range histories {
				stale = append(stale, tell(h.last, h.before)...)
			}
		}
		for _, e := range events {
			if key := fmt.Sprint(e.Path, e.Scope, e.Node.Path); !e.Synced {
				histories[key] = history{e, histories[key].last}
			}
		}
		return stale
	})
}

// onRemove replaces Remove, and notes what was added.
func onRemove(remove func(w *flawedWatcher, g target)) flaw {
	return flaw{remove: func(w *flawedWatcher, path string, scope registry.Scope) { remove(w, target{path, scope}) },
		add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			w.notes.Store(target{path, scope}, true)
			return w.Watcher.Add(path, scope)
		}}
}

// onLoss keeps a Next waiting that should fail with the loss of its session.
func onLoss(silent func(w *flawedWatcher, lostBefore bool) bool) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		lostBefore := w.s.Session.Err() != nil
		events, err := w.Watcher.Next(ctx)
		if errors.Is(err, registry.ErrSessionLost) && silent(w, lostBefore) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return events, err
	}, add: func(w *flawedWatcher, path string, scope registry.Scope) error {
		w.notes.Store("added", true)
		return w.Watcher.Add(path, scope)
	}}
}

var watchApartBreakages = []breakage{
	{"R26", "what looks as it did is no news", "Watch/LooksTheSame", "the state of revision",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			key := fmt.Sprint(e.Path, e.Scope, e.Node.Path)
			old := w.past[key].Node
			if !e.Synced {
				w.past[key] = e
			}
			same := old.Exists() && e.Node.Exists() && old.Version == e.Node.Version && string(old.Value) == string(e.Node.Value)
			return e.Synced || !same
		})},
	{"R26", "Set to nothing leaves the value in the event", "Watch/SeesSet", "the event holds",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			for i, e := range events {
				key := fmt.Sprint(e.Path, e.Scope, e.Node.Path)
				if old := w.past[key].Node; len(e.Node.Value) == 0 && old.Created == e.Node.Created {
					events[i].Node.Value = old.Value
				}
				w.past[key] = events[i]
			}
			return events, err
		}}},
	{"R26", "Remove drops what waits at other targets", "Watch/RemoveIsOfOneTarget", "the state of revision",
		flaw{remove: func(w *flawedWatcher, path string, scope registry.Scope) {
			w.Watcher.Remove(path, scope)
			w.notes.Store("removed", true)
		}, next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			if _, removed := w.notes.LoadAndDelete("removed"); removed && err == nil {
				return w.Watcher.Next(ctx)
			}
			return events, err
		}}},
	{"R63", "Remove ends both scopes of a path", "Watch/RemoveIsOfOneTarget", "the state of revision",
		onRemove(func(w *flawedWatcher, g target) {
			w.Watcher.Remove(g.path, registry.Self)
			w.Watcher.Remove(g.path, registry.Children)
		})},
	{"R63", "Remove of what was not added ends the other scope", "Watch/RemoveIsOfOneTarget", "the state of revision",
		onRemove(func(w *flawedWatcher, g target) {
			if !w.noted(g) {
				g.scope = registry.Children - g.scope
			}
			w.Watcher.Remove(g.path, g.scope)
		})},
	{"R55 R63", "Remove leaves a Synced behind that waits", "Watch/RemoveDropsSynced", "Synced number 2",
		flaw{remove: func(w *flawedWatcher, path string, scope registry.Scope) {
			w.Watcher.Remove(path, scope)
			w.notes.Store(target{path, scope}, true)
		}, next: inFront(func(w *flawedWatcher, _ []registry.Event) (left []registry.Event) {
			w.notes.Range(func(key, _ any) bool {
				g := key.(target)
				left = append(left, registry.Event{Path: g.path, Scope: g.scope, Synced: true})
				return true
			})
			w.notes.Clear()
			return left
		}).next}},
	{"R55 R62", "a target without a node that is added again has Synced again", "Watch/AddTwiceIsOne", "Synced number 2",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			g := target{path, scope}
			if _, twice := w.notes.LoadOrStore(g, true); twice && w.s.empty(g) {
				w.Watcher.Remove(path, scope)
			}
			return w.Watcher.Add(path, scope)
		}}},
	{"R6", "targets that differ in capitals are one", "Nodes/NamesAndValuesByteForByte", "the targets of",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if _, known := w.notes.LoadOrStore(target{strings.ToLower(path), scope}, true); known {
				return nil
			}
			return w.Watcher.Add(path, scope)
		}}},
	{"R22", "the first state is the one before the session's own Set", "Watch/InitialHasOwnWrites", "its session had committed set",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if nodes, err := s.Session.Get(ctx, ops[0].Path); err == nil && ops[0].Kind == registry.OpSet {
				s.remember("before "+ops[0].Path, nodes[0])
			}
			return s.Session.Commit(ctx, ops...)
		}, next: inFront(func(w *flawedWatcher, events []registry.Event) (old []registry.Event) {
			for _, e := range events {
				before, known := remembered[registry.Node](w.s, "before "+e.Node.Path)
				if _, told := w.notes.LoadOrStore(e.Node.Path, true); known && !told && e.Node.Version > 0 {
					old = append(old, registry.Event{Path: e.Path, Scope: e.Scope, Node: before})
				}
			}
			return old
		}).next}},
	{"R31", "Next returns one slice again and again", "Watch/EventsBelongToTheCaller", "the slice holds",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			known, _ := w.notes.LoadOrStore("slice", []registry.Event(nil))
			events = append(known.([]registry.Event)[:0], events...)
			w.notes.Store("slice", events)
			return events, err
		}}},
	{"R41", "a watcher that was denied a target takes no other", "Sessions/Denied", "Next after",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			if errors.Is(err, registry.ErrDenied) {
				w.notes.Store("denied", true)
			}
			return events, err
		}, add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if w.noted("denied") {
				return nil
			}
			return w.Watcher.Add(path, scope)
		}}},
}

var watchOutageBreakages = []breakage{
	{"R61", "Remove waits for the service", "Watch/CallsWhileCutOff", "it waits for the service",
		onRemove(func(w *flawedWatcher, g target) {
			ctx, cancel := context.WithTimeout(context.Background(), flawedTimeout/2)
			defer cancel()
			_, _ = w.s.Session.Get(ctx, "/")
			w.Watcher.Remove(g.path, g.scope)
		})},
	{"R63", "Remove while cut off does nothing", "Watch/RemoveAddWhileCutOff", "which is not watched",
		onRemove(func(w *flawedWatcher, g target) {
			if !w.s.cutOff() {
				w.Watcher.Remove(g.path, g.scope)
			}
		})},
	{"R61 R64", "a target that is removed and added while cut off stays silent", "Watch/RemoveAddWhileCutOff", "waited for: Synced",
		flaw{remove: func(w *flawedWatcher, path string, scope registry.Scope) {
			if w.s.cutOff() {
				w.notes.Store(target{path, scope}, true)
			}
			w.Watcher.Remove(path, scope)
		}, add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if w.noted(target{path, scope}) {
				return nil
			}
			return w.Watcher.Add(path, scope)
		}}},
	{"R67", "Close of a watcher that is cut off wakes nobody", "Watch/EndsWhileCutOff", "session lost",
		flaw{closed: func(w *flawedWatcher) error {
			if w.s.Session.Err() == nil && w.s.cutOff() {
				return nil
			}
			return w.Watcher.Close()
		}}},
	{"R66", "a watch that is cut off stays silent when its session is lost", "Watch/EndsWhileCutOff", "Next still waits",
		onLoss(func(w *flawedWatcher, _ bool) bool { return w.s.reg.Hits() > 0 })},
	{"R66", "a Next that waits without targets is not woken by the loss", "Watch/EndsOnSessionLoss", "Next still waits",
		onLoss(func(w *flawedWatcher, lostBefore bool) bool { return !lostBefore && !w.noted("added") })},
	{"R58", "children that are deleted after a broken connection stay", "Watch/ChangesDuringOutagesSeen", "to come to what a read gives",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			return e.Synced || e.Node.Exists() || e.Scope == registry.Self || w.s.reg.Hits() == 0
		})},
	{"R26", "a node that is watched by itself stays as it was when its connection broke", "Watch/ChangesDuringOutagesSeen", "to come to what a read gives",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			return e.Synced || e.Scope == registry.Children || w.s.reg.Hits() == 0
		})},
	{"R59", "after a broken connection what was gone comes, and goes again", "Watch/NothingAgainAfterOutages", "was delivered as gone before",
		again(func(last, before registry.Event) []registry.Event {
			if !last.Node.Exists() && before.Node.Exists() {
				return []registry.Event{before, last}
			}
			return nil
		})},
	{"R57", "after a broken connection absence is told again", "Watch/NothingAgainAfterOutages", "the state that was delivered before",
		again(func(last, _ registry.Event) []registry.Event {
			if !last.Node.Exists() {
				return []registry.Event{last}
			}
			return nil
		})},
	{"R25", "after a broken connection the state before the last comes, and the last", "Watch/NothingAgainAfterOutages", "back in time",
		again(func(last, before registry.Event) []registry.Event {
			if last.Node.Exists() && before.Node.Created == last.Node.Created {
				return []registry.Event{before, last}
			}
			return nil
		})},
	{"R26", "the watch of a store loses what changed after its connection broke", "Stores/WatchThroughOutages", "to come to what a read gives",
		onStore(func(st *filteredStore, w *storeWatcher, e registry.Event) bool {
			w.missed = w.missed || st.reg.Hits() > 0 && !e.Synced
			return !w.missed || e.Scope == registry.Children
		})},
	{"R73", "the watch of a store is silent after its connection broke", "Stores/WatchThroughOutages", "to come to what a read gives",
		onStore(func(st *filteredStore, _ *storeWatcher, _ registry.Event) bool { return st.reg.Hits() == 0 })},
	{"R73", "the watch of a store ends with a session", "Stores/WatchThroughOutages", "a watcher of a store failed after an outage",
		storeOf(func(s registry.Session) registry.StoreCloser { return bySession{s} })},
	{"R58", "the watch of a store does not see ephemeral nodes go", "Stores/EphemeralsStayTheirOwners", "waited for: absence",
		onStore(func(_ *filteredStore, w *storeWatcher, e registry.Event) bool {
			w.ephemeral = w.ephemeral || e.Node.Ephemeral
			return e.Synced || e.Node.Exists() || !w.ephemeral
		})},
	{"R48", "the Set of a store makes an ephemeral node persistent", "Stores/EphemeralsStayTheirOwners", "the owner reads",
		flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
			st, err := r.Registry.OpenStore(ctx)
			return persistingStore{st}, err
		}}},
	{"R9", "what a store has set outlives its owner", "Stores/EphemeralsStayTheirOwners", "waited for: ", outlivingStore()},
}

// onStore filters what the watchers of stores deliver.
func onStore(keep func(st *filteredStore, w *storeWatcher, e registry.Event) bool) flaw {
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		st, err := r.Registry.OpenStore(ctx)
		return &filteredStore{st, r, keep}, err
	}}
}

type filteredStore struct {
	registry.StoreCloser
	reg  *flawedRegistry
	keep func(*filteredStore, *storeWatcher, registry.Event) bool
}

func (st *filteredStore) Watch(ctx context.Context) (registry.Watcher, error) {
	w, err := st.StoreCloser.Watch(ctx)
	return &storeWatcher{flawedWatcher: flawedWatcher{Watcher: w, s: &flawed{flaw: &flaw{}}}, st: st}, err
}

type storeWatcher struct {
	flawedWatcher
	st                *filteredStore
	missed, ephemeral bool
}

func (w *storeWatcher) Next(ctx context.Context) ([]registry.Event, error) {
	return w.filter(ctx, func(e registry.Event) bool { return w.st.keep(w.st, w, e) })
}

type persistingStore struct{ registry.StoreCloser }

func (s persistingStore) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if nodes, err := s.Get(ctx, ops[0].Path); err == nil && ops[0].Kind == registry.OpSet && nodes[0].Ephemeral {
		_, _ = s.StoreCloser.Commit(ctx, registry.Delete(ops[0].Path, registry.AnyVersion))
		return s.StoreCloser.Commit(ctx, registry.Create(ops[0].Path, ops[0].Value))
	}
	return s.StoreCloser.Commit(ctx, ops...)
}

// outlivingStore remembers what it has set, and makes it again when a session is closed.
func outlivingStore() flaw {
	var mu sync.Mutex
	var set []registry.Op
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		st, err := r.Registry.OpenStore(ctx)
		return settingStore{st, func(op registry.Op) {
			mu.Lock()
			defer mu.Unlock()
			set = append(set, op)
		}}, err
	}, close: func(s *flawed, ctx context.Context) error {
		err := s.Session.Close(ctx)
		st, failed := s.reg.OpenStore(ctx)
		if failed != nil {
			return err
		}
		defer st.Close(ctx)
		mu.Lock()
		defer mu.Unlock()
		for _, op := range set {
			_, _ = st.Commit(ctx, registry.Create(op.Path, op.Value))
		}
		return err
	}}
}

type settingStore struct {
	registry.StoreCloser
	note func(registry.Op)
}

func (s settingStore) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	rev, err := s.StoreCloser.Commit(ctx, ops...)
	if err == nil && ops[0].Kind == registry.OpSet {
		s.note(ops[0])
	}
	return rev, err
}
