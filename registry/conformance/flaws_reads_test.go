package conformance

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// staleLists keeps what Children has shown of a directory until one of by clears it.
func staleLists(by ...string) flaw {
	clears := func(s *flawed, what string) {
		if slices.Contains(by, what) {
			s.remember("lists", map[string][]string{})
		}
	}
	return flaw{
		children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			if kept, known := remembered[map[string][]string](s, "lists"); known && kept[path] != nil {
				return slices.Clone(kept[path]), nil
			}
			names, err := s.Session.Children(ctx, path)
			if err == nil {
				s.remember("lists", map[string][]string{path: append([]string{}, names...)})
			}
			return names, err
		},
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			clears(s, "get")
			return s.Session.Get(ctx, paths...)
		},
		sync: func(s *flawed, ctx context.Context) error {
			clears(s, "sync")
			return s.Session.Sync(ctx)
		},
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			clears(s, "commit")
			return rev, err
		},
		next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			clears(w.s, "event")
			return events, err
		},
	}
}

// copiedLate reads the values of a commit of unknown outcome when its caller has them again.
func copiedLate(which func(ctx context.Context) bool) flaw {
	return onCommitFailure(func(s *flawed, ctx context.Context, ops []registry.Op, err error) error {
		if errors.Is(err, registry.ErrUncertain) && which(ctx) && ops[0].Kind == registry.OpSet {
			path, value := ops[0].Path, ops[0].Value
			time.AfterFunc(60*time.Millisecond, func() {
				_, _ = s.Session.Commit(context.Background(), registry.Set(path, peek(value), registry.AnyVersion))
			})
		}
		return err
	})
}

// notCopied keeps the caller's own bytes of values that are larger than size, for all sessions.
func notCopied(size int) flaw {
	var kept sync.Map
	return flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			for _, op := range ops {
				if kept.Delete(op.Path); err == nil && len(op.Value) > size {
					kept.Store(op.Path, op.Value)
				}
			}
			return rev, err
		},
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				if value, is := kept.Load(n.Path); is {
					nodes[i].Value = peek(value.([]byte))
				}
			}
			return nodes, err
		},
	}
}

// ownedByRegistry takes the nodes of all sessions of one registry for each one's own.
func ownedByRegistry() flaw {
	var made sync.Map // by path
	return flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			for _, op := range ops {
				if op.Kind == registry.OpCreateEphemeral {
					made.Store(op.Path, s.reg)
				}
			}
			return s.Session.Commit(ctx, ops...)
		},
		next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			for i, e := range events {
				if by, known := made.Load(e.Node.Path); known && e.Node.Ephemeral {
					events[i].Node.Owned = by.(*memory.Registry) == w.s.reg
				}
			}
			return events, err
		},
	}
}

// A flight is a Get that others of the same paths share.
type flight struct {
	done  chan struct{}
	nodes []registry.Node
	err   error
}

// sharedGets gives calls that are under way at once one answer.
func sharedGets() flaw {
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		key := "flight " + paths[0]
		s.mu.Lock()
		if f, under := s.state[key].(*flight); under && len(paths) == 1 {
			s.mu.Unlock()
			<-f.done
			return slices.Clone(f.nodes), f.err
		}
		f := &flight{done: make(chan struct{})}
		s.state[key] = f
		s.mu.Unlock()
		<-time.After(time.Millisecond)
		s.mu.Lock()
		delete(s.state, key)
		s.mu.Unlock()
		f.nodes, f.err = s.Session.Get(ctx, paths...)
		close(f.done)
		return slices.Clone(f.nodes), f.err
	}}
}

// readsBreakages tell what was, whose it is not, or what others have changed.
var readsBreakages = []breakage{
	{"R24", "lists are kept over Sync", "Lists/ListsAreFresh", "by another session and Sync, Children gives", staleLists("commit", "event", "get")},
	{"R22", "lists are kept over events", "Lists/ListsAreFresh", "by another session and an event, Children gives", staleLists("commit", "sync", "get")},
	{"R23", "lists are kept over a Get", "Lists/ListsAreFresh", "by another session and a Get that shows it, Children gives",
		staleLists("commit", "sync", "event")},
	{"R21", "lists are kept over own commits", "Lists/ListsAreFresh", "and a commit of its own that needs it, Children gives", staleLists("sync", "get", "event")},
	{"R49", "in events, nodes of all sessions of a registry are Owned", "Watch/OwnedInEvents", "which session", ownedByRegistry()},
	{"R31", "Gets that are under way at once share their bytes", "Nodes/ReadersAtOnceOwnWhatTheyGet", "which another one had changed for itself", sharedGets()},
	{"R30", "values over 64 KiB are not copied", "Nodes/LargeValuesAreOwned", "scribbled over theirs", notCopied(64 << 10)},
	{"R30", "values over 1000 bytes are not copied", "Nodes/LargeValuesAreOwned", "scribbled over theirs", notCopied(1000)},
	{"R30", "values are copied when the service applies the commit", "Uncertain/LateValues", "its caller put there after the return",
		copiedLate(func(ctx context.Context) bool { return ctx.Err() == nil })},
	{"R30", "values are copied when the service goes on", "Uncertain/PausedValues", "its caller put there after the return",
		copiedLate(func(ctx context.Context) bool { return ctx.Err() != nil })},
	{"R6", "values in hexadecimal are decoded", "Nodes/ValuesLikeEncodings", "came back as",
		onNode(func(_ *flawed, n *registry.Node) {
			if digits, is := bytes.CutPrefix(n.Value, []byte(`\x`)); is {
				if decoded, err := hex.DecodeString(string(digits)); err == nil {
					n.Value = decoded
				}
			}
		})},
	{"R6", "values in quotes lose them in events", "Nodes/ValuesLikeEncodings", "was told of as",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			for i, e := range events {
				if bare, failed := strconv.Unquote(string(e.Node.Value)); failed == nil {
					events[i].Node.Value = []byte(bare)
				}
			}
			return events, err
		}}},
}
