package zookeeper

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A wire is what a session needs of its link.
type wire interface {
	life
	requests
}

type life interface {
	ID() int64
	Deadline() time.Time
	Done() <-chan struct{}
	Err() error
	Close(ctx context.Context) error
}

type requests interface {
	Get(ctx context.Context, path string, watch bool) ([]byte, *zk.Stat, error)
	Exists(ctx context.Context, path string, watch bool) (*zk.Stat, error)
	Children(ctx context.Context, path string, watch bool) ([]string, *zk.Stat, error)
	Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error)
	Disarm(path string, children bool)
}

var _ wire = (*link.Link)(nil)

// A session is one link: a session of ZooKeeper, which the link never follows
// with another.
type session struct {
	reg     *Registry
	tree    tree
	link    wire
	id      int64
	tracker *tracker
	life    context.Context // ends with the session
	end     context.CancelFunc
	work    sync.WaitGroup // readers and what was spawned

	mu      sync.Mutex
	closing bool

	once     sync.Once
	closeErr error
}

var _ registry.Session = (*session)(nil)

// newSession makes a session that lacks its link: the link wants to know first
// who hears of its events.
func newSession(r *Registry) *session {
	s := &session{reg: r, tree: tree(r.cfg.Chroot)}
	s.life, s.end = context.WithCancel(context.Background())
	s.tracker = newTracker(s)
	return s
}

// begin gives the session its link.
func (s *session) begin(l wire) {
	s.link, s.id = l, l.ID()
	s.work.Go(func() {
		<-l.Done()
		s.end()
	})
}

func (s *session) ID() string              { return strconv.FormatUint(uint64(s.id), 16) } //nolint:gosec // the bits matter
func (s *session) Done() <-chan struct{}   { return s.link.Done() }
func (s *session) Deadline() time.Time     { return s.link.Deadline() }
func (s *session) Err() error              { return s.link.Err() }
func (s *session) Limits() registry.Limits { return s.reg.cfg.Limits }

// Close ends the session at the service, also one that is lost, and joins what
// runs for it.
func (s *session) Close(ctx context.Context) error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
		s.closeErr = s.link.Close(ctx)
		s.work.Wait()
		s.reg.forget(s)
	})
	return s.closeErr
}

// join runs f as part of the session; Close waits for it. False: it is over. It
// never asks the link, so that it may be called while the link delivers an event.
func (s *session) join(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.work.Go(f)
	return true
}

// spawn runs f as part of the session, with a context that ends with it; when it
// is over already, at once.
func (s *session) spawn(f func(ctx context.Context)) {
	if !s.join(func() { f(s.life) }) {
		<-s.link.Done()
		s.end()
		f(s.life)
	}
}

// alive reports why a call cannot start.
func (s *session) alive(ctx context.Context) error {
	if err := s.link.Err(); err != nil {
		return err
	}
	return ctx.Err()
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
		if ctx.Err() != nil || s.link.Err() != nil {
			continue // Exists says it better
		}
		s.pause(ctx, time.Millisecond)
	}
}
