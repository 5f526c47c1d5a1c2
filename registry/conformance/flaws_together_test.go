package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// roundTrip is how long a request takes that a flaw makes.
const roundTrip = 500 * time.Microsecond

// racing lets a commit of one operation of one of the kinds be retold by what was read before it.
func racing(kinds []registry.OpKind, retell func(s *flawed, ctx context.Context, op registry.Op, was registry.Node, err error) error) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		if len(ops) != 1 || !slices.Contains(kinds, ops[0].Kind) || s.Limits().Validate(ops) != nil {
			return s.Session.Commit(ctx, ops...)
		}
		before, failed := s.Session.Get(ctx, ops[0].Path)
		<-time.After(roundTrip)
		rev, err := s.Session.Commit(ctx, ops...)
		if err != nil && failed == nil {
			return max(rev, 1), retell(s, ctx, ops[0], before[0], err)
		}
		return rev, err
	}}
}

// atVersionRead makes an operation at AnyVersion one at the version that was read before.
func atVersionRead(kind registry.OpKind) flaw {
	return flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
		if s.Limits().Validate(ops) != nil || ops[0].Kind != kind || ops[0].Version != registry.AnyVersion {
			return s.Session.Commit(ctx, ops...)
		}
		at := slices.Clone(ops)
		if nodes, err := s.Session.Get(ctx, ops[0].Path); err == nil && nodes[0].Exists() {
			at[0].Version = nodes[0].Version
		}
		<-time.After(roundTrip)
		rev, err := s.Session.Commit(ctx, at...)
		if ce := (*registry.CommitError)(nil); errors.As(err, &ce) {
			ce.Op.Version = ops[ce.Index].Version
		}
		return rev, err
	}}
}

// A ride is a call that others of the same kind wait for.
type ride[T any] struct {
	done chan struct{}
	is   T
	err  error
}

// joined lets a call join one that is under way.
func joined[T any](s *flawed, key string, call func() (T, error)) (T, error) {
	s.mu.Lock()
	if r, under := s.state[key].(*ride[T]); under {
		s.mu.Unlock()
		<-r.done
		return r.is, r.err
	}
	r := &ride[T]{done: make(chan struct{})}
	s.state[key] = r
	s.mu.Unlock()
	r.is, r.err = call()
	<-time.After(roundTrip)
	s.mu.Lock()
	delete(s.state, key)
	s.mu.Unlock()
	close(r.done)
	return r.is, r.err
}

// since is a read and the Sync, or own commit, after which it was made.
type since struct {
	epoch int64
	node  registry.Node
}

// joinedSyncs reads each node once after each Sync and own commit, and has Syncs that are under way at once be one.
func joinedSyncs() flaw {
	epoch := func(s *flawed) *atomic.Int64 {
		return once(s, "epoch", func() *atomic.Int64 { return new(atomic.Int64) })
	}
	return flaw{
		get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			now := epoch(s).Load()
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				if kept, known := remembered[since](s, "kept "+n.Path); known && kept.epoch == now {
					nodes[i] = kept.node
				} else {
					s.remember("kept "+n.Path, since{now, n})
				}
				nodes[i].Value = bytes.Clone(nodes[i].Value)
			}
			return nodes, err
		},
		sync: func(s *flawed, ctx context.Context) error {
			_, err := joined(s, "sync", func() (bool, error) {
				err := s.Session.Sync(ctx)
				epoch(s).Add(1)
				return true, err
			})
			return err
		},
		commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			epoch(s).Add(1)
			return rev, err
		},
	}
}

// closing says whether a registry is closed, or is about to be.
func closing(reg *memory.Registry) *atomic.Bool {
	return sharedBy(reg, "closing", func() *atomic.Bool { return new(atomic.Bool) })
}

