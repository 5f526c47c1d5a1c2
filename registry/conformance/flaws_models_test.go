package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// remembered keeps a value of a session between calls of a flaw.
func remembered[T any](s *flawed, key string) (value T, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, known = s.state[key].(T)
	return value, known
}

func (s *flawed) remember(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[key] = value
}

// modelBreakages need several clients, or faults in the midst of many commits:
// what one client sees at a quiet time is right.
var modelBreakages = []breakage{
	{"R18", "a node that was ephemeral once is ephemeral for ever", "Models/RapidSequential", "ephemeral, owned} with value", flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			for _, op := range ops {
				if err == nil && op.Kind == registry.OpCreateEphemeral {
					s.remember("ephemeral "+op.Path, true)
				}
			}
			return rev, err
		},
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i := range nodes {
				if once, _ := remembered[bool](s, "ephemeral "+nodes[i].Path); once && nodes[i].Exists() {
					nodes[i].Ephemeral, nodes[i].Owned = true, true
				}
			}
			return nodes, err
		}}},
	{"R17", "after a broken connection commits are applied without their checks", "Models/RapidSequential", "the model says commit: operation", flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			var writes []registry.Op
			for _, op := range ops {
				if op.Kind != registry.OpCheck {
					writes = append(writes, op)
				}
			}
			if s.reg.Hits() == 0 || len(writes) == 0 {
				writes = ops
			}
			return s.Session.Commit(ctx, writes...)
		}}},
	{"R24", "the first read after a broken connection is as old as the one before", "Models/LinearizableRegister", "no order of the calls", flaw{
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if err != nil || len(nodes) != 1 {
				return nodes, err
			}
			hits, key := s.reg.Hits(), "read "+paths[0]
			last, known := remembered[registry.Node](s, key)
			if seen, _ := remembered[int](s, "hits"); known && hits > seen {
				s.remember("hits", hits)
				return []registry.Node{last}, nil
			}
			s.remember(key, nodes[0])
			return nodes, nil
		}}},
	{"R19", "an uncertain commit is sent again behind the caller's back", "Models/LinearizableRegister", "no order of the calls",
		onCommitFailure(func(s *flawed, _ context.Context, ops []registry.Op, err error) error {
			if errors.Is(err, registry.ErrUncertain) {
				again := append([]registry.Op(nil), ops...)
				time.AfterFunc(20*time.Millisecond, func() { _, _ = s.Session.Commit(context.Background(), again...) })
			}
			return err
		})},
	{"R38", "versions are compared before the commit and not with it", "Models/LinearizableCommit", "no order of the calls", flaw{
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if len(ops) == 1 {
				return s.Session.Commit(ctx, ops...)
			}
			var checks []registry.Op
			blind := append([]registry.Op(nil), ops...)
			for i, op := range ops {
				switch op.Kind {
				case registry.OpSet, registry.OpDelete, registry.OpCheck:
					checks = append(checks, registry.Check(op.Path, op.Version))
					blind[i].Version = registry.AnyVersion
				}
			}
			if len(checks) > 0 {
				if _, err := s.Session.Commit(ctx, checks...); err != nil {
					return s.Session.Commit(ctx, ops...)
				}
				<-time.After(time.Millisecond) // as a request takes
			}
			return s.Session.Commit(ctx, blind...)
		}}},
	{"R105", "a token is given again after the connection broke", "Models/LockContenders", "no order of the calls",
		onLock(func(s *flawed, _ string, l *flawedLock) {
			last, again := remembered[registry.Revision](s, "token")
			if hits, _ := remembered[int](s, "hits"); again && s.reg.Hits() > hits {
				l.token = last
			}
			s.remember("token", l.Lock.Token())
			s.remember("hits", s.reg.Hits())
		})},
	{"R26", "a watcher loses a change, one broken connection in five", "Models/WatchConverges", "does not come to what a read gives",
		onEvents(func(w *flawedWatcher, e registry.Event) bool {
			hits, last := w.s.reg.Hits(), w.past["hits"].Node.Version
			if e.Synced || registry.Version(hits) == last {
				return true
			}
			w.past["hits"] = registry.Event{Node: registry.Node{Version: registry.Version(hits)}}
			return hits%5 != 0
		})},
}
