package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/elasticron/elasticron/registry"
)

// atClose remembers paths of each commit of a session, and has finish act on those that are left when it closes.
func atClose(note func(paths map[string]bool, ops []registry.Op, err error), finish func(s *flawed, ctx context.Context, paths []string) error) flaw {
	const key = "paths"
	return flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			noted := once(s, key, func() map[string]bool { return map[string]bool{} })
			s.mu.Lock()
			defer s.mu.Unlock()
			note(noted, ops, err)
			return rev, err
		},
		close: func(s *flawed, ctx context.Context) error {
			var left []string
			for path := range once(s, key, func() map[string]bool { return map[string]bool{} }) {
				left = append(left, path)
			}
			return finish(s, ctx, left)
		},
	}
}

func deleteThenClose(s *flawed, ctx context.Context, paths []string) error { //nolint:revive // a method expression has its receiver first
	for _, p := range paths {
		_, _ = s.Session.Commit(ctx, registry.Delete(p, registry.AnyVersion))
	}
	return s.Session.Close(ctx)
}

func closeThenMake(s *flawed, ctx context.Context, paths []string) error { //nolint:revive // a method expression has its receiver first
	err := s.Session.Close(ctx)
	store, failed := s.reg.OpenStore(ctx)
	if failed != nil {
		return err
	}
	defer store.Close(ctx)
	for _, p := range paths {
		_, _ = store.Commit(ctx, registry.Create(p, nil))
	}
	return err
}

// fallen has who opens a session after a Delete see lower revisions than before.
func fallen(by registry.Revision) flaw {
	var deleted sync.Map // by harness: a flaw is tried more than once
	behind := func(s *flawed) bool { fell, _ := remembered[bool](s, "behind"); return fell }
	return flaw{
		opened: func(s *flawed, _ context.Context) {
			_, is := deleted.Load(s.flaw)
			s.remember("behind", is)
		},
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if ops[0].Kind == registry.OpDelete && strings.HasSuffix(ops[0].Path, "/00000") { // not the proofs of faults
				deleted.Store(s.flaw, true)
			}
			rev, err := s.Session.Commit(ctx, ops...)
			if behind(s) {
				rev = max(1, rev-by)
			}
			return rev, err
		},
	}
}

// ownersBreakages take nodes for somebody else's, or commits for theirs to send again.
var ownersBreakages = []breakage{
	{"R9 R17", "a refused Delete makes an ephemeral node nobody's", "Commit/NodesGoWithTheirOwners", "still exists",
		atClose(func(paths map[string]bool, ops []registry.Op, err error) {
			for _, op := range ops {
				if err != nil && op.Kind == registry.OpDelete {
					paths[op.Path] = true
				}
			}
		}, closeThenMake)},
	{"R12 R17", "a refused ephemeral node goes with the session all the same", "Commit/NodesGoWithTheirOwners", "the node changed",
		atClose(func(paths map[string]bool, ops []registry.Op, err error) {
			for _, op := range ops {
				if err != nil && op.Kind == registry.OpCreateEphemeral {
					paths[op.Path] = true
				}
			}
		}, deleteThenClose)},
	{"R9 R12", "an ephemeral node that another has deleted goes with the session all the same", "Commit/NodesGoWithTheirOwners", "the node changed",
		atClose(func(paths map[string]bool, ops []registry.Op, err error) {
			for _, op := range ops {
				if err == nil && op.Kind == registry.OpDelete {
					delete(paths, op.Path)
				} else if err == nil && op.Kind == registry.OpCreateEphemeral {
					paths[op.Path] = true
				}
			}
		}, deleteThenClose)},
	{"R18", "of many that are denied the last is named", "Sessions/Denied", "the first that fails is 1",
		onCommitError(func(_ *flawed, _ context.Context, ops []registry.Op, ce *registry.CommitError) error {
			for i := len(ops) - 1; errors.Is(ce, registry.ErrDenied) && i > ce.Index; i-- {
				if strings.HasPrefix(ops[i].Path+"/", ce.Op.Path+"/") || strings.HasPrefix(ce.Op.Path, ops[i].Path+"/") {
					return &registry.CommitError{Index: i, Op: ops[i], Err: registry.ErrDenied}
				}
			}
			return ce
		})},
	{"R9 R99", "a session owns a hundred nodes at most", "Sessions/ThousandNodesGo", "outlive its Close",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			ops = slices.Clone(ops)
			for i := range ops {
				if ops[i].Kind == registry.OpCreateEphemeral {
					n, _ := remembered[int](s, "owned")
					if s.remember("owned", n+1); n >= 100 {
						ops[i].Kind = registry.OpCreate
					}
				}
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R28 R85", "revisions fall with a restart when the newest nodes are gone", "Commit/RevisionsOutliveRestart", "a Delete before it had", fallen(8)},
	{"R19", "Sets and checks at versions are sent again", "Uncertain/Swallowed", "was it sent twice?",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			atVersions := !slices.ContainsFunc(ops, func(op registry.Op) bool {
				return op.Kind != registry.OpSet && op.Kind != registry.OpCheck || op.Version < 0
			})
			for errors.Is(err, registry.ErrUncertain) && atVersions && len(ops) > 1 && ctx.Err() == nil && s.Session.Err() == nil {
				rev, err = s.Session.Commit(ctx, ops...)
			}
			return rev, err
		}}},
}