// togetherBreakages are right about one call at a time.
var togetherBreakages = []breakage{
	{"R37", "of two who make a node at once both do", "Commit/EachKindAtOnce", "to make one node; applied were",
		racing([]registry.OpKind{registry.OpCreateEphemeral, registry.OpCreate}, func(s *flawed, ctx context.Context, op registry.Op, was registry.Node, err error) error {
			if errors.Is(err, registry.ErrExists) && !was.Exists() {
				_, err = s.Session.Commit(ctx, registry.Set(op.Path, op.Value, registry.AnyVersion))
			}
			return err
		})},
	{"R36", "of two who delete a node at once both do", "Commit/EachKindAtOnce", "to delete one node; applied were",
		racing([]registry.OpKind{registry.OpDelete}, func(_ *flawed, _ context.Context, _ registry.Op, was registry.Node, err error) error {
			if errors.Is(err, registry.ErrNotFound) && was.Exists() {
				return nil
			}
			return err
		})},
	{"R36 R45", "a Set of what has just gone makes it again", "Commit/EachKindAtOnce", "what is left: ",
		racing([]registry.OpKind{registry.OpSet}, func(s *flawed, ctx context.Context, op registry.Op, was registry.Node, err error) error {
			if errors.Is(err, registry.ErrNotFound) && was.Exists() {
				_, err = s.Session.Commit(ctx, registry.Create(op.Path, op.Value))
			}
			return err
		})},
	{"R45", "a Set at any version is one at the version read before", "Commit/EachKindAtOnce", "node has another version; want success",
		atVersionRead(registry.OpSet)},
	{"R45", "a Delete at any version is one at the version read before", "Commit/EachKindAtOnce", "node has another version; want success",
		atVersionRead(registry.OpDelete)},
	{"R17 R50", "checks are made before the commit that needs them", "Commit/GuardsHoldAtOnce", "the state that this has closed is \"open\"",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			isCheck := func(op registry.Op) bool { return op.Kind == registry.OpCheck }
			writes := slices.DeleteFunc(slices.Clone(ops), isCheck)
			checks := slices.DeleteFunc(slices.Clone(ops), func(op registry.Op) bool { return !isCheck(op) })
			if s.Limits().Validate(ops) != nil || len(writes) == 0 || len(checks) == 0 {
				return s.Session.Commit(ctx, ops...)
			}
			if _, err := s.Session.Commit(ctx, checks...); err != nil {
				return s.Session.Commit(ctx, ops...)
			}
			<-time.After(roundTrip)
			return s.Session.Commit(ctx, writes...)
		}}},
	{"R47", "a commit's revision is the newest there is when it is answered", "Commit/RevisionsAtOnce", "beside others, returned",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.Session.Commit(ctx, ops...)
			if err != nil || ops[0].Kind == registry.OpDelete {
				return rev, err
			}
			<-time.After(roundTrip)
			newest, err := s.Session.Commit(ctx, registry.Check(ops[0].Path, registry.AnyVersion))
			return max(rev, newest), err
		}}},
	{"R44", "alike commits of one session at once are one", "Commit/AlikeCommitsAtOnce", "commits of the same Set at once",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			return joined(s, fmt.Sprintf("commit %+v", ops), func() (registry.Revision, error) { return s.Session.Commit(ctx, ops...) })
		}}},
	{"R30", "a check is appended to the operations where they have room", "Nodes/CallersKeepWhatTheyPass", "behind the operations",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			_ = append(ops, registry.Check("/", 0))
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R30", "a byte is appended to values where they have room", "Nodes/CallersKeepWhatTheyPass", "behind the operations",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			for _, op := range ops {
				_ = append(op.Value, 0xff)
			}
			return s.Session.Commit(ctx, ops...)
		}}},
	{"R30", "a path is appended to those of a Get where they have room", "Nodes/CallersKeepWhatTheyPass", "behind the paths",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			_ = append(paths, "/")
			return s.Session.Get(ctx, paths...)
		}}},
	{"R21", "a Get joins one that is under way", "Nodes/FreshBesideOthers", " Get gives",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := joined(s, fmt.Sprint("get ", paths), func() ([]registry.Node, error) { return s.Session.Get(ctx, paths...) })
			nodes = slices.Clone(nodes)
			for i := range nodes {
				nodes[i].Value = bytes.Clone(nodes[i].Value)
			}
			return nodes, err
		}}},
	{"R21", "a list joins one that is under way", "Nodes/FreshBesideOthers", " Children gives",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := joined(s, "list "+path, func() ([]string, error) { return s.Session.Children(ctx, path) })
			return slices.Clone(names), err
		}}},
	{"R24", "a Sync joins one that is under way", "Nodes/FreshBesideOthers", "after Sync, beside others Get gives", joinedSyncs()},
	{"R74", "more than 64 Gets at once are too many", "Nodes/ManyReadsAtOnce", "registry unavailable",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			under := once(s, "under way", func() *atomic.Int64 { return new(atomic.Int64) })
			defer under.Add(-1)
			if under.Add(1) > 64 {
				return nil, registry.ErrUnavailable
			}
			<-time.After(roundTrip)
			return s.Session.Get(ctx, paths...)
		}}},
	{"R21", "the first list after a broken connection is the one before", "Nodes/OwnWritesOverBrokenConnections", "broke, and its Children gives",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			last, known := remembered[[]string](s, "list "+path)
			hits, _ := remembered[int](s, "hits")
			if s.remember("hits", s.reg.Hits()); known && s.reg.Hits() > hits {
				return slices.Clone(last), err
			}
			s.remember("list "+path, slices.Clone(names))
			return names, err
		}}},
	{"R74", "a list whose connection broke has its names twice", "Uncertain/CallsThroughBlips", "listed [",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			before := s.reg.Hits()
			names, err := s.Session.Children(ctx, path)
			if s.reg.Hits() > before {
				names = append(names, names...)
				sort.Strings(names)
			}
			return names, err
		}}},
	{"R74 R77", "a Get whose connection broke has its nodes twice", "Uncertain/CallsThroughBlips", "read 6 nodes",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			before := s.reg.Hits()
			nodes, err := s.Session.Get(ctx, paths...)
			if s.reg.Hits() > before && len(paths) > 1 {
				nodes = append(nodes, nodes...)
			}
			return nodes, err
		}}},
	{"R19", "a Set of a store that was not answered is sent again", "Uncertain/CallsThroughBlips", "Set of a store, called during",
		onStores(storeFlaw{commit: func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.StoreCloser.Commit(ctx, ops...)
			if errors.Is(err, registry.ErrUncertain) && ops[0].Kind == registry.OpSet {
				return s.StoreCloser.Commit(ctx, ops...)
			}
			return rev, err
		}})},
	{"R77", "of more than 1024 paths the rest is absent", "Nodes/GetMany", "holds ",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i := 1024; i < len(nodes); i++ {
				nodes[i] = registry.Node{Path: paths[i]}
			}
			return nodes, err
		}}},
	{"R76 R79", "a list ends with the thousandth node below", "Lists/List10k", "children of",
		flaw{children: func(s *flawed, ctx context.Context, path string) ([]string, error) {
			names, err := s.Session.Children(ctx, path)
			if len(names) > 100 || path == "/" {
				return names, err
			}
			below := 0
			for i, name := range names {
				deeper, _ := s.Session.Children(ctx, path+"/"+name)
				if below += len(deeper); below > 1000 {
					return names[:i+1], err
				}
			}
			return names, err
		}}},
	{"R75", "a Sync that gives up does not say why", "Uncertain/CutOffRead", "want \"context deadline exceeded\"",
		flaw{sync: func(s *flawed, ctx context.Context) error {
			err := s.Session.Sync(ctx)
			if errors.Is(err, registry.ErrUnavailable) {
				err = registry.ErrUnavailable
			}
			return err
		}}},
	{"R75", "a list of a store that gives up says only why", "Uncertain/CutOffRead", "want \"registry unavailable\"",
		onStores(storeFlaw{children: func(s *flawedStore, ctx context.Context, path string) ([]string, error) {
			names, err := s.StoreCloser.Children(ctx, path)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			return names, err
		}})},
	{"R75", "a Get of several nodes that gives up returns what it has", "Uncertain/CutOffRead", "error <nil>",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			if errors.Is(err, registry.ErrUnavailable) && ctx.Err() != nil && len(paths) > 1 {
				return make([]registry.Node, len(paths)), nil
			}
			return nodes, err
		}}},
	{"R41", "what was denied once is denied for ever", "Sessions/Denied", "which is allowed again",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			key := "denied " + strings.Join(paths, " ")
			if denied, _ := remembered[bool](s, key); denied {
				return nil, registry.ErrDenied
			}
			nodes, err := s.Session.Get(ctx, paths...)
			s.remember(key, errors.Is(err, registry.ErrDenied))
			return nodes, err
		}}},
	{"R8 R103", "a read that closing the registry cuts short says that this is closed", "Sessions/CallsInFlightAtRegistryClose",
		"Get, in flight when the registry was closed: error closed", flaw{
			ends: func(r *flawedRegistry) error {
				closing(r.Registry).Store(true)
				return r.Registry.Close()
			},
			get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
				lost := s.Session.Err()
				nodes, err := s.Session.Get(ctx, paths...)
				if lost == nil && closing(s.reg).Load() && errors.Is(err, registry.ErrSessionLost) {
					return nil, registry.ErrClosed
				}
				return nodes, err
			}}},
	{"R18 R19", "the commit after one that gave up is told the outcome of that", "Uncertain/CallsBesideOnesThatGiveUp", "it succeeded",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			left, _ := remembered[bool](s, "left")
			rev, err := s.Session.Commit(ctx, ops...)
			s.remember("left", errors.Is(err, registry.ErrUncertain) && ctx.Err() != nil)
			if ce := (*registry.CommitError)(nil); left && errors.As(err, &ce) {
				return 1, nil
			}
			return rev, err
		}}},
	{"R74", "a Get beside one that gives up gives up as well", "Uncertain/CallsBesideOnesThatGiveUp", "Get of a session, beside others whose context ended",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			gaveUp := once(s, "gave up", func() *atomic.Int64 { return new(atomic.Int64) })
			before := gaveUp.Load()
			nodes, err := s.Session.Get(ctx, paths...)
			if ctx.Err() != nil {
				gaveUp.Add(1)
			} else if gaveUp.Load() > before {
				return nil, errors.Join(registry.ErrUnavailable, context.Canceled)
			}
			return nodes, err
		}}},
	{"R19", "a commit beside one that gives up is uncertain as well", "Uncertain/CallsBesideOnesThatGiveUp", "beside others whose context ended: outcome unknown",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			gaveUp := once(s, "gave up", func() *atomic.Int64 { return new(atomic.Int64) })
			before := gaveUp.Load()
			rev, err := s.Session.Commit(ctx, ops...)
			if ctx.Err() != nil {
				gaveUp.Add(1)
			} else if err == nil && gaveUp.Load() > before {
				return 0, registry.ErrUncertain
			}
			return rev, err
		}}},
}

