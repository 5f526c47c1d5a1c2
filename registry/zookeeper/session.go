package zookeeper

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/wait"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// requests is what a session needs of its link.
type requests interface {
	Get(ctx context.Context, path string, watch bool) ([]byte, *zk.Stat, error)
	GetAll(ctx context.Context, paths []string) ([]link.Found, error)
	Exists(ctx context.Context, path string, watch bool) (*zk.Stat, error)
	Children(ctx context.Context, path string, watch bool) ([]string, error)
	Multi(ctx context.Context, ops ...any) (link.Written, error)
	MultiAlone(ctx context.Context, ops ...any) (w link.Written, settled <-chan struct{}, err error)
	Disarm(path string, children bool)
	Number() int64
	Close(ctx context.Context) error
}

// A session is one link: a session of ZooKeeper, which the link never follows with another.
type session struct {
	*lifetime.Lifetime

	reg     *Registry
	tree    tree
	link    requests
	number  int64
	tracker *tracker

	valueSize atomic.Int64 // about how many bytes a value had lately; 0: none was read
}

// newSession makes a session that lacks its link: the link wants to know first who hears of its events.
func newSession(r *Registry) *session {
	s := &session{reg: r, tree: tree(r.cfg.Chroot)}
	s.tracker = newTracker(s)
	return s
}

// begin gives the session its link.
func (s *session) begin(life *lifetime.Lifetime, l requests) {
	s.Lifetime, s.link, s.number = life, l, l.Number()
}

func (s *session) Limits() registry.Limits { return s.reg.cfg.Limits }

// Close ends the session at the service, also one that is lost, and joins what runs for it.
func (s *session) Close(ctx context.Context) error {
	defer s.reg.sessions.Remove(s)
	return s.link.Close(ctx)
}

// ensureRoot makes the chroot and what it lacks above it.
func (s *session) ensureRoot(ctx context.Context) error {
	for i := 1; i <= len(s.tree); i++ {
		if i < len(s.tree) && s.tree[i] != '/' {
			continue
		}
		if err := s.ensure(ctx, string(s.tree[:i])); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes one node of the service's tree, unless it is there. What is asked
// again after an unknown outcome is whether it is.
func (s *session) ensure(ctx context.Context, path string) error {
	for {
		stat, err := s.link.Exists(ctx, path, false)
		if err != nil {
			return fail("look for the chroot", path, err)
		}
		if stat != nil {
			return nil
		}
		if _, err := s.link.Multi(ctx, &zk.CreateRequest{Path: path, Acl: s.reg.acl}); err != nil && denies(err) {
			return fmt.Errorf("zookeeper: make the chroot %s: %w: %s: %w", path, registry.ErrDenied, s.reg.who(), err)
		}
		if ctx.Err() != nil || s.Err() != nil {
			continue // Exists says it better
		}
		wait.For(ctx, time.Millisecond)
	}
}
