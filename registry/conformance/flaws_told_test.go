package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// isGone says whether an event tells that a node is gone.
func isGone(e registry.Event) bool { return !e.Synced && !e.Node.Exists() }

// onError has change look at what Next fails with.
func onError(change func(w *flawedWatcher, ctx context.Context, err error) error) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		if err != nil {
			err = change(w, ctx, err)
		}
		return events, err
	}}
}

// brief is Next for no longer than d: it returns nothing where nothing came.
func (w *flawedWatcher) brief(ctx context.Context, d time.Duration) ([]registry.Event, error) {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	events, err := w.Watcher.Next(short)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return events, err
}

// writtenThrough tells a session's watchers what it has tried to set, when tell says so of the failure.
func writtenThrough(tell func(err error) bool) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		rev, err := s.Session.Commit(ctx, ops...)
		for _, op := range ops {
			if err != nil && tell(err) && op.Kind == registry.OpSet {
				s.remember("through "+op.Path, bytes.Clone(op.Value))
			}
		}
		return rev, err
	}, next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		for {
			for k, e := range w.past {
				if value, is := remembered[[]byte](w.s, "through "+e.Node.Path); is && e.Node.Exists() {
					e.Node.Value = value
					e.Node.Version++
					e.Node.Modified++
					delete(w.past, k)
					return []registry.Event{e}, nil
				}
			}
			events, err := w.brief(ctx, pollEvery)
			for _, e := range events {
				if !e.Synced && e.Node.Version == 0 && e.Node.Exists() {
					w.past[fmt.Sprint(e.Path, e.Scope)] = e
				}
			}
			if err != nil || len(events) > 0 {
				return events, err
			}
		}
	}}
}

// keptReads are those of nodes of which no watch of the session has told, until Sync or a commit.
func keptReads() flaw {
	forget := func(s *flawed) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key := range s.state {
			if strings.HasPrefix(key, "kept ") {
				delete(s.state, key)
			}
		}
	}
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		nodes, err := s.Session.Get(ctx, paths...)
		for i, n := range nodes {
			if told, _ := remembered[bool](s, "told "+n.Path); !told {
				nodes[i] = once(s, "kept "+n.Path, func() registry.Node { return n })
				nodes[i].Value = bytes.Clone(nodes[i].Value)
			}
		}
		return nodes, err
	}, next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		for _, e := range events {
			w.s.remember("told "+e.Node.Path, true)
		}
		return events, err
	}, sync: func(s *flawed, ctx context.Context) error {
		defer forget(s)
		return s.Session.Sync(ctx)
	}, commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		defer forget(s)
		return s.Session.Commit(ctx, ops...)
	}}
}

// goneLinger reads what was told to be gone for a while more.
func goneLinger() flaw {
	type ghost struct {
		node  registry.Node
		until time.Time
	}
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		nodes, err := s.Session.Get(ctx, paths...)
		for i, n := range nodes {
			if g, known := remembered[ghost](s, "ghost "+n.Path); known && !n.Exists() && time.Now().Before(g.until) {
				nodes[i] = g.node
			}
		}
		return nodes, err
	}, next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		for _, e := range events {
			was, known := w.past[e.Node.Path]
			if known && isGone(e) {
				w.s.remember("ghost "+e.Node.Path, ghost{was.Node, time.Now().Add(200 * time.Millisecond)})
			}
			w.past[e.Node.Path] = e
		}
		return events, err
	}}
}

// secondIsOld has the first state of a node be the one before the last commit that wrote it beside another.
func secondIsOld() flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		for i, op := range ops {
			if nodes, err := s.Session.Get(ctx, op.Path); i > 0 && err == nil {
				s.remember("before "+op.Path, nodes[0])
			}
		}
		return s.Session.Commit(ctx, ops...)
	}, next: inFront(func(w *flawedWatcher, events []registry.Event) (old []registry.Event) {
		for _, e := range events {
			before, known := remembered[registry.Node](w.s, "before "+e.Node.Path)
			_, told := w.notes.LoadOrStore(fmt.Sprint(e.Path, e.Scope, e.Node.Path), true)
			if known && !told && before.Exists() != e.Node.Exists() {
				old = append(old, registry.Event{Path: e.Path, Scope: e.Scope, Node: before})
			}
		}
		return old
	}).next}
}

// goneWithSession tells all to be gone before it fails with the loss.
func goneWithSession() flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		for _, e := range events {
			if !e.Synced && e.Node.Exists() {
				w.past[fmt.Sprint(e.Path, e.Scope, e.Node.Path)] = e
			}
		}
		if !errors.Is(err, registry.ErrSessionLost) || len(w.past) == 0 {
			return events, err
		}
		for _, e := range w.past {
			e.Node = registry.Node{Path: e.Node.Path}
			events = append(events, e)
		}
		clear(w.past)
		return events, nil
	}}
}

