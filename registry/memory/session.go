package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/wait"
	"github.com/elasticron/elasticron/registry/latch"
)

// A session is one life, as its client sees it.
type session struct {
	*lifetime.Lifetime

	registry *Registry
	link     *link
	server   *Server
	life     *life
}

func newSession(r *Registry, l *life) *session {
	return &session{Lifetime: lifetime.New("memory"), registry: r, link: r.link, server: r.server, life: l}
}

func (s *session) Limits() registry.Limits { return s.server.config.Limits }

func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := s.AliveFor(ctx, "get", paths...); err != nil {
		return nil, err
	}
	paths = slices.Clone(paths)
	return read(ctx, s, kindGet, func() ([]registry.Node, error) {
		nodes := make([]registry.Node, len(paths))
		for i, path := range paths {
			if s.server.tree.refuses(path) {
				return nil, fmt.Errorf("memory: get %s: %w", path, registry.ErrDenied)
			}
			nodes[i] = s.server.tree.read(path, s.life)
		}
		return nodes, nil
	})
}

func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	if err := s.AliveFor(ctx, "children", path); err != nil {
		return nil, err
	}
	return read(ctx, s, kindChildren, func() ([]string, error) {
		if s.server.tree.refuses(path) {
			return nil, fmt.Errorf("memory: children of %s: %w", path, registry.ErrDenied)
		}
		names, ok := s.server.tree.list(path)
		if !ok {
			return nil, fmt.Errorf("memory: children of %s: %w", path, registry.ErrNotFound)
		}
		return slices.Clone(names), nil
	})
}

func (s *session) Sync(ctx context.Context) error {
	if err := s.Alive(ctx); err != nil {
		return err
	}
	_, err := read(ctx, s, kindSync, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// read asks until it has the answer of a server that knows the session, or ctx ends.
func read[T any](ctx context.Context, s *session, k kind, get func() (T, error)) (T, error) {
	var none T
	for {
		// Both are of this attempt: one given up may be served later.
		answer, failure := none, error(nil)
		_, err := s.link.call(ctx, &request{kind: k, ended: s.Done(), serve: func() {
			if failure = errExpired; s.life.alive {
				answer, failure = get()
			}
		}})
		if err == nil && !errors.Is(failure, errExpired) {
			return answer, failure
		}
		if err == nil {
			s.Lose(errExpired)
		}
		switch {
		case s.Err() != nil:
			return none, s.Err()
		case ctx.Err() != nil:
			return none, fmt.Errorf("memory: %w: %w", registry.ErrUnavailable, ctx.Err())
		case errors.Is(err, errRefused):
			_ = s.link.reachable(ctx, s.Done())
		}
	}
}

func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := cmp.Or(s.Limits().Validate(ops), s.Alive(ctx)); err != nil {
		return 0, err
	}
	c := &commit{session: s, ops: cloneOps(ops)}
	fate := s.server.fateOf(s.ID(), c.ops)
	if fate == Refused {
		s.hit()
		return 0, fmt.Errorf("memory: commit: %w: refused by the server", registry.ErrUnavailable)
	}
	sent, err := s.link.call(ctx, &request{kind: kindCommit, ended: s.Done(), serve: c.under(fate)})
	if err == nil && fate != Deliver {
		s.hit()
		err = errBroken
	}
	switch {
	case err == nil && errors.Is(c.err, errExpired):
		s.Lose(errExpired)
		return 0, s.Err()
	case err == nil:
		return c.revision, c.err
	}
	return 0, s.commitFailure(ctx, sent, err)
}

// commitFailure names what it means that no answer came.
func (s *session) commitFailure(ctx context.Context, sent bool, err error) error {
	if sent {
		return fmt.Errorf("memory: commit: %w: %w", registry.ErrUncertain, cmp.Or(s.Err(), err))
	}
	return cmp.Or(s.Err(), ctx.Err(), fmt.Errorf("memory: commit: %w: %w", registry.ErrUnavailable, err))
}

func (s *session) hit() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.link.hits++
}

// A commit is one call of Commit.
type commit struct {
	session  *session
	ops      []registry.Op
	revision registry.Revision
	err      error
}

// apply runs at the server. What a lost session left in flight makes no
// ephemeral node any more, whether the server knows of the loss or not.
func (c *commit) apply() {
	s := c.session
	ephemeral := func(op registry.Op) bool { return op.Kind == registry.OpCreateEphemeral }
	if s.Err() != nil && slices.ContainsFunc(c.ops, ephemeral) {
		c.err = errExpired
		return
	}
	c.revision, c.err = s.server.commit(s.life, c.ops)
}

// under returns what the server does with the request of c.
func (c *commit) under(fate Fate) func() {
	switch {
	case fate == RequestLost:
		return func() {}
	case fate > 0:
		return func() { time.AfterFunc(time.Duration(fate), c.session.server.late(c.apply)) }
	}
	return c.apply
}

func cloneOps(ops []registry.Op) []registry.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Value = slices.Clone(ops[i].Value)
	}
	return ops
}

func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.Spawn)
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.Spawn)
}

// acknowledged is the deadline that an acknowledged heartbeat of that time gives, and by how much Done comes before it.
func (s *Server) acknowledged(sent time.Time) (deadline time.Time, lead time.Duration) {
	timeout := s.config.SessionTimeout
	return sent.Add(timeout - timeout/10), timeout / 50
}

// keepAlive sends heartbeats until the session ends.
func (s *session) keepAlive() {
	interval := s.server.config.SessionTimeout / 4
	for pause := interval; wait.For(s.Context(), pause); {
		sent := time.Now()
		switch err := s.beat(sent, interval); {
		case errors.Is(err, errBroken):
			pause = 0
		case errors.Is(err, errRefused):
			_ = s.link.reachable(s.Context(), s.Done())
			pause = 0
		default:
			pause = time.Until(sent.Add(interval))
		}
	}
}

// beat sends one heartbeat and waits for the answer, no longer than until the next is due.
func (s *session) beat(now time.Time, interval time.Duration) error {
	ctx, cancel := context.WithTimeout(s.Context(), interval)
	defer cancel()
	alive := false
	_, err := s.link.call(ctx, &request{kind: kindHeartbeat, ended: s.Done(), serve: func() {
		if alive = s.life.alive; alive {
			s.server.renew(s.life)
		}
	}})
	switch {
	case err != nil:
	case alive:
		s.Extend(s.server.acknowledged(now))
	default:
		s.Lose(errExpired)
	}
	return err
}

func (s *session) Close(ctx context.Context) error {
	once := ctx.Err() != nil
	return s.CloseOnce(ctx, s.server.config.SessionTimeout, func(ctx context.Context) error {
		return s.endAtServer(ctx, once)
	})
}

// endAtServer sends one request that it does not wait for if it shall try but once, or the registry is closed.
func (s *session) endAtServer(ctx context.Context, once bool) error {
	defer s.registry.forget(s)
	s.End()
	end := func() { s.server.end(s.life) }
	if s.life.endless {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		end()
		return nil
	}
	for reg := s.registry; ; {
		noWait := once || reg.ctx.Err() != nil
		_, err := s.link.call(ctx, &request{kind: kindClose, noWait: noWait, ended: reg.ctx.Done(), serve: end})
		if err == nil {
			return nil
		}
		if noWait || ctx.Err() != nil {
			return fmt.Errorf("memory: close session %s: %w: its nodes vanish when it expires: %w",
				s.ID(), registry.ErrUnavailable, err)
		}
		if errors.Is(err, errRefused) {
			_ = s.link.reachable(ctx, reg.ctx.Done())
		}
	}
}
