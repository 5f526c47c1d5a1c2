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

var _ registry.Session = (*session)(nil)

func newSession(r *Registry, lease int64, sent time.Time, ttl time.Duration) *session {
	s := newEndless(r)
	s.lease = lease
	s.ttl.Store(int64(ttl))
	s.Begin(strconv.FormatInt(lease, 16), deadline(sent, ttl), lead(ttl))
	s.Go(s.heartbeat)
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
	return s.CloseOnce(func() error {
		defer s.reg.sessions.Remove(s)
		return s.revoke(ctx)
	})
}

func (s *session) revoke(ctx context.Context) error {
	if s.lease == noLease {
		return nil
	}
	ctx, cancel := lifetime.Farewell(ctx, s.timeout())
	defer cancel()
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

// heartbeat renews the lease every quarter of the timeout, and at once again
// after a failure: a member that hangs costs one attempt, not the session.
func (s *session) heartbeat() {
	var p *pulse
	defer func() { p.stop() }()
	for n := 0; ; {
		interval := s.timeout() / 4
		if !await(s.life, interval, n) {
			return
		}
		if p == nil {
			p = newPulse(s)
		}
		switch err := p.beat(interval); {
		case err == nil:
			n = 0
		case errors.Is(err, errExpired):
			s.Lose(errExpired)
			return
		default:
			n++
			p.stop()
			p = nil
		}
	}
}

// await waits for the next heartbeat: the interval, or a moment after failures.
func await(ctx context.Context, interval time.Duration, failures int) bool {
	if failures > 0 {
		return pause(ctx, failures-1)
	}
	return wait.For(ctx, interval)
}

// A pulse is one keep-alive stream. It is kept open, since every new stream
// logs in again. At most one heartbeat is on its way, so that the send time of
// the one that is acknowledged is known.
type pulse struct {
	s      *session
	ctx    context.Context
	cancel context.CancelFunc
	stream pb.Lease_LeaseKeepAliveClient
}

func newPulse(s *session) *pulse {
	p := &pulse{s: s}
	p.ctx, p.cancel = context.WithCancel(s.life)
	return p
}

func (p *pulse) stop() {
	if p != nil {
		p.cancel()
	}
}

// beat renews the lease within timeout, or breaks the stream.
func (p *pulse) beat(timeout time.Duration) (err error) {
	watchdog := time.AfterFunc(timeout, p.cancel)
	defer watchdog.Stop()
	if p.stream == nil {
		if p.stream, err = p.s.reg.leases.LeaseKeepAlive(p.ctx, callOptions...); err != nil {
			return err
		}
	}
	sent := time.Now()
	if err := p.stream.Send(&pb.LeaseKeepAliveRequest{ID: p.s.lease}); err != nil {
		return err
	}
	answer, err := p.stream.Recv()
	if err != nil {
		return err
	}
	if answer.TTL <= 0 {
		return errExpired
	}
	if ttl := time.Duration(answer.TTL) * time.Second; p.s.Extend(deadline(sent, ttl), lead(ttl)) {
		p.s.ttl.Store(int64(ttl))
	}
	return nil
}
