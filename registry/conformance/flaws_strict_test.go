package conformance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// strictBreakages are wrong in what nobody asks for every day.
var strictBreakages = []breakage{
	{"R4", "the root cannot be listed", "Lists/ChildrenRoot", "Children(/)",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			if path == "/" {
				return nil, registry.ErrInvalid
			}
			return s.Session.Children(ctx, path)
		}}},
	{"R5", "operations on the root are left out", "Nodes/CreateRoot", "want ErrInvalid",
		onOps(func(ops []registry.Op) []registry.Op {
			if rest := slices.DeleteFunc(slices.Clone(ops), func(op registry.Op) bool { return op.Path == "/" }); len(rest) > 0 {
				return rest
			}
			return []registry.Op{registry.Create("/never-mind-"+time.Now().Format("150405.000000000"), nil)}
		})},
	{"R6", "names are not told apart by case", "Nodes/NamesAndValuesByteForByte", "that differ in some byte were created",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			seen := map[string]bool{}
			return slices.DeleteFunc(names, func(name string) bool {
				twice := seen[strings.ToLower(name)]
				seen[strings.ToLower(name)] = true
				return twice
			}), err
		}}},
	{"R6", "values lose the spaces at their end", "Nodes/NamesAndValuesByteForByte", "want its name and a space",
		onNode(func(_ *flawed, n *registry.Node) { n.Value = bytes.TrimRight(n.Value, " ") })},
	{"R7", "a namespace hides the nodes of others", "Sessions/SecondNamespace", "the node changed",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i := range nodes {
				if s.reg.Namespace() != "flawed" {
					nodes[i] = registry.Node{Path: nodes[i].Path}
				}
			}
			return nodes, err
		}}},
	{"R17", "commits of more than 30 operations become two", "Commit/LargeCommitsAreOne", "a commit at revision",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if len(ops) > 30 && len(ops) <= s.Session.Limits().MaxOps {
				if rev, err := s.Session.Commit(ctx, ops[:30]...); err != nil {
					return rev, err
				}
				return s.Session.Commit(ctx, ops[30:]...)
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R22", "reads are as old as 200 ms", "Watch/ReadNotOlderThanEvent", "was delivered", staleReads()},
	{"R24", "reads are as old as 200 ms, after Sync too", "Nodes/SyncSeesOthers", "another session had committed", staleReads()},
	{"R23", "one read in ten is that of the beginning", "Nodes/ReadsAreMonotonic", "after one that had returned before",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			calls := once(s, "calls", func() *atomic.Int64 { return new(atomic.Int64) })
			key := "old " + strings.Join(paths, " ")
			if old, known := remembered[[]registry.Node](s, key); known && calls.Add(1)%10 == 0 {
				return old, err
			}
			if _, known := remembered[[]registry.Node](s, key); !known {
				s.remember(key, slices.Clone(nodes))
			}
			return nodes, err
		}}},
	{"R30", "a commit of unknown outcome is read again after the return", "Nodes/CallersKeepWhatTheyPass", "after the caller reused its buffer",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if errors.Is(err, registry.ErrUncertain) && len(ops[0].Value) > 0 {
				path, value := ops[0].Path, ops[0].Value
				time.AfterFunc(20*time.Millisecond, func() {
					_, _ = s.Session.Commit(context.Background(), registry.Set(path, peek(value), registry.AnyVersion))
				})
			}
			return rev, err
		}}},
	{"R30", "paths are sorted in place", "Nodes/CallersKeepWhatTheyPass", "of the paths",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			slices.Sort(paths)
			return nodes, err
		}}},
	{"R31", "a path that is asked for twice is read once", "Nodes/ReadersOwnWhatTheyGet", "the second holds",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			first := map[string]registry.Node{}
			for i, n := range nodes {
				if _, known := first[n.Path]; !known {
					first[n.Path] = n
				}
				nodes[i] = first[n.Path]
			}
			return nodes, err
		}}},
	{"R31", "watchers of one session are given the same bytes", "Nodes/ReadersOwnWhatTheyGet", "after another reader changed what it had been given",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			events, err := w.Watcher.Next(ctx)
			for i, e := range events {
				if e.Node.Exists() {
					events[i].Node.Value = once(w.s, "bytes "+show(e.Node), func() []byte { return e.Node.Value })
				}
			}
			return events, err
		}}},
	{"R46", "nil is written as a word", "Nodes/NilVsEmpty", "want none",
		onOps(func(ops []registry.Op) []registry.Op {
			for i := range ops {
				if ops[i].Value == nil && ops[i].Kind == registry.OpCreate {
					ops[i].Value = []byte("null")
				}
			}
			return ops
		})},
	{"R51", "versions are cut down to 32 bits", "Nodes/VersionBeyondTheService", "succeeded",
		onOps(func(ops []registry.Op) []registry.Op {
			for i := range ops {
				if ops[i].Version > 1<<31 {
					ops[i].Version = registry.Version(uint32(ops[i].Version & 0x7fffffff))
				}
			}
			return ops
		})},
	{"R52", "fewer operations fit than is portable", "Commit/MaxOps", "portable is",
		flaw{limits: func(l registry.Limits) registry.Limits { l.MaxOps = 20; return l }}},
	{"R53", "paths that cannot be are absent nodes", "Nodes/PathInvalidTable", "want ErrInvalid",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if errors.Is(err, registry.ErrInvalid) {
				nodes = make([]registry.Node, len(paths))
				return nodes, nil
			}
			return nodes, err
		}}},
	{"R76", "answers of more than 4 MiB fail", "Nodes/LargeAnswers", "registry unavailable",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			size := 0
			for _, n := range nodes {
				size += len(n.Value)
			}
			if size > 4<<20 {
				return nil, registry.ErrUnavailable
			}
			return nodes, err
		}}},
	{"R78", "a value comes with the version before its own", "Lists/ListDuringChurnNoTornNode", "holds the value of version",
		onNode(func(_ *flawed, n *registry.Node) {
			if n.Version > 10 {
				n.Version--
			}
		})},
	{"R81", "operations are sorted by path", "Commit/OrderMatters", "succeeded",
		onOps(func(ops []registry.Op) []registry.Op {
			slices.SortStableFunc(ops, func(a, b registry.Op) int { return strings.Compare(a.Path, b.Path) })
			return ops
		})},
	{"R83", "children are looked at before the version", "Commit/PrecedenceOfReasons", `want "node has another version"`,
		onCommitError(func(s *flawed, ctx context.Context, _ []registry.Op, ce *registry.CommitError) error {
			if names, _ := s.Session.Children(ctx, ce.Op.Path); ce.Op.Kind == registry.OpDelete && len(names) > 0 {
				return &registry.CommitError{Index: ce.Index, Op: ce.Op, Err: registry.ErrNotEmpty}
			}
			return ce
		})},
	{"R84", "only a Set has a revision", "Commit/RevisionOfEveryKind", "returned revision 0",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if !slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Kind == registry.OpSet }) {
				rev = 0
			}
			return rev, err
		}}},
	{"R85", "the revision is that of an hour ago", "Commit/RevisionsIncrease", "revision",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			return once(s, "first", func() registry.Revision { return rev }), err
		}}},
	{"R112", "checks alone are answered by a member that is a commit behind", "Commit/ChecksAreFresh", "succeeded; want",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Kind != registry.OpCheck }) {
				return rev, err
			}
			for _, op := range ops {
				was, known := remembered[registry.Node](s, "checked "+op.Path)
				nodes, failed := s.Session.Get(ctx, op.Path)
				if failed != nil {
					return rev, err
				}
				s.remember("checked "+op.Path, nodes[0])
				if known && was.Exists() && (op.Version == registry.AnyVersion || op.Version == was.Version) {
					err = nil
				}
			}
			return rev, err
		}}},
}

