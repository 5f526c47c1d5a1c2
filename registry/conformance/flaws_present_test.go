package conformance

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// onChecks calls change for the revision of a commit of checks alone, with the nodes that it checked.
func onChecks(change func(rev registry.Revision, checked []registry.Node) registry.Revision) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		rev, err := s.Session.Commit(ctx, ops...)
		if err != nil || slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Kind != registry.OpCheck }) {
			return rev, err
		}
		paths := make([]string, len(ops))
		for i, op := range ops {
			paths[i] = op.Path
		}
		nodes, err := s.Session.Get(ctx, paths...)
		if err != nil {
			return rev, err
		}
		return change(rev, nodes), nil
	}}
}

// fromReads lets decide answer the first operation of a commit from what its session has read last of a path.
func fromReads(decide func(op registry.Op, read func(path string) (n registry.Node, known bool)) (answered bool, err error)) flaw {
	return flaw{
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for _, n := range nodes {
				s.remember("read "+n.Path, n)
			}
			return nodes, err
		},
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			answered, err := decide(ops[0], func(path string) (registry.Node, bool) { return remembered[registry.Node](s, "read "+path) })
			if err != nil {
				return 0, &registry.CommitError{Op: ops[0], Err: err}
			}
			rev, err := s.Session.Commit(ctx, ops...)
			if answered {
				return max(rev, 1), nil
			}
			return rev, err
		},
	}
}

// presentBreakages decide by what was before.
var presentBreakages = []breakage{
	{"R84 R85", "checks return the Modified of the first node that they check", "Commit/ChecksTellTheNewest", "and checks of other nodes",
		onChecks(func(_ registry.Revision, checked []registry.Node) registry.Revision { return checked[0].Modified })},
	{"R84 R85", "checks return the highest Modified that they check", "Commit/ChecksTellTheNewest", "and checks of other nodes",
		onChecks(func(rev registry.Revision, checked []registry.Node) registry.Revision {
			highest := registry.Revision(0)
			for _, n := range checked {
				highest = max(highest, n.Modified)
			}
			return highest
		})},
	{"R112", "a Check of what the session has read is answered from that", "Commit/DecidedByThePresent", "succeeded; want",
		fromReads(func(op registry.Op, read func(string) (registry.Node, bool)) (bool, error) {
			n, known := read(op.Path)
			holds := known && n.Exists() && (op.Version == registry.AnyVersion || op.Version == n.Version)
			return op.Kind == registry.OpCheck && holds, nil
		})},
	{"R112", "a Set at another version than was read is refused for that", "Commit/DecidedByThePresent", "which the session had read before that",
		fromReads(func(op registry.Op, read func(string) (registry.Node, bool)) (bool, error) {
			n, known := read(op.Path)
			if op.Kind == registry.OpSet && known && n.Exists() && op.Version >= 0 && op.Version != n.Version {
				return false, registry.ErrVersion
			}
			return false, nil
		})},
	{"R112", "a create of what was read is refused for that", "Commit/DecidedByThePresent", "which the session had read before that",
		fromReads(func(op registry.Op, read func(string) (registry.Node, bool)) (bool, error) {
			n, known := read(op.Path)
			if (op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral) && known && n.Exists() {
				return false, registry.ErrExists
			}
			return false, nil
		})},
	{"R112", "a create below what was read as missing is refused for that", "Commit/DecidedByThePresent", "which the session had read before that",
		fromReads(func(op registry.Op, read func(string) (registry.Node, bool)) (bool, error) {
			parent, known := read(path.Dir(op.Path))
			if (op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral) && known && !parent.Exists() {
				return false, registry.ErrNoParent
			}
			return false, nil
		})},
	{"R1 R3", "a parent is looked for before the commit", "Commit/ParentsAndChildrenRace", "were applied; what is left",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			parent := path.Dir(ops[0].Path)
			before, err := s.Session.Get(ctx, parent)
			if err != nil {
				return 0, err
			}
			<-time.After(time.Millisecond)
			rev, err := s.Session.Commit(ctx, ops...)
			if errors.Is(err, registry.ErrNoParent) && before[0].Exists() {
				return s.Session.Commit(ctx, append([]registry.Op{registry.Create(parent, nil)}, ops...)...)
			}
			return rev, err
		}}},
	{"R6 R39", "paths of one commit that differ in case are duplicates", "Commit/AlikePathsInOneCommit", "failed: invalid request",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			seen := map[string]bool{}
			for _, op := range ops {
				if seen[strings.ToLower(op.Path)] {
					return 0, registry.ErrInvalid
				}
				seen[strings.ToLower(op.Path)] = true
			}
			return s.Session.Commit(ctx, ops...)
		}}},
}