// sameOf has two sessions of a registry be given the same bytes of a node.
func sameOf() flaw {
	type given struct {
		to    *flawed
		bytes []byte
	}
	return changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
		if len(n.Value) == 0 {
			return
		}
		first := sharedBy(w.s.reg, fmt.Sprint("bytes ", n.Path, n.Modified), func() *given { return &given{w.s, n.Value} })
		if first.to != w.s {
			n.Value = first.bytes
		}
	})
}

// removedForAll has Remove, or Close, of a watcher end the target of the other sessions of its registry.
func removedForAll() flaw {
	all := func(w *flawedWatcher) *sync.Map {
		return sharedBy(w.s.reg, "watchers", func() *sync.Map { return new(sync.Map) })
	}
	return flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
		all(w).Store(w, true)
		return w.Watcher.Add(path, scope)
	}, remove: func(w *flawedWatcher, path string, scope registry.Scope) {
		w.Watcher.Remove(path, scope)
		all(w).Range(func(other, _ any) bool {
			if o := other.(*flawedWatcher); o.s != w.s {
				o.Watcher.Remove(path, scope)
			}
			return true
		})
	}}
}

// tiedStores have their watchers end when a session of their registry is closed.
func tiedStores() flaw {
	all := func(reg any) *sync.Map { return sharedBy(reg, "tied", func() *sync.Map { return new(sync.Map) }) }
	return flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
		st, err := r.Registry.OpenStore(ctx)
		return tiedStore{st, all(r.Registry)}, err
	}, close: func(s *flawed, ctx context.Context) error {
		defer all(s.reg).Range(func(w, _ any) bool { return w.(registry.Watcher).Close() == nil })
		return s.Session.Close(ctx)
	}}
}

type tiedStore struct {
	registry.StoreCloser

	all *sync.Map
}

func (s tiedStore) Watch(ctx context.Context) (registry.Watcher, error) {
	w, err := s.StoreCloser.Watch(ctx)
	if err == nil {
		s.all.Store(w, true)
	}
	return w, err
}

// goesOnAllowed adds a target that was refused again, once it is not refused any more.
func goesOnAllowed() flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		for {
			events, err := w.brief(ctx, pollEvery)
			w.notes.Range(func(key, refused any) bool {
				g := key.(target)
				if errors.Is(err, registry.ErrDenied) && strings.Contains(err.Error(), g.path+" ") {
					w.notes.Store(g, true)
				} else if _, denied := w.s.Session.Get(ctx, g.path); refused == true && denied == nil {
					w.notes.Store(g, false)
					_ = w.Watcher.Add(g.path, g.scope)
				}
				return true
			})
			if err != nil || len(events) > 0 {
				return events, err
			}
		}
	}, add: func(w *flawedWatcher, path string, scope registry.Scope) error {
		w.notes.LoadOrStore(target{path, scope}, false)
		return w.Watcher.Add(path, scope)
	}}
}

// inPieces delivers a hundred events of a batch at most, and drops the rest where the next call's context has ended.
func inPieces() flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		rest, some := w.notes.LoadAndDelete("rest")
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if some {
			return rest.([]registry.Event), nil
		}
		events, err := w.Watcher.Next(ctx)
		if len(events) > 100 {
			w.notes.Store("rest", events[100:])
			events = events[:100:100]
		}
		return events, err
	}}
}

// ephemeralOnce is silent at Children of what was ephemeral when it was added.
func ephemeralOnce() flaw {
	return flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if nodes, err := w.s.Session.Get(ctx, path); err == nil && nodes[0].Ephemeral && scope == registry.Children {
			w.notes.Store("deaf "+path, true)
		}
		return w.Watcher.Add(path, scope)
	}, next: onEvents(func(w *flawedWatcher, e registry.Event) bool {
		return e.Synced || e.Scope == registry.Self || !w.noted("deaf "+e.Path)
	}).next}
}

// firstTargets go on after a broken connection, the others do not.
func firstTargets(n int) flaw {
	return flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
		count, _ := w.notes.LoadOrStore("count", 0)
		w.notes.Store("count", count.(int)+1)
		if count.(int) >= n {
			w.notes.LoadOrStore(target{path, scope}, true)
		}
		return w.Watcher.Add(path, scope)
	}, next: onEvents(func(w *flawedWatcher, e registry.Event) bool {
		return w.s.reg.Hits() == 0 || !w.noted(target{e.Path, e.Scope})
	}).next}
}

