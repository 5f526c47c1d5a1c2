package memory

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
	"github.com/elasticron/elasticron/registry/internal/tool"
)

// A Registry is one client of a Server. It implements registry.Registry.
type Registry struct {
	namespace string
	link      *link
	release   func() // of the shared server; may be nil

	// guarded by link.server.mu
	sessions map[*session]struct{}
	closed   chan struct{}
}

var _ registry.Registry = (*Registry)(nil)

// Namespace is what Server.Registry or the URL was given.
func (r *Registry) Namespace() string { return r.namespace }

// Open implements registry.Registry.
func (r *Registry) Open(ctx context.Context) (registry.Session, error) {
	for {
		s, err := r.tryOpen(ctx)
		switch {
		case err == nil:
			return s, nil
		case r.isClosed():
			return nil, fmt.Errorf("memory: open session: %w", registry.ErrClosed)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("memory: open session: %w: %w", registry.ErrUnavailable, ctx.Err())
		case errors.Is(err, errRefused):
			_ = r.link.reachable(ctx, r.closed)
		}
	}
}

// tryOpen makes one attempt. One that took so long that the session would be
// about to end counts as failed.
func (r *Registry) tryOpen(ctx context.Context) (*session, error) {
	server := r.link.server
	sent := time.Now()
	var l *life
	open := &request{kind: kindOpen, ended: r.closed, serve: func() { l = server.begin() }}
	if _, err := r.link.call(ctx, open); err != nil {
		return nil, err
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if r.closedLocked() || time.Since(sent) > server.config.SessionTimeout/2 {
		server.end(l)
		return nil, errBroken
	}
	s := newSession(r, l, sent)
	r.sessions[s] = struct{}{}
	server.clients[s.id] = r
	s.tasks.Go(s.keepAlive)
	return s, nil
}

// OpenStore implements registry.Registry. It asks the server nothing.
func (r *Registry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	server := r.link.server
	server.mu.Lock()
	defer server.mu.Unlock()
	if r.closedLocked() {
		return nil, fmt.Errorf("memory: open store: %w", registry.ErrClosed)
	}
	s := newSession(r, &life{id: "no session", alive: true, endless: true}, time.Now())
	r.sessions[s] = struct{}{}
	return tool.One("memory", s), nil
}

// Close implements registry.Registry. It always returns nil.
func (r *Registry) Close() error {
	server := r.link.server
	server.mu.Lock()
	first := !r.closedLocked()
	if first {
		close(r.closed)
	}
	open := make([]*session, 0, len(r.sessions))
	for s := range r.sessions {
		open = append(open, s)
	}
	server.mu.Unlock()
	for _, s := range open {
		_ = s.close(context.Background(), true) // without a service the nodes vanish by expiry
	}
	if first && r.release != nil {
		r.release()
	}
	return nil
}

func (r *Registry) isClosed() bool {
	r.link.server.mu.Lock()
	defer r.link.server.mu.Unlock()
	return r.closedLocked()
}

func (r *Registry) closedLocked() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

// shared are the servers that URLs name.
var shared = struct {
	sync.Mutex
	servers map[string]*sharedServer
}{servers: map[string]*sharedServer{}}

type sharedServer struct {
	*Server
	users int
}

func init() { registry.Register("memory", openURL) }

// openURL serves memory://name/namespace.
func openURL(ctx context.Context, u *url.URL) (registry.Registry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	namespace := strings.Trim(u.Path, "/")
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("memory: %w: want memory://name/namespace and nothing else", registry.ErrInvalid)
	}
	if err := validNamespace(namespace); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	r := acquireShared(u.Host).Registry(namespace)
	r.release = func() { releaseShared(u.Host) }
	return r, nil
}

func validNamespace(namespace string) error {
	if err := settings.Namespace(namespace, "memory://name/shop"); err != nil {
		return fmt.Errorf("%w: %w", registry.ErrInvalid, err)
	}
	return nil
}

func acquireShared(name string) *Server {
	shared.Lock()
	defer shared.Unlock()
	s, ok := shared.servers[name]
	if !ok {
		s = &sharedServer{Server: NewServer(Config{})}
		shared.servers[name] = s
	}
	s.users++
	return s.Server
}

func releaseShared(name string) {
	shared.Lock()
	defer shared.Unlock()
	s := shared.servers[name]
	if s.users--; s.users == 0 {
		delete(shared.servers, name)
	}
}
