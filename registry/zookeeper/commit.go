package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// unmatched is the version that is sent for one that ZooKeeper cannot hold: the service then answers in the contract's
// order (ErrNotFound, ErrDenied, ErrVersion, ErrNotEmpty). Versions there are 32 bits wide and wrap: only a node that
// was set 4,294,967,294 times is at -2. (-1 would match any.)
const unmatched = -2

// Commit is one request, sent once.
func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.reg.cfg.Limits.Validate(ops); err != nil {
		return 0, fmt.Errorf("zookeeper: %w", err)
	}
	for i, op := range ops {
		if s.tree.reserves(op.Path) {
			return 0, fmt.Errorf("zookeeper: %w: operation %d: %s belongs to ZooKeeper itself", registry.ErrInvalid, i, op.Path)
		}
	}
	if err := s.Alive(ctx); err != nil {
		return 0, err
	}
	w, err := s.link.Multi(ctx, s.requests(ops)...)
	if err != nil {
		return 0, s.refusal(ops, w.Results, err)
	}
	return registry.Revision(w.Zxid), nil
}

// requests are operations as ZooKeeper knows them. What many have of their own is made at once: a commit may have
// hundreds. Values are copied, since their owner may go before they are sent.
func (s *session) requests(ops []registry.Op) []any {
	size, n := 0, 0
	for _, op := range ops {
		if size += len(op.Value); op.Kind == registry.OpSet {
			n++
		}
	}
	values, sets, all := make([]byte, 0, size), make([]zk.SetDataRequest, 0, n), make([]any, len(ops))
	for i, op := range ops {
		path, from := s.tree.at(op.Path), len(values)
		values = append(values, op.Value...)
		value := values[from:len(values):len(values)] // never nil, which Java's clients would have to read as null
		switch op.Kind {
		case registry.OpCheck:
			all[i] = &zk.CheckVersionRequest{Path: path, Version: version(op.Version)}
		case registry.OpSet:
			sets = append(sets, zk.SetDataRequest{Path: path, Data: value, Version: version(op.Version)})
			all[i] = &sets[len(sets)-1]
		case registry.OpDelete:
			all[i] = &zk.DeleteRequest{Path: path, Version: version(op.Version)}
		case registry.OpCreateEphemeral:
			all[i] = &zk.CreateRequest{Path: path, Data: value, Acl: s.reg.acl, Flags: zk.FlagEphemeral}
		default: // OpCreate: Validate lets no other pass
			all[i] = &zk.CreateRequest{Path: path, Data: value, Acl: s.reg.acl}
		}
	}
	return all
}

func version(v registry.Version) int32 {
	if v > math.MaxInt32 {
		return unmatched
	}
	return int32(v) //nolint:gosec // Validate has seen that it is not less than -1
}

// refusal says why a commit failed. The first result with an error is the
// operation's; those that follow only say that the commit had failed by then.
func (s *session) refusal(ops []registry.Op, results []zk.MultiResponse, err error) error {
	if link.IsAny(err, sentinels) {
		return err
	}
	failed := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
	if failed >= 0 && failed < len(ops) {
		op := ops[failed]
		if is := s.reason(op, results[failed].Error); is != nil {
			op.Value = bytes.Clone(op.Value)
			return &registry.CommitError{Index: failed, Op: op, Err: is}
		}
	}
	// The service refused the whole for a reason that is none of an operation's: a quota, or that it is too busy.
	return fmt.Errorf("zookeeper: commit: %w: %w", registry.ErrUnavailable, err)
}

// reason is what the service says of one operation, in the contract's words; nil when the contract has none.
func (s *session) reason(op registry.Op, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if op.Kind == registry.OpCreate || op.Kind == registry.OpCreateEphemeral {
			return registry.ErrNoParent
		}
		return registry.ErrNotFound
	case errors.Is(err, zk.ErrNodeExists):
		return registry.ErrExists
	case errors.Is(err, zk.ErrBadVersion):
		return registry.ErrVersion
	case errors.Is(err, zk.ErrNotEmpty):
		return registry.ErrNotEmpty
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return registry.ErrEphemeralParent
	case denies(err):
		return fmt.Errorf("%w: %s: %w", registry.ErrDenied, s.reg.who(), err)
	}
	return nil
}

// denials are the answers of a server that does not let this user do something.
var denials = []error{zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL}

func denies(err error) bool {
	return link.IsAny(err, denials)
}

// sentinels are the errors that say already what they are in the contract.
var sentinels = []error{
	registry.ErrSessionLost, registry.ErrUncertain, registry.ErrUnavailable,
	registry.ErrInvalid, registry.ErrDenied,
}

// fail wraps what a server says of a request that is no commit. Other errors of the link come back as they are.
func fail(what, path string, err error) error {
	is := registry.ErrUnavailable
	switch {
	case link.IsAny(err, sentinels):
		return err
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("zookeeper: %s %s: %w", what, path, registry.ErrNotFound)
	case denies(err):
		is = registry.ErrDenied
	}
	return fmt.Errorf("zookeeper: %s %s: %w: %w", what, path, is, err)
}