// unchangedAgain has a target that was removed and added again tell no more than what has changed.
func unchangedAgain() flaw {
	return flaw{remove: func(w *flawedWatcher, path string, scope registry.Scope) {
		w.notes.Store(target{path, scope}, true)
		w.Watcher.Remove(path, scope)
	}, next: onEvents(func(w *flawedWatcher, e registry.Event) bool {
		g := target{e.Path, e.Scope}
		if e.Synced {
			w.notes.Delete(g)
			return true
		}
		old, known := w.past[fmt.Sprint(g)]
		if e.Scope == registry.Self {
			w.past[fmt.Sprint(g)] = e
		}
		return !known || !w.noted(g) || old.Node.Modified != e.Node.Modified
	}).next}
}

// silentAfter is a watch that tells nothing more once nothing has happened for a while, or nobody has asked.
func silentAfter(d time.Duration) flaw {
	return onEvents(func(w *flawedWatcher, _ registry.Event) bool {
		at, before := w.notes.Swap("at", time.Now())
		if before && time.Since(at.(time.Time)) > d {
			w.notes.Store("silent", true)
		}
		return !w.noted("silent")
	})
}

// toldBreakages are wrong in what a watch tells, or when.
var toldBreakages = []breakage{
	{"R41", "who is denied a target is told of an outage as well", "Sessions/Denied", "want ErrDenied alone",
		onError(func(_ *flawedWatcher, _ context.Context, err error) error {
			if errors.Is(err, registry.ErrDenied) {
				return errors.Join(err, registry.ErrUnavailable)
			}
			return err
		})},
	{"R41", "a target that was refused goes on by itself once it is allowed", "Sessions/Denied", "that was refused and not added again", goesOnAllowed()},
	{"R6", "first states end after 64 KiB of their value", "Watch/ValuesInEveryState", "round 0",
		changed(func(_ *flawedWatcher, _ target, first bool, n *registry.Node) {
			if first {
				n.Value = n.Value[:min(len(n.Value), 64<<10)]
			}
		})},
	{"R6", "what is not UTF-8 is replaced in first states", "Watch/ValuesInEveryState", "round 0",
		changed(func(_ *flawedWatcher, _ target, first bool, n *registry.Node) {
			if first {
				n.Value = bytes.ToValidUTF8(n.Value, []byte("?"))
			}
		})},
	{"R6", "values end at a zero in what arrives after an outage", "Watch/ValuesInEveryState", "round 2",
		afterHits(func(n *registry.Node) { n.Value, _, _ = bytes.Cut(n.Value, []byte{0}) })},
	{"R6", "names in events are decoded", "Nodes/NamesAndValuesByteForByte", "not one level below",
		changed(func(_ *flawedWatcher, _ target, _ bool, n *registry.Node) {
			n.Path = strings.ReplaceAll(n.Path, "%20", " ")
		})},
	{"R17 R26", "a session is told what it tried to set and was refused", "Watch/UnappliedIsNotTold", "which no commit that was applied has written",
		writtenThrough(func(err error) bool { return classOf(err) != "" })},
	{"R17 R26", "a session is told what it set with unknown outcome", "Watch/UnappliedIsNotTold", "which no commit that was applied has written",
		writtenThrough(func(err error) bool { return errors.Is(err, registry.ErrUncertain) })},
	{"R22", "what was read is kept until a watch tells of that node", "Watch/ReadNotOlderThanEvent", "Get gives", keptReads()},
	{"R22", "what was told to be gone is read for 200 ms more", "Watch/SeesDelete", "after its deletion was delivered", goneLinger()},
	{"R22", "a first state is older than the last operation of an own commit", "Watch/InitialHasOwnWrites", "its session had committed", secondIsOld()},
	{"R78", "an event has the value of a later version", "Watch/ReadNotOlderThanEvent", "holds the value of version",
		changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
			<-time.After(pollEvery) // as a second request takes
			if nodes, err := w.s.Session.Get(context.Background(), n.Path); err == nil && nodes[0].Exists() && n.Exists() {
				n.Value = nodes[0].Value
			}
		})},
	{"R66", "a second Next after the loss waits", "Watch/EndsOnSessionLoss", `want "session lost"`,
		onError(func(w *flawedWatcher, ctx context.Context, err error) error {
			if _, again := w.notes.LoadOrStore("lost", true); again && errors.Is(err, registry.ErrSessionLost) {
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		})},
	{"R58", "with the loss of its session all is told to be gone", "Watch/EndsOnSessionLoss", "was gone, which is there", goneWithSession()},
	{"R26", "after an outage Next returns nothing once", "Watch/SurvivesDrop", "no event and no error",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			hits := w.s.reg.Hits()
			if seen, known := w.notes.Swap("hits", hits); known && seen != hits {
				return nil, nil
			}
			return w.Watcher.Next(ctx)
		}}},
	{"R31", "the sessions of a registry are told the same bytes", "Nodes/ReadersOwnWhatTheyGet", "after another reader changed what it had been given", sameOf()},
	{"R27", "children of what was ephemeral stay unseen", "Watch/DirectoryVanishesReturns", "to arrive at children of", ephemeralOnce()},
	{"R58", "ephemeral nodes that go while cut off stay", "Watch/ChangesDuringOutagesSeen", "to come to what a read gives",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			if e.Node.Ephemeral {
				w.notes.Store(e.Node.Path, true)
			}
			return w.s.reg.Hits() == 0 || !isGone(e) || !w.noted(e.Node.Path)
		})},
	{"R26", "a watcher that was cut off for a third of its session's time is silent", "Watch/ChangesDuringOutagesSeen", "to come to what a read gives",
		flaw{opened: func(s *flawed, _ context.Context) {
			go func() {
				for ; s.Session.Err() == nil; <-time.After(pollEvery) {
					if time.Until(s.Session.Deadline()) < flawedTimeout*6/10 {
						s.remember("long", true)
					}
				}
			}()
		}, next: onEvents(func(w *flawedWatcher, _ registry.Event) bool {
			long, _ := remembered[bool](w.s, "long")
			return !long
		}).next}},
	{"R26", "after a broken connection the first 50 targets go on", "Watch/ManyTargets", "every change at every target", firstTargets(50)},
	{"R26", "a watch at which nothing happens for 2.2 s is silent", "Watch/OutlivesSilence", "to arrive at", silentAfter(2200 * time.Millisecond)},
	{"R26", "what came while its consumer was away for 1 s is lost", "Watch/OutlivesSilence", "of a consumer that was away",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			defer func() { w.notes.Store("asked", time.Now()) }()
			if at, before := w.notes.Load("asked"); before && time.Since(at.(time.Time)) > time.Second {
				_, _ = w.brief(ctx, pollEvery)
			}
			return w.Watcher.Next(ctx)
		}}},
	{"R16", "the watchers of a store end with a session of its registry", "Sessions/SessionsAreApart", "closed", tiedStores()},
	{"R16 R60", "Remove ends the target of the registry's other sessions", "Watch/WatchersAreApart", "to arrive at", removedForAll()},
	{"R65", "a call whose context has ended drops the rest of a large batch", "Watch/EndsOnCtx", "calls in between whose context had ended", inPieces()},
	{"R65", "Next that gives up while cut off takes a second more", "Watch/CallsWhileCutOff", "Next that gives up, cut off, took",
		onError(func(w *flawedWatcher, ctx context.Context, err error) error {
			if ctx.Err() != nil && w.s.Session.Err() == nil && w.s.cutOff() {
				<-time.After(time.Second)
			}
			return err
		})},
	{"R26", "changes of nodes with long paths are not told", "Nodes/DeepPath", "waited for: value bottom",
		onEvents(func(_ *flawedWatcher, e registry.Event) bool { return len(e.Node.Path) < 1000 || e.Node.Version == 0 })},
	{"R55", "of two Adds at once one is forgotten", "Watch/CallsAtOnce", "waited for: Synced",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if _, busy := w.notes.LoadOrStore("adds", true); busy {
				return nil
			}
			defer w.notes.Delete("adds")
			<-time.After(time.Millisecond)
			return w.Watcher.Add(path, scope)
		}}},
	{"R4", "what goes below the root is not told", "Watch/WatchRoot", "waited for: absence",
		onEvents(func(_ *flawedWatcher, e registry.Event) bool { return e.Path != "/" || !isGone(e) })},
	{"R4", "the watch of the root is silent after its connection broke", "Watch/WatchRoot", "waited for: value",
		onEvents(func(w *flawedWatcher, e registry.Event) bool { return e.Path != "/" || w.s.reg.Hits() == 0 })},
	{"R4", "the root itself cannot be watched", "Watch/WatchRoot", "Synced of self of /",
		onEvents(func(_ *flawedWatcher, e registry.Event) bool { return e.Path != "/" || e.Scope == registry.Children })},
	{"R64", "a node that is added again is not told where it has not changed", "Watch/RemoveAddAgain", "was added again", unchangedAgain()},
}
