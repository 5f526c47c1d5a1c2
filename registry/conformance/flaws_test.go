package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A breakage is an adapter that breaks one rule, and the case that catches it.
// docs/adapters.md has the same table for readers.
type breakage struct {
	rules    string // the numbers of the contract's that it breaks
	rule     string
	caughtBy string
	saw      string // part of what the case must have seen: it fails for this reason
	flaw     flaw
}

var breakages = slices.Concat(commitBreakages, readBreakages, sessionBreakages, watchBreakages, lockBreakages, modelBreakages,
	strictBreakages, errorBreakages, lifeBreakages, closeBreakages, freedBreakages, spanBreakages, contextBreakages, followBreakages,
	queueBreakages, latchBreakages, releaseBreakages, endBreakages, storeBreakages, presentBreakages, readsBreakages,
	ownersBreakages, watchApartBreakages, wholeBreakages, watchOutageBreakages, blipBreakages, apartBreakages, lockApartBreakages,
	togetherBreakages, siblingsBreakages, toldBreakages)

// onNode calls change for each node that is read.
func onNode(change func(s *flawed, n *registry.Node)) flaw {
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		nodes, err := s.Session.Get(ctx, paths...)
		for i := range nodes {
			if nodes[i].Exists() {
				change(s, &nodes[i])
			}
		}
		return nodes, err
	}}
}

var readBreakages = []breakage{
	{"R44", "Version does not rise", "Nodes/SetVersionIncrements", "version went from 0 to 0 with one Set",
		onNode(func(_ *flawed, n *registry.Node) { n.Version = 0 })},
	{"R29", "Version goes on over incarnations", "Nodes/RecreateRestartsVersion", "of a node created again; want 0",
		onNode(func(_ *flawed, n *registry.Node) { n.Version = registry.Version(n.Created) })},
	{"R28", "Created is the same for every incarnation", "Nodes/RecreateNewCreated", "of a new incarnation; the one before had Created",
		onNode(func(s *flawed, n *registry.Node) {
			n.Created = once(s, "created "+n.Path, func() registry.Revision { return n.Created })
		})},
	{"R48", "Set makes an ephemeral node persistent", "Commit/SetKeepsEphemeral", "after a Set the owner reads",
		onNode(func(_ *flawed, n *registry.Node) { n.Ephemeral = n.Ephemeral && n.Version == 0 })},
	{"R49", "every ephemeral node is Owned", "Sessions/OwnedFlag", "ephemeral, owned}",
		onNode(func(_ *flawed, n *registry.Node) { n.Owned = n.Ephemeral })},
	{"R21", "reads are older than own writes", "Nodes/ReadOwnWrites", "was committed by the same session",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				if n.Exists() {
					nodes[i] = once(s, "cached "+n.Path, func() registry.Node { return n })
				}
			}
			return nodes, err
		}}},
	{"R77", "absent nodes are left out of Get", "Nodes/GetOrder", "Get of 7 paths returned 5 nodes",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			return slices.DeleteFunc(nodes, func(n registry.Node) bool { return len(nodes) > 3 && !n.Exists() }), err
		}}},
	{"R80", "Children is not sorted", "Lists/ChildrenSorted", "children of",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			slices.Reverse(names)
			return names, err
		}}},
	{"R79", "Children lists deeper levels", "Lists/ChildrenOneLevelOnly", `"a/b"]; want`,
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			for _, name := range names {
				below, _ := s.Session.Children(ctx, path+"/"+name)
				for _, deeper := range below {
					names = append(names, name+"/"+deeper)
				}
			}
			return names, err
		}}},
	{"R36", "a missing directory is an empty one", "Lists/ChildrenMissingDir", "error <nil>; want",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			if errors.Is(err, registry.ErrNotFound) {
				return nil, nil
			}
			return names, err
		}}},
}

