package polled

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := s.AliveFor(ctx, "get", paths...); err != nil {
		return nil, err
	}
	found, err := s.read(ctx, slices.Compact(slices.Sorted(slices.Values(paths))), nil)
	if err != nil {
		return nil, err
	}
	nodes := make([]registry.Node, len(paths))
	for i, p := range paths {
		nodes[i] = found[p]
		nodes[i].Path, nodes[i].Value = p, slices.Clone(nodes[i].Value) // p may stand twice
	}
	return nodes, nil
}

func (s *session) Children(ctx context.Context, dir string) ([]string, error) {
	if err := s.AliveFor(ctx, "children", dir); err != nil {
		return nil, err
	}
	found, err := s.read(ctx, []string{dir}, []string{dir})
	if err != nil {
		return nil, err
	}
	if _, exists := found[dir]; !exists && dir != "/" {
		return nil, s.client.wrap("children of "+dir, registry.ErrNotFound)
	}
	delete(found, dir)
	names := make([]string, 0, len(found))
	for p := range found {
		names = append(names, path.Base(p))
	}
	slices.Sort(names)
	return names, nil
}

// Sync has nothing to do: every read sees every commit that was answered.
func (s *session) Sync(ctx context.Context) error { return s.Alive(ctx) }

// read asks for nodes until it has an answer, or ctx or the session ends.
func (s *session) read(ctx context.Context, paths, dirs []string) (map[string]registry.Node, error) {
	ctx, release := s.Bound(ctx)
	defer release()
	if len(paths)+len(dirs) == 0 {
		return map[string]registry.Node{}, nil
	}
	var found []Node
	patience := s.client.SessionTimeout / 2
	err := s.client.repeat(ctx, func(ctx context.Context) error {
		done, err := s.turn(ctx)
		if err != nil {
			return err
		}
		defer done()
		attempt, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		found, err = s.client.store.Read(attempt, paths, dirs)
		// A large answer takes long each time; one that is lost is not waited for much longer.
		if attempt.Err() != nil {
			patience += s.client.SessionTimeout / 4
		}
		return err
	})
	if err != nil {
		return nil, cmp.Or(s.Err(), s.client.wrap("read", err))
	}
	nodes := make(map[string]registry.Node, len(found))
	for _, n := range found {
		n.Ephemeral, n.Owned = n.Owner != "", n.Owner != "" && n.Owner == s.ID()
		nodes[n.Path] = n.Node
	}
	return nodes, nil
}

func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := cmp.Or(s.Limits().Validate(ops), s.Alive(ctx)); err != nil {
		return 0, err
	}
	asking, release := s.Bound(ctx)
	defer release()
	done, err := s.turn(asking)
	if err != nil {
		return 0, s.outcome(ctx, ops, err)
	}
	rev, err := s.client.store.Commit(asking, s.ID(), ops)
	done()
	// One of unknown outcome too may have changed something.
	s.client.wake(ops)
	if err != nil {
		return 0, s.outcome(ctx, ops, err)
	}
	s.client.ear.committed(rev)
	return rev, nil
}

// turn waits until one more request may be in flight, which ends with done. After an error nothing was asked. A wait is
// no part of an attempt: who gave up his place for a new one could wait for ever.
func (s *session) turn(ctx context.Context) (done func(), err error) {
	turns := s.client.turns
	select {
	case turns <- struct{}{}:
		if s.Alive(ctx) == nil { // both may have ended with who made room
			return func() { <-turns }, nil
		}
		<-turns
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, s.Alive(ctx))
}

// outcome says what the store's error means for a commit.
func (s *session) outcome(ctx context.Context, ops []registry.Op, err error) error {
	refused, isRefused := errors.AsType[*registry.CommitError](err)
	switch {
	case isRefused && refused.Index >= 0 && refused.Index < len(ops):
		op := ops[refused.Index]
		op.Value = slices.Clone(op.Value) // the caller's own may change
		return &registry.CommitError{Index: refused.Index, Op: op, Err: refused.Err}
	case errors.Is(err, registry.ErrSessionLost):
		s.Lose(errExpired)
		return s.Err()
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, registry.ErrDenied), errors.Is(err, registry.ErrInvalid):
		return cmp.Or(s.Err(), ctx.Err(), s.client.wrap("commit", err)) // nothing was sent
	}
	return s.client.wrap("commit", fmt.Errorf("%w: %w", registry.ErrUncertain, cmp.Or(s.Err(), err)))
}
