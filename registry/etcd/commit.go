package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

// errNoReason would say that etcd's compares and ours disagree.
var errNoReason = errors.New("the service refused the commit, but every operation could be applied")

// Commit is one transaction, and one request. It is two when it is refused, unless there is but one reason for that:
// the first certainly did nothing, and the second compares all anew and tells the reason.
//
// It shares a request with others of the session when many are under way.
func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	return s.commit(ctx, ops, true)
}

func (s *session) commit(ctx context.Context, ops []registry.Op, shares bool) (registry.Revision, error) {
	if err := s.reg.cfg.Limits.Validate(ops); err != nil {
		return 0, fmt.Errorf("etcd: %w", err)
	}
	if err := s.Alive(ctx); err != nil {
		return 0, err
	}
	send := s.commits.Do
	if !shares {
		send = s.sendAlone
	}
	for p := newPlan(ops, s.lease, false); ; p = newPlan(ops, s.lease, true) {
		if p.unexplained && p.impossible {
			continue // only the reason is asked for
		}
		got, err := send(ctx, p)
		if errors.Is(err, registry.ErrDenied) {
			return 0, s.denial(ctx, ops, err)
		}
		if err != nil {
			return 0, err
		}
		if got.succeeded && !p.impossible {
			return got.revision, nil
		}
		if p.unexplained && p.onlyReason == nil {
			continue
		}
		if refusal := p.failure(got.responses); refusal != nil {
			return 0, refusal
		}
		return 0, fail("commit", registry.ErrUnavailable, errNoReason)
	}
}

// denial names the first operation that this user may not make: etcd says of the whole
// only that there is one. Each is asked for alone, on a condition that never holds.
func (s *session) denial(ctx context.Context, ops []registry.Op, err error) error {
	for i, op := range ops {
		p := newPlan([]registry.Op{op}, s.lease, true)
		p.compares = append(p.compares, versionIs(nodeKey(op.Path), -1))
		p.impossible = false
		switch _, alone := s.sendAlone(ctx, p); {
		case errors.Is(alone, registry.ErrDenied):
			return commitError(i, op, alone)
		case alone != nil:
			return err
		}
	}
	return err
}

// send repeats a write only when the service has certainly not taken it.
func (s *session) send(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	ctx, release := s.Bound(ctx)
	defer release()
	leader := withLeader(ctx)
	for n := 0; ; n++ {
		departure := new(departure)
		var resp *pb.TxnResponse
		err := s.reg.login.call(leader, func(ctx context.Context) (err error) {
			resp, err = s.reg.kv.Txn(ctx, txn, departure.options()...)
			return err
		})
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
			s.Lose(errExpired)
			return nil, s.Err()
		case s.Err() != nil:
			return nil, s.Err()
		case s.reg.sessions.Closed():
			s.Lose(lifetime.ErrClosed)
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
	return fail("commit", registry.ErrUncertain, cmp.Or(s.Err(), ctx.Err(), err))
}
