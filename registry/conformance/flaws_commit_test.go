package conformance

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/elasticron/elasticron/registry"
)

// onCommitError calls change for the CommitError of a commit.
func onCommitError(change func(s *flawed, ctx context.Context, ops []registry.Op, ce *registry.CommitError) error) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		rev, err := s.Session.Commit(ctx, ops...)
		if ce := (*registry.CommitError)(nil); errors.As(err, &ce) {
			return rev, change(s, ctx, ops, ce)
		}
		return rev, err
	}}
}

// onOps calls change for the operations before they are committed.
func onOps(change func(ops []registry.Op) []registry.Op) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		if changed := change(slices.Clone(ops)); len(changed) > 0 {
			ops = changed
		}
		return s.Session.Commit(ctx, ops...)
	}}
}

// onCommitFailure calls change for every failure of a commit.
func onCommitFailure(change func(s *flawed, ctx context.Context, ops []registry.Op, err error) error) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		rev, err := s.Session.Commit(ctx, ops...)
		if err != nil {
			return rev, change(s, ctx, ops, err)
		}
		return rev, err
	}}
}

var commitBreakages = []breakage{
	{"R18", "the failure index is always 0", "Commit/FailureIndexMiddle", "the error names operation 0; the first that fails is 1",
		onCommitError(func(_ *flawed, _ context.Context, ops []registry.Op, ce *registry.CommitError) error {
			return &registry.CommitError{Index: 0, Op: ops[0], Err: ce.Err}
		})},
	{"R18", "of two failures the later is named", "Commit/FailureIndexTwoBadPicksFirst", "at operation 1", onCommitError(laterFailure)},
	{"R18", "the failure is no CommitError", "Commit/ErrorIsTyped", "is no *CommitError",
		onCommitError(func(_ *flawed, _ context.Context, _ []registry.Op, ce *registry.CommitError) error { return ce.Err })},
	{"R17", "operations before a failure stay applied", "Commit/NoneAppliedOnFailure", "/create exists",
		onCommitError(func(s *flawed, ctx context.Context, ops []registry.Op, ce *registry.CommitError) error {
			for _, op := range ops[:ce.Index] {
				_, _ = s.Session.Commit(ctx, op)
			}
			return ce
		})},
	{"R1", "missing parents are made silently", "Nodes/CreateNoParent", "/a/b) succeeded",
		onCommitError(func(s *flawed, ctx context.Context, ops []registry.Op, ce *registry.CommitError) error {
			if !errors.Is(ce, registry.ErrNoParent) {
				return ce
			}
			parent := ce.Op.Path[:len(ce.Op.Path)-len("/b")]
			if err := registry.EnsurePath(ctx, s.Session, parent); err != nil {
				return err
			}
			_, err := s.Session.Commit(ctx, ops...)
			return err
		})},
	{"R2", "an ephemeral node accepts children", "Nodes/CreateUnderEphemeral", "/mine/child) succeeded",
		onCommitError(func(_ *flawed, _ context.Context, _ []registry.Op, ce *registry.CommitError) error {
			if errors.Is(ce, registry.ErrEphemeralParent) {
				return nil
			}
			return ce
		})},
	{"R3", "Delete takes children along", "Nodes/DeleteWithChildren", "v-1) succeeded",
		onCommitError(func(s *flawed, ctx context.Context, _ []registry.Op, ce *registry.CommitError) error {
			if errors.Is(ce, registry.ErrNotEmpty) {
				return registry.DeleteTree(ctx, s.Session, ce.Op.Path)
			}
			return ce
		})},
	{"R38", "version 0 means any version", "Nodes/SetWrongVersion", "a v0) succeeded",
		onOps(func(ops []registry.Op) []registry.Op {
			for i := range ops {
				if ops[i].Version == 0 {
					ops[i].Version = registry.AnyVersion
				}
			}
			return ops
		})},
	{"R45 R50", "checks are not made", "Commit/CheckMissing", "/b) succeeded",
		onOps(func(ops []registry.Op) []registry.Op {
			return slices.DeleteFunc(ops, func(op registry.Op) bool { return op.Kind == registry.OpCheck })
		})},
	{"R39", "duplicate paths are accepted", "Commit/DuplicatePathRefused", "error <nil>; want ErrInvalid",
		onOps(func(ops []registry.Op) []registry.Op {
			seen := map[string]bool{}
			return slices.DeleteFunc(ops, func(op registry.Op) bool {
				twice := seen[op.Path]
				seen[op.Path] = true
				return twice
			})
		})},
	{"R39", "too many operations become two commits", "Commit/OverMaxOps", "error <nil>; want ErrInvalid",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			var rev registry.Revision
			var err error
			for chunk := range slices.Chunk(ops, s.Limits().MaxOps) {
				if rev, err = s.Session.Commit(ctx, chunk...); err != nil {
					return rev, err
				}
			}
			return rev, err
		}}},
	{"R39", "an oversized value is sent", "Nodes/ValueOverLimitNothingSent", "context deadline exceeded; want ErrInvalid",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if err := s.Limits().Validate(ops); err != nil && len(ops) > 0 && len(ops[0].Value) > s.Limits().MaxValue {
				if err := s.Sync(ctx); err != nil {
					return 0, err
				}
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R39", "the service is asked before a path is looked at", "Nodes/ValueOverLimitNothingSent", "Get of a path that cannot be",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			if err := askAboutInvalid(ctx, s, paths[len(paths)-1]); err != nil {
				return nil, err
			}
			return s.Session.Get(ctx, paths...)
		}}},
	{"R39", "the service is asked before the path of a list is looked at", "Nodes/ValueOverLimitNothingSent", "Children of a path that cannot be",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			if err := askAboutInvalid(ctx, s, path); err != nil {
				return nil, err
			}
			return s.Session.Children(ctx, path)
		}}},
	{"R39", "the service is asked before the path of a lock is looked at", "Nodes/ValueOverLimitNothingSent", "Lock of a path that cannot be",
		flaw{lock: func(s *flawed, ctx context.Context, path string, value []byte) (registry.Lock, error) {
			if err := askAboutInvalid(ctx, s, path); err != nil {
				return nil, err
			}
			return s.Session.Lock(ctx, path, value)
		}}},
	{"R47", "the revision is not that of the commit", "Commit/RevisionIsModified", "and wrote",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			return max(0, rev-1), err
		}}},
	{"R33", "an ended context is an uncertain outcome", "Commit/ContextCancelledBeforeSend", "error outcome unknown",
		onCommitFailure(func(_ *flawed, ctx context.Context, _ []registry.Op, err error) error {
			if ctx.Err() != nil {
				return errors.Join(registry.ErrUncertain, err)
			}
			return err
		})},
	{"R18", "a refusal hits a neighbour", "Commit/ConcurrentEachItsOwn", "want <nil>",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			last := once(s, "last", func() *atomic.Pointer[registry.CommitError] { return new(atomic.Pointer[registry.CommitError]) })
			rev, err := s.Session.Commit(ctx, ops...)
			if ce := (*registry.CommitError)(nil); errors.As(err, &ce) {
				last.Store(ce)
			} else if ce := last.Swap(nil); ce != nil {
				return 0, ce
			}
			return rev, err
		}}},
	{"R19", "an uncertain commit is sent again", "Uncertain/AnswerLostCreate", "node exists; want ErrUncertain", onCommitFailure(sendAgain)},
	{"R19", "a lost request is sent again", "Uncertain/RequestLostCommit", "was it sent twice?", onCommitFailure(sendAgain)},
	{"R40", "an uncertain outcome is called a failure", "Uncertain/AnswerLostCommit", "error registry unavailable; want ErrUncertain",
		onCommitFailure(func(_ *flawed, _ context.Context, _ []registry.Op, err error) error {
			if errors.Is(err, registry.ErrUncertain) {
				return registry.ErrUnavailable
			}
			return err
		})},
	{"R82", "a commit in flight at the loss is called failed", "Uncertain/CommitInFlightAtLoss", "session lost",
		onCommitFailure(func(s *flawed, _ context.Context, _ []registry.Op, err error) error {
			if s.Err() != nil {
				return s.Err()
			}
			return err
		})},
}

func sendAgain(s *flawed, ctx context.Context, ops []registry.Op, err error) error { //nolint:revive // a method expression has its receiver first
	if errors.Is(err, registry.ErrUncertain) {
		_, err = s.Session.Commit(ctx, ops...)
	}
	return err
}

// laterFailure looks for another operation that fails, beside the first.
func laterFailure(s *flawed, ctx context.Context, ops []registry.Op, first *registry.CommitError) error { //nolint:revive // a method expression has its receiver first
	const impossible = "/there/is/no/such/node"
	others := slices.Delete(slices.Clone(ops), first.Index, first.Index+1)
	_, err := s.Session.Commit(ctx, append(others, registry.Check(impossible, 0))...)
	later := (*registry.CommitError)(nil)
	if !errors.As(err, &later) || later.Op.Path == impossible || later.Index < first.Index {
		return first
	}
	return &registry.CommitError{Index: later.Index + 1, Op: later.Op, Err: later.Err}
}

// askAboutInvalid asks the service about a path that cannot be.
func askAboutInvalid(ctx context.Context, s *flawed, path string) error {
	if registry.ValidatePath(path) == nil {
		return nil
	}
	return s.Session.Sync(ctx)
}
