package conformance

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// acknowledged is the Deadline of a session of the memory adapter whose heartbeat was sent then.
func acknowledged(sent time.Time) time.Time { return sent.Add(flawedTimeout * 9 / 10) }

// deadlineFrom moves Deadline forward to that of a heartbeat at the time that is remembered by key.
func deadlineFrom(key string) func(s *flawed) time.Time {
	return func(s *flawed) time.Time {
		d := s.Session.Deadline()
		if at, known := remembered[time.Time](s, key); known && acknowledged(at).After(d) {
			return acknowledged(at)
		}
		return d
	}
}

// afterDrop changes Deadline once the connection was broken.
func afterDrop(change func(time.Time) time.Time) flaw {
	return flaw{dropped: func(s *flawed) { s.remember("dropped", s.Session.Deadline()) }, deadline: func(s *flawed) time.Time {
		d := s.Session.Deadline()
		if was, known := remembered[time.Time](s, "dropped"); known && d.After(was) {
			return change(d)
		}
		return d
	}}
}

// waiters counts the Locks of a session that are under way.
func waiters(s *flawed) *atomic.Int64 {
	return once(s, "waiters", func() *atomic.Int64 { return new(atomic.Int64) })
}

var counted = func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	waiters(s).Add(1)
	defer waiters(s).Add(-1)
	return s.Session.Lock(ctx, dir, value)
}

// endsIf ends a session for which ok holds, if it still does after that time.
func endsIf(s *flawed, after time.Duration, ok func() bool) {
	go func() {
		for since := time.Now(); s.Session.Err() == nil; <-time.After(pollEvery) {
			if !ok() {
				since = time.Now()
			} else if time.Since(since) > after {
				_ = s.Session.Close(context.Background())
			}
		}
	}()
}

// A litter are the sessions of a registry, in the order of their opening.
type litter struct{ all []*flawed }

func (l *litter) born(s *flawed) {
	family.Lock()
	defer family.Unlock()
	l.all = append(l.all, s)
}

func (l *litter) nth(n int) *flawed {
	family.Lock()
	defer family.Unlock()
	if n < 0 {
		n += len(l.all)
	}
	return l.all[n]
}

func litterOf(s *flawed) *litter {
	return sharedBy(s.reg, "litter", func() *litter { return new(litter) })
}

// livesBy ends a session once another one of its registry has ended: the nth.
func livesBy(n int) flaw {
	return flaw{opened: func(s *flawed, _ context.Context) {
		litterOf(s).born(s)
		endsIf(s, flawedTimeout/2, func() bool { return litterOf(s).nth(n).Session.Err() != nil })
	}}
}

