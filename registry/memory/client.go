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
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/settings"
	"github.com/elasticron/elasticron/registry/internal/tool"
)

// A Registry is one client of a Server. It implements registry.Registry.
type Registry struct {
	*link

	namespace string
	// release is of the shared server; may be nil.
	release func()
	// ctx ends with the registry.
	ctx      context.Context
	cancel   context.CancelFunc
	sessions lifetime.Open[*session]
}

// Namespace is what Server.Registry or the URL was given.
func (r *Registry) Namespace() string { return r.namespace }

// Open implements registry.Registry.
func (r *Registry) Open(ctx context.Context) (registry.Session, error) {
	for {
		s, err := r.tryOpen(ctx)
		switch {
		case err == nil:
			return s, nil
		case r.ctx.Err() != nil:
			return nil, fmt.Errorf("memory: open session: %w", registry.ErrClosed)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("memory: open session: %w: %w", registry.ErrUnavailable, ctx.Err())
		case errors.Is(err, errRefused):
			_ = r.reachable(ctx, r.ctx.Done())
		}
	}
}

// tryOpen makes one attempt. One that took so long that the session would be about to end counts as failed.
func (r *Registry) tryOpen(ctx context.Context) (*session, error) {
	sent := time.Now()
	var l *life
	open := &request{kind: kindOpen, ended: r.ctx.Done(), serve: func() { l = r.server.begin() }}
	if _, err := r.call(ctx, open); err != nil {
		return nil, err
	}
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	s := newSession(r, l)
	if time.Since(sent) > r.server.config.SessionTimeout/2 || !r.sessions.Add(s) {
		r.server.end(l)
		return nil, errBroken
	}
	r.server.clients[l.id] = r
	deadline, lead := r.server.acknowledged(sent)
	s.Begin(l.id, deadline, lead)
	s.Go(s.keepAlive)
	return s, nil
}

// OpenStore implements registry.Registry. It asks the server nothing.
func (r *Registry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSession(r, &life{alive: true, endless: true, watchers: map[*watcher]struct{}{}})
	if !r.sessions.Add(s) {
		return nil, fmt.Errorf("memory: open store: %w", registry.ErrClosed)
	}
	return tool.One("memory", s), nil
}

// Close implements registry.Registry. It always returns nil.
func (r *Registry) Close() error {
	r.cancel()
	// It waits for nothing: see endAtServer.
	if r.sessions.Close(r.server.config.SessionTimeout) && r.release != nil {
		r.release()
	}
	return nil
}

// forget drops a session that is closed.
func (r *Registry) forget(s *session) {
	r.sessions.Remove(s)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	delete(r.server.clients, s.ID())
}

// shared are the servers that URLs name, and how many registries of each are open.
var shared = struct {
	sync.Mutex
	servers map[string]*Server
	users   map[string]int
}{servers: map[string]*Server{}, users: map[string]int{}}

func init() { registry.Register("memory", openURL) }

// openURL serves memory://name/namespace.
func openURL(ctx context.Context, u *url.URL) (registry.Registry, error) {
	namespace := strings.Trim(u.Path, "/")
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("memory: %w: want memory://name/namespace and nothing else", registry.ErrInvalid)
	}
	if err := validNamespace(namespace); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
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
	if shared.users[name]++; shared.users[name] == 1 {
		shared.servers[name] = NewServer(Config{})
	}
	return shared.servers[name]
}

func releaseShared(name string) {
	shared.Lock()
	defer shared.Unlock()
	if shared.users[name]--; shared.users[name] == 0 {
		delete(shared.servers, name)
	}
}
