package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// changed has change look at each node that a watcher delivers; first says that its target has had no Synced yet.
func changed(change func(w *flawedWatcher, g target, first bool, n *registry.Node)) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		for i := range events {
			g := target{events[i].Path, events[i].Scope}
			if events[i].Synced {
				w.notes.Store(g, true)
			} else {
				change(w, g, !w.noted(g), &events[i].Node)
			}
		}
		return events, err
	}}
}

// firstOfSelf has change look at the first state of each target of one node.
func firstOfSelf(change func(n *registry.Node)) flaw {
	return changed(func(_ *flawedWatcher, g target, first bool, n *registry.Node) {
		if first && g.scope == registry.Self {
			change(n)
		}
	})
}

// afterHits has change look at what arrives once a fault has hit.
func afterHits(change func(n *registry.Node)) flaw {
	return changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
		if w.s.reg.Hits() > 0 && n.Exists() {
			change(n)
		}
	})
}

// countedFromRestart numbers sessions from the last restart on, which the client of the first of them notices.
func countedFromRestart() flaw {
	type starts struct {
		first      *flawed
		hits, last int
	}
	var mu sync.Mutex
	harnesses := map[*flaw]*starts{} // a flaw is tried more than once
	return flaw{
		opened: func(s *flawed, _ context.Context) {
			mu.Lock()
			defer mu.Unlock()
			h := harnesses[s.flaw]
			if h == nil {
				h = &starts{first: s}
				harnesses[s.flaw] = h
			}
			if hits := h.first.reg.Hits(); hits > h.hits {
				h.hits, h.last = hits, 0
			}
			h.last++
			s.remember("number", h.last)
		},
		id: func(s *flawed) string {
			n, _ := remembered[int](s, "number")
			return fmt.Sprint("session ", n)
		},
	}
}

// locking is Lock or TryLock.
type locking func(ctx context.Context, dir string, value []byte) (registry.Lock, error)

// notInRoot has the root locked as no other directory is.
func notInRoot(s *flawed, lock locking) locking {
	return func(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		if dir == "/" {
			_, err := s.Session.Commit(ctx, registry.CreateEphemeral("//latch-", value))
			return nil, err
		}
		return lock(ctx, dir, value)
	}
}

// getsNothing answers a Get of no paths without a look at the session or the context.
func getsNothing() flaw {
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		if len(paths) == 0 {
			return nil, nil
		}
		return s.Session.Get(ctx, paths...)
	}}
}

// onInvalid refuses operations on paths that are valid.
func onInvalid(refused func(path string) bool) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		for _, op := range ops {
			if refused(op.Path) {
				return 0, registry.ErrInvalid
			}
		}
		return s.Session.Commit(ctx, ops...)
	}}
}

// closedLate takes what waits when a watcher is closed, and has Next deliver that.
func closedLate() flaw {
	return flaw{closed: func(w *flawedWatcher) error {
		ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
		defer cancel()
		if events, err := w.Watcher.Next(ctx); err == nil {
			w.notes.Store("waits", events)
		}
		return w.Watcher.Close()
	}, next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		if waits, some := w.notes.LoadAndDelete("waits"); some {
			return waits.([]registry.Event), nil
		}
		return events, err
	}}
}

// inTurn has calls of a session wait for one another, whatever becomes of their contexts.
func inTurn(s *flawed) (done func()) {
	turn := once(s, "turn", func() *sync.Mutex { return new(sync.Mutex) })
	turn.Lock()
	return turn.Unlock
}

