package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

// defaultLimits is what one commit may hold on an embedded server.
var defaultLimits = registry.Limits{MaxOps: 2000, MaxBytes: 8 << 20, MaxValue: 4 << 20}

// Config says where a server keeps its data and where it listens. The zero value
// is a temporary server on a free port of the loopback interface.
type Config struct {
	// Dir is the data folder; it is made when missing. Empty: a temporary folder, removed by Close.
	Dir string

	// Addr is the client address host:port. Empty: 127.0.0.1 and a free port. There is
	// no login and no encryption: keep it to a network that you trust.
	Addr string

	// Limits of a commit. A zero field: 2,000 operations, 8 MiB, 4 MiB in a value.
	Limits registry.Limits

	// Tune, when set, may change the server's own configuration last: shorter
	// ticks and no fsync in tests, TLS, more members.
	Tune func(*embed.Config)
}

// A Server is a running etcd server. Start makes it; its owner closes it.
type Server struct {
	etcd   *embed.Etcd
	limits registry.Limits
	temp   string
	lock   *fileutil.LockedFile

	serving chan *grpc.Server // filled before the first client is served
	once    sync.Once
	err     error
}

// Start runs a server and waits until it serves, or ctx ends. The error wraps
// registry.ErrInvalid when cfg is wrong or the folder is in use.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{limits: settings.FillLimits(cfg.Limits, defaultLimits), serving: make(chan *grpc.Server, 1)}
	if err := s.prepare(&cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w", err), s.release())
	}
	conf, err := s.configure(cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w: %w", registry.ErrInvalid, err), s.release())
	}
	if s.etcd, err = embed.StartEtcd(conf); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w: %w", registry.ErrUnavailable, err), s.release())
	}
	select {
	case server := <-s.serving:
		s.serving <- server
		// For whoever finds the folder in use.
		if _, err := s.lock.WriteAt([]byte(s.Endpoint()), 0); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded: %w: folder %s: %w", registry.ErrUnavailable, cfg.Dir, err), s.Close())
		}
		return s, nil
	case err = <-s.etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(fmt.Errorf("embedded: %w: %w", registry.ErrUnavailable, err), s.Close())
}

// prepare makes the folder and takes it for this server.
func (s *Server) prepare(cfg *Config) (err error) {
	if cfg.Dir == "" {
		if s.temp, err = os.MkdirTemp("", "elasticron-etcd-"); err != nil {
			return err
		}
		cfg.Dir = s.temp
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("%w: folder %s: %w", registry.ErrInvalid, cfg.Dir, err)
	}
	// etcd itself would wait for the other process without a word.
	file := filepath.Join(cfg.Dir, "elasticron.lock")
	s.lock, err = fileutil.TryLockFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return fmt.Errorf("%w: folder %s is in use by %s, or choose another folder", registry.ErrInvalid, cfg.Dir, howToShare(file))
	case err != nil:
		return fmt.Errorf("%w: folder %s: %w", registry.ErrInvalid, cfg.Dir, err)
	}
	if err := s.lock.Truncate(0); err != nil {
		return fmt.Errorf("%w: folder %s: %w", registry.ErrInvalid, cfg.Dir, err)
	}
	return nil
}

// howToShare says by which address others reach the server that holds a folder. It has
// written it into the lock, once it serves.
func howToShare(file string) string {
	at, err := os.ReadFile(file)
	if _, _, bad := net.SplitHostPort(string(at)); err != nil || bad != nil {
		return "another server; give that one an address (embedded:///folder?namespace=shop&addr=127.0.0.1:2379) and open etcd://127.0.0.1:2379/shop here"
	}
	return fmt.Sprintf("the server at %s; open etcd://%s/namespace to share it (its setting addr= keeps the address over restarts)", at, at)
}

func (s *Server) configure(cfg Config) (*embed.Config, error) {
	addr := cfg.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("address %q is not host:port", addr)
	}
	conf := embed.NewConfig()
	conf.Dir = cfg.Dir
	conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	clients, peers := url.URL{Scheme: "http", Host: addr}, url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	conf.ListenClientUrls, conf.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	conf.ListenPeerUrls, conf.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	conf.InitialCluster = conf.InitialClusterFromName(conf.Name)
	conf.EnableGRPCGateway = false
	conf.AutoCompactionMode, conf.AutoCompactionRetention = embed.CompactorModeRevision, "10000"
	// A create takes three compares; a request holds each key up to four times.
	conf.MaxTxnOps = uint(3*s.limits.MaxOps + 8)
	conf.MaxRequestBytes = uint(4*s.limits.MaxBytes + 1<<20)
	conf.ServiceRegister = s.serve
	if cfg.Tune != nil {
		cfg.Tune(conf)
	}
	return conf, nil
}

// serve is called once the server has joined its cluster, before it accepts.
func (s *Server) serve(server *grpc.Server) {
	select {
	case s.serving <- server:
	default:
	}
}

// Endpoint is the client address, host:port.
func (s *Server) Endpoint() string { return s.etcd.Clients[0].Addr().String() }

// Registry connects to the server. Endpoints of cfg are ignored; a zero field of
// its Limits is the server's. Closing the Registry leaves the server running.
func (s *Server) Registry(ctx context.Context, cfg etcd.Config) (*etcd.Registry, error) {
	cfg.Endpoints = []string{s.Endpoint()}
	cfg.Limits = settings.FillLimits(cfg.Limits, s.limits)
	return etcd.Open(ctx, cfg)
}

// Close stops the server, cutting clients that are still connected, and removes a temporary folder. It is idempotent.
func (s *Server) Close() error {
	s.once.Do(func() {
		// etcd would wait seconds for open watches to end by themselves.
		select {
		case server := <-s.serving:
			server.Stop()
		default:
		}
		// Nor is there anybody to hand a leadership to.
		s.etcd.Server.HardStop()
		s.etcd.Close()
		s.err = s.release()
	})
	return s.err
}

func (s *Server) release() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	if s.temp != "" {
		err = errors.Join(err, os.RemoveAll(s.temp))
	}
	return err
}
