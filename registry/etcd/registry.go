package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/tool"
)

const (
	// Without these a connection that broke comes back seconds after the server.
	reconnectMin = 50 * time.Millisecond
	reconnectMax = 500 * time.Millisecond

	keepAliveTime    = 10 * time.Second // gRPC takes no less
	keepAliveTimeout = time.Second

	// farewell is how long Registry.Close waits for a service to end the sessions that are still open.
	farewell = 500 * time.Millisecond
)

// callOptions go with every request: wait for a connection instead of failing at once, and take answers of any size.
var callOptions = []grpc.CallOption{
	grpc.WaitForReady(true),
	grpc.MaxCallSendMsgSize(math.MaxInt32),
	grpc.MaxCallRecvMsgSize(math.MaxInt32),
}

// A Registry is one etcd cluster, reached through one client. It implements
// registry.Registry and is safe for concurrent use. Open makes it.
type Registry struct {
	cfg    Config
	client *clientv3.Client
	login  *login
	kv     pb.KVClient
	leases pb.LeaseClient
	watch  pb.WatchClient

	sessions lifetime.Open[*session]
}

// Open connects to the cluster and reads once, so that a wrong address or a wrong password shows here. It waits no
// longer than cfg.DialTimeout and ctx. The error wraps ErrInvalid for a bad cfg, ErrDenied for a bad login, and
// ErrUnavailable, naming every endpoint and its reason, when nobody answers. The caller closes the Registry.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	// The last part of the wait is for finding out why nobody answers.
	patience, stop := context.WithTimeout(ctx, cfg.DialTimeout-min(cfg.DialTimeout/4, time.Second))
	defer stop()
	client, err := clientv3.New(clientConfig(cfg))
	if err != nil {
		return nil, fail("open", registry.ErrInvalid, err)
	}
	conn := client.ActiveConnection()
	r := &Registry{
		cfg: cfg, client: client, login: newLogin(pb.NewAuthClient(conn), cfg),
		kv: pb.NewKVClient(conn), leases: pb.NewLeaseClient(conn), watch: pb.NewWatchClient(conn),
	}
	if err := r.probe(patience); err != nil {
		err = explain(ctx, cfg, err)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func clientConfig(cfg Config) clientv3.Config {
	options := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: reconnectMin, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMax},
			// An attempt that takes longer is given up.
			MinConnectTimeout: max(time.Second, min(cfg.DialTimeout, cfg.SessionTimeout/3)),
		}),
	}
	return clientv3.Config{
		Endpoints:            cfg.Endpoints,
		TLS:                  cfg.TLS,
		DialTimeout:          cfg.DialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		PermitWithoutStream:  true,
		DialOptions:          append(options, cfg.DialOptions...),
		Logger:               zap.NewNop(),
		// One attempt and no more: the client repeats a write whose answer was a timeout of the server's, which may be
		// applied twice then. What may be repeated is repeated here.
		MaxUnaryRetries: 1,
	}
}

// probe reads once, linearizably: a quorum answers.
func (r *Registry) probe(ctx context.Context) error {
	return r.retry(ctx, "open", func(ctx context.Context) error {
		key := nodeKey("/" + r.cfg.Namespace)
		_, err := r.kv.Range(ctx, &pb.RangeRequest{Key: key, KeysOnly: true}, callOptions...)
		return err
	})
}

// Namespace returns Config.Namespace.
func (r *Registry) Namespace() string { return r.cfg.Namespace }

// Open grants a lease and starts its heartbeat. See registry.Registry.
func (r *Registry) Open(ctx context.Context) (registry.Session, error) {
	var s *session
	err := r.retry(ctx, "open session", func(ctx context.Context) error {
		// The wait for a connection is not part of the session's life.
		left := new(departure)
		lease, err := r.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: r.cfg.leaseSeconds()}, left.options()...)
		if err != nil {
			return err
		}
		ttl := time.Duration(lease.TTL) * time.Second
		// Heartbeats that take as long keep no session.
		if took := time.Since(left.at()); took > ttl/2 {
			return fmt.Errorf("the lease came after %v", took)
		}
		s = newSession(r, lease.ID, left.at(), ttl)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !r.sessions.Add(s) {
		return nil, errors.Join(errRegistryClosed, s.Close(ctx))
	}
	return s, nil
}

var errRegistryClosed = fmt.Errorf("etcd: %w", registry.ErrClosed)

// OpenStore grants no lease and sends nothing. See registry.Registry.
func (r *Registry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newEndless(r)
	if !r.sessions.Add(s) {
		return nil, errRegistryClosed
	}
	return tool.One("etcd", s), nil
}

// Close ends the sessions that are still open, waiting at most half a second
// for the service, and closes the connections. It is idempotent.
func (r *Registry) Close() error {
	if !r.sessions.Close(farewell) {
		return nil
	}
	if err := r.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: close: %w", err)
	}
	return nil
}