// spanBreakages are wrong in how long a session lives, or what lives as long.
var spanBreakages = []breakage{
	{"R95", "a commit's answer moves Deadline, though the service does not count it",
		"Sessions/DeadlineNeverAfterServerDeletion", "before the session's Deadline",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			asked := time.Now()
			rev, err := s.Session.Commit(ctx, ops...)
			if err == nil {
				s.remember("committed", asked)
			}
			return rev, err
		}, deadline: deadlineFrom("committed")}},
	{"R96", "after a broken connection Deadline is counted from when the answer came",
		"Sessions/DeadlineThroughSlowAnswers", "after a broken connection came late",
		afterDrop(func(d time.Time) time.Time { return d.Add(flawedTimeout / 4) })},
	{"R96", "the first Deadline is counted from when Open was answered, without a margin",
		"Sessions/DeadlineThroughSlowAnswers", "to Open came late",
		flaw{opened: func(s *flawed, _ context.Context) {
			s.remember("opened", time.Now().Add(flawedTimeout/10))
		}, deadline: deadlineFrom("opened")}},
	{"R97", "Deadline goes back with the first heartbeat after a broken connection", "Sessions/DeadlineAdvances", "Deadline went back",
		afterDrop(func(d time.Time) time.Time { return d.Add(-flawedTimeout * 3 / 5) })},
	{"R113", "Deadline is of the wall clock", "Sessions/AliveErrNil", "without a monotonic reading",
		flaw{deadline: func(s *flawed) time.Time { return s.Session.Deadline().Round(0) }}},
	{"R13", "Done is late while a Lock waits", "Sessions/DoneNotAfterDeadline", "Done is open",
		flaw{lock: counted, done: func(s *flawed) <-chan struct{} {
			return once(s, "done", func() chan struct{} {
				done := make(chan struct{})
				busy := s.state["waiters"] != nil
				go func() {
					<-s.Session.Done()
					if busy {
						<-time.After(flawedTimeout * 3 / 4)
					}
					close(done)
				}()
				return done
			})
		}}},
	{"R15", "more than 20 Locks that wait hold up the heartbeats", "Sessions/ReachableServiceKeepsSession", "the session was lost",
		flaw{opened: func(s *flawed, _ context.Context) {
			endsIf(s, flawedTimeout, func() bool { return waiters(s).Load() > 20 })
		}, lock: counted}},
	{"R15", "more than 2000 events that are not taken end the session", "Sessions/ReachableServiceKeepsSession", "the session was lost",
		flaw{add: func(w *flawedWatcher, path string, scope registry.Scope) error {
			if scope == registry.Children && strings.HasSuffix(path, "/many") {
				endsIf(w.s, flawedTimeout, func() bool {
					names, _ := w.s.Session.Children(context.Background(), path)
					return len(names) > 2000
				})
			}
			return w.Watcher.Add(path, scope)
		}}},
	{"R15", "from the ninth on the sessions of a registry have no heartbeats", "Sessions/ReachableServiceKeepsSession", "number 8 of its registry",
		flaw{opened: func(s *flawed, _ context.Context) {
			litterOf(s).born(s)
			ninth := len(litterOf(s).all) > 8
			endsIf(s, flawedTimeout, func() bool { return ninth })
		}}},
	{"R16", "a session ends with the oldest of its registry", "Sessions/SessionsAreApart", "was lost", livesBy(0)},
	{"R16", "a session ends with the youngest of its registry", "Sessions/SessionsAreApart", "was lost", livesBy(-1)},
	{"R11", "of more than 50 ephemeral nodes the rest goes 100 ms later", "Sessions/EphemeralsGoTogether", "after Sync",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				nr, numbered := strconv.Atoi(n.Path[strings.LastIndex(n.Path, "/")+1:])
				if old, known := remembered[registry.Node](s, "seen "+n.Path); known && !n.Exists() {
					if gone := once(s, "gone", time.Now); time.Since(gone) < 100*time.Millisecond {
						nodes[i] = old
					}
				} else if n.Ephemeral && numbered == nil && nr >= 50 {
					s.remember("seen "+n.Path, n)
				}
			}
			return nodes, err
		}}},
	{"R9", "the end takes along what was ephemeral once", "Sessions/CloseRemovesEphemerals", "once ephemeral does not exist",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			for _, op := range ops {
				if mine, _ := remembered[[]string](s, "mine"); err == nil && op.Kind == registry.OpCreateEphemeral {
					s.remember("mine", append(slices.Clone(mine), op.Path))
				}
			}
			return rev, err
		}, close: func(s *flawed, ctx context.Context) error {
			mine, _ := remembered[[]string](s, "mine")
			for _, path := range mine {
				_, _ = s.Session.Commit(ctx, registry.Delete(path, registry.AnyVersion))
			}
			return s.Session.Close(ctx)
		}}},
	{"R48", "a Set in a commit of several, by another session, takes the node over", "Commit/SetKeepsEphemeral", "after a Set the owner reads",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			for _, op := range ops {
				if err != nil || len(ops) == 1 || op.Kind != registry.OpSet {
					continue
				}
				if nodes, _ := s.Session.Get(ctx, op.Path); len(nodes) == 1 && nodes[0].Ephemeral && !nodes[0].Owned {
					_, _ = s.Session.Commit(ctx, registry.Delete(op.Path, registry.AnyVersion))
					_, _ = s.Session.Commit(ctx, registry.CreateEphemeral(op.Path, op.Value))
					_, _ = s.Session.Commit(ctx, registry.Set(op.Path, op.Value, 0))
				}
			}
			return rev, err
		}}},
	{"R48", "a store's Set makes an ephemeral node persistent", "Commit/SetKeepsEphemeral", "after a Set the owner reads",
		flaw{store: func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error) {
			st, err := r.Registry.OpenStore(ctx)
			return lastingStore{st}, err
		}}},
	{"R49", "after a restart of the service nobody owns a node", "Sessions/RestartServerSessionRule", "reads its own node as",
		onNode(func(s *flawed, n *registry.Node) { n.Owned = n.Owned && s.reg.Hits() == 0 })},
	{"R49", "after a broken connection nobody owns a node", "Sessions/DropKeepsEphemerals", "reads its own node as",
		onNode(func(s *flawed, n *registry.Node) { n.Owned = n.Owned && s.reg.Hits() == 0 })},
	{"R14", "after a broken connection a session makes again what others have deleted of it", "Sessions/DropKeepsEphemerals", "deleted exists",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			for _, op := range ops {
				if mine, _ := remembered[[]string](s, "mine"); op.Kind == registry.OpCreateEphemeral {
					s.remember("mine", append(slices.Clone(mine), op.Path))
				}
			}
			return s.Session.Commit(ctx, ops...)
		}, dropped: func(s *flawed) {
			mine, _ := remembered[[]string](s, "mine")
			for _, path := range mine {
				_, _ = s.Session.Commit(context.Background(), registry.CreateEphemeral(path, nil))
			}
		}}},
}

// lastingStore makes persistent what it sets.
type lastingStore struct{ registry.StoreCloser }

func (s lastingStore) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	rev, err := s.StoreCloser.Commit(ctx, ops...)
	for _, op := range ops {
		if err == nil && op.Kind == registry.OpSet {
			_, _ = s.StoreCloser.Commit(ctx, registry.Delete(op.Path, registry.AnyVersion))
			_, _ = s.StoreCloser.Commit(ctx, registry.Create(op.Path, op.Value))
			_, _ = s.StoreCloser.Commit(ctx, registry.Set(op.Path, op.Value, 0))
		}
	}
	return rev, err
}
