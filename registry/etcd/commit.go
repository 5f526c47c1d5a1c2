package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/elasticron/elasticron/registry"
)

// errNoReason would say that etcd's compares and ours disagree.
var errNoReason = errors.New("the service refused the commit, but every operation could be applied")

// Commit is one transaction, and one request: the reason of a refusal comes with it.
// It is two when a parent was made again since it was last seen: the first was
// refused for that alone, so it certainly did nothing, and the second relies on
// nothing that was seen before.
func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.reg.cfg.Limits.Validate(ops); err != nil {
		return 0, fmt.Errorf("etcd: %w", err)
	}
	if err := s.alive(ctx); err != nil {
		return 0, err
	}
	for p := newPlan(ops, s.lease, &s.reg.parents); ; p = newPlan(ops, s.lease, nil) {
		resp, err := s.send(ctx, p.request())
		if err != nil {
			return 0, err
		}
		if resp.Succeeded && !p.doomed {
			p.applied(resp.Responses, &s.reg.parents)
			return registry.Revision(resp.Header.GetRevision()), nil
		}
		p.refused(resp.Responses, &s.reg.parents)
		if refusal := p.failure(resp.Responses); refusal != nil {
			return 0, refusal
		}
		if !p.outdated {
			return 0, fail("commit", registry.ErrUnavailable, errNoReason)
		}
	}
}

// send repeats a write only when the service has certainly not taken it.
func (s *session) send(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx, release := s.bound(ctx)
	defer release()
	leader := withLeader(ctx)
	for n := 0; ; n++ {
		departure := newDeparture()
		resp, err := s.reg.kv.Txn(leader, txn, departure.options()...)
		if err == nil {
			return resp, nil
		}
		v := judge(err)
		unsent := !departure.sent()
		if !v.sure && !unsent {
			return nil, s.uncertain(ctx, err)
		}
		switch {
		case errors.Is(v.is, registry.ErrSessionLost):
			s.lose(errExpired)
			return nil, s.Err()
		case s.Err() != nil:
			return nil, s.Err()
		case s.reg.isClosed():
			s.lose(errWasClosed)
			return nil, s.Err()
		case ctx.Err() != nil:
			return nil, gaveUp(ctx, "commit", nil)
		case !v.again || v == stale && n >= maxStale:
			return nil, fail("commit", v.is, err)
		}
		if !pause(ctx, n) {
			return nil, gaveUp(ctx, "commit", err)
		}
	}
}

// uncertain says that a write left and no answer came, and what ended the wait.
func (s *session) uncertain(ctx context.Context, err error) error {
	switch lost := s.Err(); {
	case lost != nil:
		err = lost
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return fail("commit", registry.ErrUncertain, err)
}
