package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// Reasons why a session ended.
var (
	errExpired   = errors.New("the service has ended the lease")
	errSilent    = errors.New("no heartbeat was acknowledged in time")
	errWasClosed = errors.New("closed by its owner")
)

// A session is one lease.
type session struct {
	reg   *Registry
	lease int64
	life  context.Context // ends with the session
	end   context.CancelFunc
	done  chan struct{}
	work  sync.WaitGroup // heartbeat, watchers, and commits that share a request
	crowd crowd

	mu       sync.Mutex
	ttl      time.Duration
	deadline time.Time
	err      error
	alarm    *time.Timer

	closing  sync.Once
	closeErr error
}

var _ registry.Session = (*session)(nil)

func newSession(r *Registry, lease int64, sent time.Time, ttl time.Duration) *session {
	s := &session{reg: r, lease: lease, done: make(chan struct{}), ttl: ttl, deadline: deadline(sent, ttl)}
	s.life, s.end = context.WithCancel(withLeader(context.Background()))
	s.mu.Lock()
	s.alarm = time.AfterFunc(s.untilAlarm(), s.ring)
	s.mu.Unlock()
	s.work.Go(s.heartbeat)
	return s
}

// deadline leaves a tenth for clocks that run at different rates.
func deadline(sent time.Time, ttl time.Duration) time.Time { return sent.Add(ttl - ttl/10) }

// untilAlarm is the time left until Done must be closed: a twentieth of the
// timeout before the deadline, since timers are late and never early.
func (s *session) untilAlarm() time.Duration { return time.Until(s.deadline) - s.ttl/20 }

func (s *session) ring() {
	s.mu.Lock()
	if left := s.untilAlarm(); left > 0 && s.err == nil {
		s.alarm.Reset(left)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.lose(errSilent)
}

// extend takes an acknowledged heartbeat into account.
func (s *session) extend(sent time.Time, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Past the old deadline it is too late: somebody may have acted on it.
	if s.err != nil || s.untilAlarm() <= 0 {
		return
	}
	if d := deadline(sent, ttl); d.After(s.deadline) {
		s.deadline, s.ttl = d, ttl
		s.alarm.Reset(s.untilAlarm())
	}
}

// lose ends the session, once; the first reason stays.
func (s *session) lose(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = fmt.Errorf("etcd: %w: session %s: %w", registry.ErrSessionLost, s.ID(), reason)
	s.alarm.Stop()
	close(s.done)
	s.end()
}

func (s *session) ID() string            { return strconv.FormatInt(s.lease, 16) }
func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

func (s *session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *session) Limits() registry.Limits { return s.reg.cfg.Limits }

// Close revokes the lease, also that of a lost session.
func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.lose(errWasClosed)
		s.work.Wait()
		s.closeErr = s.revoke(ctx)
		s.reg.forget(s)
	})
	return s.closeErr
}

func (s *session) revoke(ctx context.Context) error {
	// A lease that nobody renews is gone after its timeout anyway.
	ctx, cancel := context.WithTimeout(ctx, s.timeout())
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

func (s *session) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ttl
}

// join runs f as part of the session; Close waits for it. False: it is over.
func (s *session) join(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// spawn runs f as part of the session, with a context that ends with it; when it
// is over already, at once.
func (s *session) spawn(f func(ctx context.Context)) {
	if !s.join(func() { f(s.life) }) {
		f(s.life)
	}
}

// bound ties ctx to the session's life. release must be called.
func (s *session) bound(ctx context.Context) (bounded context.Context, release func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(s.Err()) })
	return bounded, func() { stop(); cancel(nil) }
}

// alive reports why a call cannot start.
func (s *session) alive(ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	return ctx.Err()
}

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
			s.lose(errExpired)
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
	p.s.extend(sent, time.Duration(answer.TTL)*time.Second)
	return nil
}