// A batch is what sessions of one registry commit at once.
type batch struct {
	mu    sync.Mutex
	under map[*flawed]int // commits
}

// beside returns another session of the registry with a commit under way, or nil, while call is.
func beside(s *flawed, call func(other *flawed) error) error {
	b := sharedBy(s.reg, "batch", func() *batch { return &batch{under: map[*flawed]int{}} })
	add := func(n int) (other *flawed) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.under[s] += n; b.under[s] == 0 {
			delete(b.under, s)
		}
		for of := range b.under {
			if of != s {
				other = of
			}
		}
		return other
	}
	add(1)
	defer add(-1)
	<-time.After(roundTrip)
	return call(add(0))
}

// siblingsBreakages are right as long as one session of a registry does something at a time.
var siblingsBreakages = []breakage{
	{"R9 R49", "what two sessions of a registry make at once is one's", "Commit/SiblingsAtOnce", "which made it at the same time as another session of its registry",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (rev registry.Revision, err error) {
			err = beside(s, func(other *flawed) error {
				by := s.Session
				if other != nil && ops[0].Kind == registry.OpCreateEphemeral && other.Session.Err() == nil {
					by = other.Session
				}
				rev, err = by.Commit(ctx, ops...)
				return err
			})
			return rev, err
		}}},
	{"R18", "a refusal hits another session of the registry", "Commit/SiblingsAtOnce", "want <nil>",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (rev registry.Revision, err error) {
			err = beside(s, func(other *flawed) error {
				rev, err = s.Session.Commit(ctx, ops...)
				ce := (*registry.CommitError)(nil)
				switch {
				case errors.As(err, &ce):
					s.remember("refused", ce)
				case err == nil && other != nil:
					if ce, is := remembered[*registry.CommitError](other, "refused"); is {
						return ce
					}
				}
				return err
			})
			return rev, err
		}}},
	{"R24", "a Get joins that of another session of the registry", "Nodes/FreshBesideOthers", " Get gives",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			rides := sharedBy(s.reg, "rides", func() *flawed { return &flawed{state: map[string]any{}} })
			if leads, _ := remembered[*flawed](rides, "leads"); leads == s || len(paths) != 1 {
				rides.remember("leads", nil)
				return s.Session.Get(ctx, paths...)
			}
			nodes, err := joined(rides, paths[0], func() ([]registry.Node, error) {
				rides.remember("leads", s)
				return s.Session.Get(ctx, paths...)
			})
			nodes = slices.Clone(nodes)
			for i := range nodes {
				nodes[i].Value = bytes.Clone(nodes[i].Value)
			}
			return nodes, err
		}}},
	{"R38", "a Delete at a version compares it before", "Commit/EachKindAtOnce", "at version 0; applied were",
		flaw{commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			if len(ops) != 1 || ops[0].Kind != registry.OpDelete || ops[0].Version < 0 || s.Limits().Validate(ops) != nil {
				return s.Session.Commit(ctx, ops...)
			}
			if _, err := s.Session.Commit(ctx, registry.Check(ops[0].Path, ops[0].Version)); err != nil {
				return s.Session.Commit(ctx, ops...)
			}
			<-time.After(roundTrip)
			rev, err := s.Session.Commit(ctx, registry.Delete(ops[0].Path, registry.AnyVersion))
			if ce := (*registry.CommitError)(nil); errors.As(err, &ce) {
				ce.Op.Version = ops[0].Version
			}
			return rev, err
		}}},
	{"R10 R99", "an ephemeral node that is on its way when its session closes is made all the same", "Sessions/EphemeralsRaceClose",
		"exists", flaw{
			close: func(s *flawed, ctx context.Context) error {
				s.remember("closing", true)
				return s.Session.Close(ctx)
			},
			commit: func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
				if s.Limits().Validate(ops) != nil || ops[0].Kind != registry.OpCreateEphemeral || s.Session.Err() != nil {
					return s.Session.Commit(ctx, ops...)
				}
				<-time.After(roundTrip)
				rev, err := s.Session.Commit(ctx, ops...)
				closing, _ := remembered[bool](s, "closing")
				if closing && errors.Is(err, registry.ErrSessionLost) {
					if again, failed := s.reg.Open(ctx); failed == nil {
						_, _ = again.Commit(ctx, ops...)
					}
					err = errors.Join(registry.ErrUncertain, registry.ErrSessionLost)
				}
				return rev, err
			}}},
	{"R19", "a commit of a store that is cancelled on the way says only that", "Uncertain/CutOffCommit", "want ErrUncertain",
		onStores(storeFlaw{commit: func(s *flawedStore, ctx context.Context, ops []registry.Op) (registry.Revision, error) {
			rev, err := s.StoreCloser.Commit(ctx, ops...)
			return rev, cancelledPlain(ctx, err)
		}})},
	{"R41", "what is denied behind a hundred others is absent", "Sessions/Denied", "error <nil>; want ErrDenied",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths[:min(len(paths), 100)]...)
			for i := len(nodes); err == nil && i < len(paths); i++ {
				if next, failed := s.Session.Get(ctx, paths[i]); failed == nil {
					nodes = append(nodes, next...)
				} else {
					nodes = append(nodes, registry.Node{Path: paths[i]})
				}
			}
			return nodes, err
		}}},
}
