package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/tool"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// farewell is how long Registry.Close waits for a service to end the sessions that are still open.
const farewell = 500 * time.Millisecond

// A Registry is one ensemble. It holds no connection itself: each session has its
// own. It implements registry.Registry and is safe for concurrent use. Open makes it.
type Registry struct {
	cfg Config
	acl []zk.ACL // of every node that is created

	// open ends with Close.
	open     context.Context
	close    context.CancelFunc
	sessions lifetime.Open[*session]
}

// Open opens a session, makes the chroot when it is missing, reads the namespace's node and closes the session, so that
// a wrong address, a wrong login or an old server shows here. It waits no longer than cfg.DialTimeout and ctx. The
// error wraps ErrInvalid for a bad cfg, ErrDenied when the login does not do, and ErrUnavailable, naming every server
// and its reason, when nobody answers. The caller closes the Registry.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	r := newRegistry(cfg)
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	if err := r.probe(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func newRegistry(cfg Config) *Registry {
	acl := zk.WorldACL(zk.PermAll)
	if cfg.Username != "" {
		acl = []zk.ACL{{Perms: zk.PermAll, Scheme: "auth", ID: ""}}
	}
	r := &Registry{cfg: cfg, acl: acl}
	r.open, r.close = context.WithCancel(context.Background())
	return r
}

// probe tries what every user of the registry needs.
func (r *Registry) probe(ctx context.Context) error {
	s, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(ctx) }() // it expires otherwise
	if err := s.ensureRoot(ctx); err != nil {
		return err
	}
	path := "/" + r.cfg.Namespace
	switch _, _, err := s.link.Get(ctx, s.tree.at(path), false); {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		return nil
	case denies(err):
		return fmt.Errorf("zookeeper: open: %w: %s may not read %s; ask ZooKeeper for its ACL (getAcl), and give the username and password that it names: %w",
			registry.ErrDenied, r.who(), s.tree.at(path), err)
	default:
		return fail("open", path, err)
	}
}

// who is the user, for errors.
func (r *Registry) who() string {
	if r.cfg.Username == "" {
		return "a client without a login"
	}
	return fmt.Sprintf("user %q", r.cfg.Username)
}

// connect opens a session that nobody but the caller knows of.
func (r *Registry) connect(ctx context.Context) (*session, error) {
	s := newSession(r)
	l, err := link.Open(ctx, link.Config{
		Servers: r.cfg.Servers, SessionTimeout: r.cfg.SessionTimeout, DialTimeout: r.cfg.DialTimeout,
		TLS: r.cfg.TLS, Digest: r.cfg.digest(), Notify: s.tracker.notify,
	})
	if err != nil {
		return nil, err
	}
	s.begin(l.Lifetime, l)
	return s, nil
}

// Namespace returns Config.Namespace.
func (r *Registry) Namespace() string { return r.cfg.Namespace }

// Open connects and starts a session. See registry.Registry.
func (r *Registry) Open(ctx context.Context) (registry.Session, error) {
	ctx, release := lifetime.Both(ctx, r.open)
	defer release()
	s, err := r.connect(ctx)
	if err == nil && r.sessions.Add(s) {
		return s, nil
	}
	if err == nil {
		_ = s.Close(ctx)
	}
	if r.open.Err() != nil {
		err = errRegistryClosed
	}
	return nil, err
}

// OpenStore opens no session before the first call. See registry.Registry.
func (r *Registry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.sessions.Closed() {
		return nil, errRegistryClosed
	}
	return tool.New(tool.Config{Name: "zookeeper", Limits: r.cfg.Limits, Open: r.Open, Closed: r.sessions.Closed}), nil
}

var errRegistryClosed = fmt.Errorf("zookeeper: %w", registry.ErrClosed)

// Close ends the sessions that are still open, waiting at most half a second for the service. It is idempotent.
func (r *Registry) Close() error {
	r.close()
	r.sessions.Close(farewell)
	return nil
}
