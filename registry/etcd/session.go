package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/share"
	"github.com/elasticron/elasticron/registry/internal/wait"
	"github.com/elasticron/elasticron/registry/latch"
)

// errExpired is why a session ended.
var errExpired = errors.New("the service has ended the lease")

// A session is one lease.
type session struct {
	*lifetime.Lifetime

	reg     *Registry
	lease   int64
	life    context.Context // of the Lifetime, as requests of its own need it
	ttl     atomic.Int64    // as the service granted it last
	commits *share.Queue[*plan, answer]
	reads   *share.Queue[[]*pb.RequestOp, *pb.TxnResponse]
}

func newSession(r *Registry, lease int64, sent time.Time, ttl time.Duration) *session {
	s := newEndless(r)
	s.lease = lease
	s.ttl.Store(int64(ttl))
	s.Begin(strconv.FormatInt(lease, 16), deadline(sent, ttl), lead(ttl))
	time.AfterFunc(time.Until(sent.Add(ttl/4)), func() { s.Go(s.heartbeat) })
	return s
}

// noLease is that of a session which has none, and so no end but Close.
const noLease = 0

// newEndless makes a session that serves a store.
func newEndless(r *Registry) *session {
	s := &session{Lifetime: lifetime.New("etcd"), reg: r, lease: noLease}
	s.life = withLeader(s.Context())
	s.ttl.Store(r.cfg.leaseSeconds() * int64(time.Second)) // its watchers ping as others do
	s.commits = share.New(s.sharing())
	s.reads = share.New(s.sharingReads())
	return s
}

// deadline leaves a tenth for clocks that run at different rates.
func deadline(sent time.Time, ttl time.Duration) time.Time { return sent.Add(ttl - ttl/10) }

// lead is by how much Done comes before the deadline.
func lead(ttl time.Duration) time.Duration { return ttl / 20 }

func (s *session) Limits() registry.Limits { return s.reg.cfg.Limits }

// Close revokes the lease, also that of a lost session.
func (s *session) Close(ctx context.Context) error {
	return s.CloseOnce(ctx, s.timeout(), s.revoke)
}

func (s *session) revoke(ctx context.Context) error {
	defer s.reg.sessions.Remove(s)
	s.End()
	if s.lease == noLease {
		return nil
	}
	err := s.reg.retry(ctx, "end session", func(ctx context.Context) error {
		_, err := s.reg.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: s.lease}, callOptions...)
		if errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; its nodes vanish only when it expires", err)
	}
	return nil
}

func (s *session) timeout() time.Duration { return time.Duration(s.ttl.Load()) }

// heartbeat renews the lease every quarter of the timeout, and at once again after a failure. Where an answer is late
// another goroutine goes on beside it: a member that hangs costs one attempt, and one that is slow costs none.
func (s *session) heartbeat() {
	for n := 0; s.Err() == nil; n++ {
		switch useful, relieved := s.pulse(); {
		case relieved:
			return
		case useful:
			n = 0
		}
		pause(s.life, n)
	}
}

// pulse sends heartbeats on one stream until it breaks, or until an answer is late and another goroutine has relieved it;
// it reports whether any was acknowledged. One at most is on its way on a stream: so it is known when it was sent. A stream
// shows one token, and breaks when that is refused.
func (s *session) pulse() (useful, relieved bool) {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	watchdog := time.AfterFunc(s.timeout()/4, func() {
		s.Go(s.heartbeat)
		time.AfterFunc(s.timeout(), cancel) // an answer later than that extends nothing
	})
	var stream pb.Lease_LeaseKeepAliveClient
	token, err := s.reg.login.forBeat(ctx)
	if err == nil {
		stream, err = s.reg.leases.LeaseKeepAlive(show(ctx, token), callOptions...)
	}
	for err == nil {
		sent := time.Now()
		if err = s.beat(stream, sent); err != nil {
			break
		}
		if !watchdog.Stop() {
			return true, true
		}
		useful = true
		if !wait.For(ctx, time.Until(sent.Add(s.timeout()/4))) {
			break
		}
		watchdog.Reset(s.timeout() / 4)
	}
	switch {
	case s.reg.login.refused(token, err):
		s.reg.login.beats.Store(true)
	case judge(err) == denied: // no hurry
		wait.For(ctx, s.timeout()/8)
	}
	return useful, !watchdog.Stop()
}

// beat renews the lease, or finds that the service has ended it.
func (s *session) beat(stream pb.Lease_LeaseKeepAliveClient, sent time.Time) error {
	_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: s.lease}) // where it fails, Recv says why
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return err
	case answer.TTL <= 0:
		s.Lose(errExpired)
		return errExpired
	}
	if ttl := time.Duration(answer.TTL) * time.Second; s.Extend(deadline(sent, ttl), lead(ttl)) {
		s.ttl.Store(int64(ttl))
	}
	return nil
}

// alone is a session whose commits share no request, and so no revision: the
// contenders for a lock are told apart by it.
type alone struct{ *session }

func (s alone) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	return s.commit(ctx, ops, false)
}

// Lock queues up in dir, in the order of creation revisions.
func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, alone{s}, dir, value, false, s.Spawn)
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, alone{s}, dir, value, true, s.Spawn)
}
