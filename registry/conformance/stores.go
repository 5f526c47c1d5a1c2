package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/elasticron/elasticron/registry"
)

// triedOnStores returns, for stores, the cases that need no session, disturb nobody and make few nodes. A store promises
// all that a session does of reads, commits and watches.
func triedOnStores(groups ...group) (cases []testCase) {
	for _, g := range groups {
		for _, c := range g.cases {
			if c.needs&(life|alone|bulk) == 0 {
				cases = append(cases, c.onStores(g.name))
			}
		}
	}
	return cases
}

// onStores is the case, of the group of that name, with stores for sessions.
func (c testCase) onStores(group string) testCase {
	c.store, c.name, c.rule = true, group+c.name, "of a store: "+c.rule
	return c
}

// times is how many rounds a case makes: n on sessions, a third of that on stores, whose client sessions have tried.
func (t *caseRun) times(n int) int {
	if t.c.store {
		return n / 3
	}
	return n
}

// A lifelessSession is a session that reads, commits and watches through a store of the same client.
type lifelessSession struct {
	registry.Session
	store registry.StoreCloser
}

func (s *lifelessSession) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	return s.store.Get(ctx, paths...)
}

func (s *lifelessSession) Children(ctx context.Context, path string) ([]string, error) {
	return s.store.Children(ctx, path)
}

func (s *lifelessSession) Sync(ctx context.Context) error { return s.store.Sync(ctx) }

// Commit has the session make what is ephemeral, which the store sees from then on. Beside others such nodes are made
// persistent, by the store: what is tried is the commit.
func (s *lifelessSession) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if len(ops) > 0 && !slices.ContainsFunc(ops, func(op registry.Op) bool { return !isEphemeral(op) }) {
		rev, err := s.Session.Commit(ctx, ops...)
		if err == nil {
			err = s.store.Sync(ctx)
		}
		return rev, err
	}
	lasting := slices.Clone(ops)
	for i := range lasting {
		if isEphemeral(ops[i]) {
			lasting[i].Kind = registry.OpCreate
		}
	}
	rev, err := s.store.Commit(ctx, lasting...)
	if failed, is := errors.AsType[*registry.CommitError](err); is && failed.Index < len(ops) && failed.Op.Kind == lasting[failed.Index].Kind {
		failed.Op.Kind = ops[failed.Index].Kind
	}
	return rev, err
}

func isEphemeral(op registry.Op) bool { return op.Kind == registry.OpCreateEphemeral }

func (s *lifelessSession) Watch(ctx context.Context) (registry.Watcher, error) {
	return s.store.Watch(ctx)
}

func (s *lifelessSession) Limits() registry.Limits { return s.store.Limits() }