var sessionBreakages = []breakage{
	{"R99", "ephemeral nodes outlive Close", "Sessions/CloseRemovesEphemerals", "/a exists",
		flaw{close: func(s *flawed, _ context.Context) error {
			heal := s.reg.Refuse()
			defer heal()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Session.Close(ctx)
			return nil
		}}},
	{"R9", "ephemeral nodes are persistent", "Sessions/ExpireRemovesEphemerals", "still exists",
		onOps(func(ops []registry.Op) []registry.Op {
			for i := range ops {
				if ops[i].Kind == registry.OpCreateEphemeral {
					ops[i].Kind = registry.OpCreate
				}
			}
			return ops
		})},
	{"R13", "Done is not closed while cut off", "Sessions/DoneNotAfterDeadline", "Done is open",
		flaw{done: func(s *flawed) <-chan struct{} {
			return once(s, "done", func() chan struct{} {
				done, lost, closed := make(chan struct{}), s.Session.Done(), once2(s)
				go func() {
					<-lost
					<-closed
					close(done)
				}()
				return done
			})
		}, close: func(s *flawed, ctx context.Context) error {
			s.mu.Lock()
			closed := once2(s)
			s.mu.Unlock()
			select {
			case <-closed:
			default:
				close(closed)
			}
			return s.Session.Close(ctx)
		}}},
	{"R95", "Deadline is too late", "Sessions/DeadlineNeverAfterServerDeletion", "before the session's Deadline",
		flaw{deadline: func(s *flawed) time.Time { return s.Session.Deadline().Add(flawedTimeout / 2) }}},
	{"R10", "a dead session writes on in a new life", "Sessions/NoWriteAfterLoss", "had been ended by the service, and made an ephemeral node",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if !errors.Is(err, registry.ErrSessionLost) {
				return rev, err
			}
			again, err := s.reg.Open(ctx)
			if err != nil {
				return 0, err
			}
			return again.Commit(ctx, ops...)
		}}},
	{"R14", "a broken connection ends the session", "Sessions/DropReconnectSameSession", "session lost",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			if s.reg.Hits() > 0 {
				_ = s.Session.Close(ctx)
			}
			return s.Session.Get(ctx, paths...)
		}}},
	{"R8", "loss is another error", "Sessions/ErrorEveryMethod", "Children on a lost session: error registry unavailable",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			if errors.Is(err, registry.ErrSessionLost) {
				return nil, registry.ErrUnavailable
			}
			return names, err
		}}},
}

// once2 is the channel that Close closes; the caller holds mu.
func once2(s *flawed) chan struct{} {
	if s.state["closed"] == nil {
		s.state["closed"] = make(chan struct{})
	}
	return s.state["closed"].(chan struct{})
}

var watchBreakages = []breakage{
	{"R55", "Synced is missing", "Watch/InitialThenSynced", "0 of 1 Synced", onEvents(func(_ *flawedWatcher, e registry.Event) bool { return !e.Synced })},
	{"R58", "deletions are not delivered", "Watch/SeesDelete", "waited for: absence", onEvents(func(_ *flawedWatcher, e registry.Event) bool { return e.Synced || e.Node.Exists() })},
	{"R27", "absence is not delivered", "Watch/AbsentNode", "the initial state is 1 events",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			_, known := w.past[e.Node.Path]
			w.past[e.Node.Path] = e
			return e.Synced || e.Node.Exists() || known
		})},
	{"R26", "the newest change is held back until the next comes", "Watch/LastStateAlways", "waited for: value 1000",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			for {
				events, err := w.Watcher.Next(ctx)
				var out []registry.Event
				for _, e := range events {
					if old, held := w.past[e.Node.Path]; held && !e.Synced {
						out = append(out, old)
					} else if e.Synced || e.Node.Version == 0 {
						out = append(out, e)
					}
					if !e.Synced && e.Node.Version > 0 {
						w.past[e.Node.Path] = e
					}
				}
				if err != nil || len(out) > 0 {
					return out, err
				}
			}
		}}},
	{"R25", "an older state comes again", "Watch/PerPathMonotonic", "back in time",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			for _, e := range slices.Clone(events) {
				if old, known := w.past[e.Node.Path]; known && !e.Synced && old.Node.Exists() && e.Node.Modified > old.Node.Modified {
					events = append(events, old)
				}
				w.past[e.Node.Path] = e
			}
			return events, err
		}}},
	{"R26", "a watch does not go on after its connection broke", "Watch/SurvivesDrop", "waited for: value 1 ",
		onEvents(func(w *flawedWatcher, _ registry.Event) bool { return w.s.reg.Hits() == 0 })},
	{"R26", "what changed while cut off is not delivered", "Watch/ChangesDuringDropSeen", "waited for: the changes at both targets",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			missed := w.s.reg.Hits() > 0 && len(w.past) == 0
			if missed {
				w.past["missed"] = e
			}
			return !missed
		})},
	{"R62", "adding a target twice starts it again", "Watch/AddTwiceIsOne", "Synced number 2",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			w.Remove(path, scope)
			return w.Watcher.Add(path, scope)
		}}},
	{"R66", "a watch stays silent when its session is lost", "Watch/EndsOnSessionLoss", "waited for: Next to fail",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			if errors.Is(err, registry.ErrSessionLost) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return events, err
		}}},
}