// wholeBreakages leave something out: of a node, of a limit, of what holds for every call.
var wholeBreakages = []breakage{
	{"R49", "the first state of a Self target is nobody's", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Owned = false })},
	{"R48", "the first state of a Self target is persistent", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Ephemeral = false })},
	{"R44", "the first state of a Self target has version 0", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Version = 0 })},
	{"R49", "what arrives after an outage is nobody's", "Watch/EventsAreWholeNodes", "the event holds",
		afterHits(func(n *registry.Node) { n.Owned = false })},
	{"R26", "what arrives after an outage is persistent", "Watch/EventsAreWholeNodes", "the event holds",
		afterHits(func(n *registry.Node) { n.Ephemeral = false })},
	{"R58", "what is gone is told with its last version and value", "Watch/SeesDelete", "want the zero Node but for Path",
		changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
			if n.Exists() {
				w.notes.Store("last "+n.Path, *n)
			} else if last, known := w.notes.Load("last " + n.Path); known {
				*n = last.(registry.Node)
				n.Created = 0
			}
		})},
	{"R77", "what is gone reads with its last version and value", "Nodes/GetMissing", "want the zero Node but for Path",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				if n.Exists() {
					s.remember("last "+n.Path, n)
				} else if last, known := remembered[registry.Node](s, "last "+n.Path); known {
					last.Created = 0
					nodes[i] = last
				}
			}
			return nodes, err
		}}},
	{"R39", "the limit of a value is looked at in creates alone", "Nodes/ValueOverLimitNothingSent", "want ErrInvalid",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			for _, op := range ops {
				if op.Kind != registry.OpCreate && len(op.Value) > s.Limits().MaxValue {
					return s.Session.Commit(ctx, registry.Check(op.Path, registry.AnyVersion)) // it is sent
				}
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R86", "IDs are counted from each restart of the service on", "Sessions/IDsOutliveRestart", "of one before", countedFromRestart()},
	{"R87", "the paths of locks in the root begin with two slashes", "Locks/Root", "invalid request",
		flaw{
			lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
				return notInRoot(s, s.Session.Lock)(ctx, dir, value)
			},
			try: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
				return notInRoot(s, s.Session.TryLock)(ctx, dir, value)
			},
		}},
	{"R56", "a watcher remembers each node that there ever was", "Watch/GoneIsForgotten", "are not freed",
		changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) { w.notes.Store("seen "+n.Path, n.Path) })},
	{"R55", "what has changed before it was told comes behind Synced", "Watch/PresentBeforeSynced", "when it was added there were",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			slices.SortStableFunc(events, func(a, b registry.Event) int {
				return cmp.Compare(boolToInt(!a.Synced && a.Node.Version > 0), boolToInt(!b.Synced && b.Node.Version > 0))
			})
			return events, err
		}}},
	{"R18", "the operation that failed is named without its version", "Commit/ErrorIsTyped", "CommitError.Op is",
		onCommitError(func(_ *flawed, _ context.Context, _ []registry.Op, ce *registry.CommitError) error {
			op := ce.Op
			op.Version = 0
			return &registry.CommitError{Index: ce.Index, Op: op, Err: ce.Err}
		})},
	{"R31", "the values of one Get are parts of one array", "Nodes/ReadersOwnWhatTheyGet", "after another reader changed",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			var all []byte
			for _, n := range nodes {
				all = append(all, n.Value...)
			}
			for i, n := range nodes {
				nodes[i].Value, all = all[:len(n.Value)], all[len(n.Value):]
			}
			return nodes, err
		}}},
	{"R31", "what Next returns are parts of one array", "Watch/EventsBelongToTheCaller", "the slice holds",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			known, _ := w.notes.LoadOrStore("array", make([]registry.Event, 0, 1000))
			all := known.([]registry.Event)
			w.notes.Store("array", append(all, events...))
			return append(all, events...)[len(all):], err
		}}},
	{"R8", "Get of no paths succeeds on a lost session", "Sessions/ErrorEveryMethod", "Get of none on a lost session", getsNothing()},
	{"R33", "Get of no paths succeeds with an ended context", "Sessions/EndedContextEveryMethod", "Get of no paths with an ended context", getsNothing()},
	{"R19", "the commits of a session wait for one another", "Sessions/CallsWaitForNoOther", "a call beside others that wait",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			defer inTurn(s)()
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R75", "the lists of a session wait for one another", "Sessions/CallsWaitForNoOther", "a call beside others that wait",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			defer inTurn(s)()
			return s.Session.Children(ctx, path)
		}}},
	{"R98", "Err tells of Close before Done is closed", "Sessions/ErrTellsWithDone", "and Done is open",
		flaw{close: func(s *flawed, ctx context.Context) error {
			s.remember("closing", true)
			<-time.After(flawedTimeout / 50)
			return s.Session.Close(ctx)
		}, err: func(s *flawed) error {
			if _, closing := remembered[bool](s, "closing"); closing && s.Session.Err() == nil {
				return registry.ErrSessionLost
			}
			return s.Session.Err()
		}}},
	{"R100", "goroutines of a session end a while after Close", "Sessions/NoGoroutineLeak", "after the return of Close",
		flaw{opened: func(s *flawed, _ context.Context) {
			go func() {
				<-s.Session.Done()
				<-time.After(flawedTimeout / 4)
			}()
		}}},
	{"R53", "a character next to those that are refused is refused", "Nodes/UnicodeSegment", "invalid request",
		onInvalid(func(path string) bool { return strings.ContainsRune(path, '\uffef') })},
	{"R53", "a path has 2047 bytes at most", "Nodes/DeepPath", "EnsurePath of",
		onInvalid(func(path string) bool { return len(path) > 2047 })},
	{"R53", "a path of 2049 bytes is no more than absent", "Nodes/PathInvalidTable", "want ErrInvalid",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			for _, p := range paths {
				if len(p) == 2049 {
					return []registry.Node{{Path: paths[0]}, {Path: p}}, nil
				}
			}
			return s.Session.Get(ctx, paths...)
		}}},
	{"R43", "what waits is delivered after Close", "Watch/EndsOnClose", "error <nil>; want \"closed\"", closedLate()},
}