// staleReads keeps what was read of a node that others wrote for 200 ms.
func staleReads() flaw {
	type kept struct {
		at   time.Time
		node registry.Node
	}
	return flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
		nodes, err := s.Session.Get(ctx, paths...)
		for i, n := range nodes {
			if k, known := remembered[kept](s, "kept "+n.Path); known && time.Since(k.at) < 200*time.Millisecond {
				nodes[i] = k.node
			} else {
				s.remember("kept "+n.Path, kept{time.Now(), n})
			}
		}
		return nodes, err
	}}
}

// misnamed makes an error of a commit something else.
func misnamed(is, becomes error) flaw {
	return onCommitError(func(_ *flawed, _ context.Context, _ []registry.Op, ce *registry.CommitError) error {
		if errors.Is(ce, is) {
			return &registry.CommitError{Index: ce.Index, Op: ce.Op, Err: becomes}
		}
		return ce
	})
}

// peek copies what somebody else may write at the same time: that is the flaw, and no race of the test's.
//
//go:norace
func peek(b []byte) []byte {
	seen := make([]byte, len(b))
	for i := range b { //nolint:staticcheck // the race detector looks into copy
		seen[i] = b[i]
	}
	return seen
}

// errorBreakages are right in what they do, and wrong in what they say.
var errorBreakages = []breakage{
	{"R35", "a refusal is said to be an outage as well", "Uncertain/ErrorsAreOfOneClass", "is ErrUnavailable: true",
		onCommitError(func(_ *flawed, _ context.Context, _ []registry.Op, ce *registry.CommitError) error {
			return &registry.CommitError{Index: ce.Index, Op: ce.Op, Err: errors.Join(ce.Err, registry.ErrUnavailable)}
		})},
	{"R36", "what is missing has another version", "Uncertain/ErrorsAreOfOneClass", "want [ErrNotFound]", misnamed(registry.ErrNotFound, registry.ErrVersion)},
	{"R37", "what exists has another version", "Nodes/CreateExists", "want", misnamed(registry.ErrExists, registry.ErrVersion)},
	{"R19", "a Delete of unknown outcome is sent again", "Uncertain/EveryKindAlone", "want ErrUncertain",
		onCommitFailure(func(s *flawed, ctx context.Context, ops []registry.Op, err error) error {
			if ops[0].Kind == registry.OpDelete {
				return sendAgain(s, ctx, ops, err)
			}
			return err
		})},
	{"R20", "a commit of unknown outcome is applied after a conflicting one", "Uncertain/ConflictSettlesRequestLost", "after the conflicting write",
		onCommitFailure(func(s *flawed, _ context.Context, ops []registry.Op, err error) error {
			if errors.Is(err, registry.ErrUncertain) {
				path, value := ops[0].Path, bytes.Clone(ops[0].Value)
				time.AfterFunc(60*time.Millisecond, func() {
					_, _ = s.Session.Commit(context.Background(), registry.Set(path, value, registry.AnyVersion))
				})
			}
			return err
		})},
	{"R41", "what is denied is unavailable", "Sessions/Denied", "want ErrDenied",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if errors.Is(err, registry.ErrDenied) {
				err = registry.ErrUnavailable
			}
			return nodes, err
		}}},
	{"R41", "one target that is denied ends the watch", "Sessions/Denied", "want the other target to go on",
		flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
			if _, over := w.past["denied"]; over {
				return nil, registry.ErrDenied
			}
			events, err := w.Watcher.Next(ctx)
			if errors.Is(err, registry.ErrDenied) {
				w.past["denied"] = registry.Event{}
			}
			return events, err
		}}},
	{"R43", "a registry that was closed is unavailable", "Sessions/RegistryCloseEndsSessions", "want",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			s, err := r.sound(ctx)
			if errors.Is(err, registry.ErrClosed) {
				err = registry.ErrUnavailable
			}
			return s, err
		}}},
	{"R69", "Open that gives up says only why", "Sessions/OpenWaitsThenUnavailable", "want",
		flaw{open: func(r *flawedRegistry, ctx context.Context) (registry.Session, error) {
			s, err := r.sound(ctx)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			return s, err
		}}},
	{"R75", "a read that gives up says only why", "Uncertain/CutOffRead", "want",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			return nodes, err
		}}},
	{"R74", "a read fails when its connection breaks", "Uncertain/ReadsAreRetried", "while connections broke",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			before := s.reg.Hits()
			nodes, err := s.Session.Get(ctx, paths...)
			if s.reg.Hits() > before {
				return nil, registry.ErrUnavailable
			}
			return nodes, err
		}}},
	{"R93", "Lock that gives up says only that its time has ended", "Locks/CutOffLock", "as well",
		flaw{lock: func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
			l, err := s.Session.Lock(ctx, dir, value)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			return l, err
		}}},
	{"R98", "Err tells of a loss while the session lives", "Sessions/AliveErrNil", "Err is",
		flaw{err: func(*flawed) error { return registry.ErrSessionLost }}},
	{"R103", "a read that Close cuts short is unavailable", "Sessions/CloseRacesCalls", "want ErrSessionLost",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if errors.Is(err, registry.ErrSessionLost) {
				err = registry.ErrUnavailable
			}
			return nodes, err
		}}},
}