func onEvents(keep func(w *flawedWatcher, e registry.Event) bool) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		return w.filter(ctx, func(e registry.Event) bool { return keep(w, e) })
	}}
}

// onLock calls change for each lock that is acquired.
func onLock(change func(s *flawed, dir string, l *flawedLock)) flaw {
	return flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
		inner, err := s.Session.Lock(ctx, dir, value)
		if err != nil {
			return nil, err
		}
		l := &flawedLock{Lock: inner}
		change(s, dir, l)
		return l, nil
	}}
}

var lockBreakages = []breakage{
	{"R90", "two callers on one session share a lock", "Locks/ExclusiveWithinOneSession", "Lock on the session that holds the lock returned another",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			s.mu.Lock()
			held, _ := s.state[dir].(registry.Lock)
			s.mu.Unlock()
			if held != nil {
				select {
				case <-held.Lost():
				default:
					return held, nil
				}
			}
			l, err := s.Session.Lock(ctx, dir, value)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.state[dir] = l
			return l, err
		}}},
	{"R105", "tokens do not rise", "Locks/TokenIncreases", "the owner's node is",
		onLock(func(_ *flawed, _ string, l *flawedLock) { l.token = 1<<40 - l.Lock.Token() })},
	{"R106", "the guard always passes", "Locks/GuardFailsAfterRelease", "/guarded) succeeded",
		onLock(func(_ *flawed, dir string, l *flawedLock) {
			always := registry.Check(dir, registry.AnyVersion)
			l.guard = &always
		})},
	{"R110", "Release empties the queue", "Locks/ReleaseAfterTakeoverDoesNotDeleteSuccessor", "1 nodes in the queue; at the end of the case: 0",
		onLock(func(s *flawed, dir string, l *flawedLock) {
			l.release = func(ctx context.Context) error {
				next, err := s.reg.Open(ctx)
				if err != nil {
					return err
				}
				defer next.Close(ctx)
				names, _ := next.Children(ctx, dir)
				for _, name := range names {
					_, _ = next.Commit(ctx, registry.Delete(dir+"/"+name, registry.AnyVersion))
				}
				return l.Lock.Release(ctx)
			}
		})},
	{"R94", "a waiter that gives up keeps its place", "Locks/CancelWhileWaitingLeavesNoNode", "1 nodes in the queue; at the end of the case: 2",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			type result struct {
				lock registry.Lock
				err  error
			}
			got := make(chan result, 1)
			go func() {
				l, err := s.Session.Lock(context.Background(), dir, value)
				got <- result{l, err}
			}()
			select {
			case r := <-got:
				return r.lock, r.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}},
	{"R8", "a dead waiter believes to lead", "Locks/NoPhantomLeader", "which the service had ended while it waited",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.Lock(ctx, dir, value)
			if errors.Is(err, registry.ErrSessionLost) {
				return &flawedLock{token: 1}, nil
			}
			return l, err
		}}},
}
