package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/strategy"
)

// A contrary registry refuses what its service would let happen, where the test says so.
type contrary struct {
	registry.Registry

	mu      sync.Mutex
	why     error // nil: it refuses nothing
	is      func(op registry.Op) bool
	refused int
}

// refuse has commits fail by the operations that is says.
func (c *contrary) refuse(why error, is func(op registry.Op) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why, c.is, c.refused = why, is, 0
}

func (c *contrary) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *contrary) Open(ctx context.Context) (registry.Session, error) {
	s, err := c.Registry.Open(ctx)
	return &contradicting{s, c}, err
}

type contradicting struct {
	registry.Session

	c *contrary
}

func (s *contradicting) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	s.c.mu.Lock()
	if s.c.why != nil {
		if at := slices.IndexFunc(ops, s.c.is); at >= 0 {
			defer s.c.mu.Unlock()
			s.c.refused++
			return 0, &registry.CommitError{Index: at, Op: ops[at], Err: s.c.why}
		}
	}
	s.c.mu.Unlock()
	return s.Session.Commit(ctx, ops...)
}

// contradicted has each instance that is started from now on use a registry that can be told to refuse; the latest is
// returned by the function.
func (b *bed) contradicted() func() *contrary {
	client := b.client
	var last *contrary
	b.client = func(t *testing.T, ns string) registry.Registry {
		last = &contrary{Registry: client(t, ns)}
		return last
	}
	return func() *contrary { return last }
}

// hang makes nodes, with all those above them.
func (b *bed) hang(in *instance, paths ...string) {
	b.Helper()
	for _, p := range paths {
		require.NoError(b, registry.EnsurePath(b.Context(), b.store(in), p))
	}
}

// Somebody makes nodes below those of the job, whatever they are: the owner leaves, the total changes, requests are
// answered, and the same instance leads all the time.
func TestALeaderIsStoppedByNoNodeOfAStranger(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it leads", func() bool { return allOwned(4, a) && a.job().Leader == a.job().Instance })
		c := b.start("c", w, everySecond)
		b.until("both have items", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		dead := b.own(a, "ledgers/"+c.job().Instance)
		b.hang(a, dead+"/notes/x", dead+"/3/x", dead+"/04", b.own(a, "ledgers/"+a.job().Instance)+"/notes/x")
		b.set(a, b.own(a, "inforce/kill@x"), string(layout.MarshalKill(layout.Kill{Due: time.Now()})))
		b.set(a, b.own(a, "inforce/request@x"), string(layout.MarshalRequest(layout.Request{Items: "0"})))
		b.hang(a, b.own(a, "inforce/kill@x/notes"), b.path(a, "leader/sharding/necessary/notes"), b.path(a, "sharding/9/notes/x"))
		c.stop(b)
		b.until("the other has all items", func() bool { return allOwned(4, a) })
		b.until("nothing of it is left", func() bool {
			nodes, err := b.store(a).Get(b.Context(), dead)
			return err == nil && !nodes[0].Exists()
		})
		b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 3")
		b.until("the total has changed", func() bool { return allOwned(3, a) })
		ran := w.count()
		b.until("it fires", func() bool { return w.count() > ran+6 })
		for _, e := range of[event.LeaderChanged](a) {
			require.True(b, e.Self, "it has handed over")
		}
		require.Empty(b, w.doubled())
		require.Empty(b, of[event.Warning](a))
	})
}

// Of a registration that was removed from outside, and below whose ledger somebody has made nodes, the next one is made
// all the same, also where those nodes cannot be deleted: then the ledger stays without an item.
func TestARegistrationIsMadeAnewWhateverHangsBelowItsLedger(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprint("protected: ", left), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				last, w := b.contradicted(), newWitness()
				a := b.start("a", w, everySecond)
				b.until("it fires", func() bool { return allOwned(4, a) && w.count() >= 8 })
				reg, id := last(), a.job().Instance
				led := b.own(a, "ledgers/"+id)
				for i := range 100 {
					b.hang(a, fmt.Sprint(led, "/notes/", i, "/x"))
				}
				if left {
					reg.refuse(registry.ErrDenied, func(op registry.Op) bool {
						return op.Kind == registry.OpDelete && strings.HasPrefix(op.Path, led+"/notes/")
					})
				}
				b.remove(a, b.own(a, "lives/"+id))
				b.until("it is registered anew", func() bool { return a.job().Instance != id && allOwned(4, a) })
				ran := w.count()
				b.until("it fires", func() bool { return w.count() >= ran+8 })
				pause(20 * time.Second)
				nodes, err := b.store(a).Get(b.Context(), led)
				require.NoError(b, err)
				require.Equal(b, left, nodes[0].Exists())
				require.Empty(b, w.doubled())
				require.True(b, allOwned(4, a))
			})
		})
	}
}

// An instance crashes, and before its session ends somebody deletes what shows it: its items have another owner when the
// session ends, and not with the next reconciliation.
func TestALeaderGivesAwayWhatAHalfDeletedInstanceHad(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.ReconcileInterval = time.Hour
		a := b.start("a", w, cfg)
		b.until("it leads", func() bool { return allOwned(4, a) })
		c := b.start("c", w, cfg)
		b.until("both have items", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
		id, session := c.job().Instance, c.State().Session
		c.gate.cut.Store(true)
		b.remove(a, b.path(a, "instances/"+id), b.own(a, "lives/"+id))
		b.until("it says for whom it waits", func() bool { return strings.Contains(a.job().WaitingFor, id) })
		b.expire(session)
		begun := time.Now()
		b.until("its items have an owner", func() bool { return allOwned(4, a) })
		require.Less(b, time.Since(begun), time.Second)
		require.Empty(b, a.job().WaitingFor)
	})
}

// A listener's answer that is refused by what is shown as it was is not given again and again without a pause.
func TestALeaderIsAnsweredWithPauses(t *testing.T) {
	inBubble(t, func(b *bed) {
		last, w, x := b.contradicted(), newWitness(), &rounds{}
		a := b.start("a", w, everySecond, x.listen("hello"))
		reg := last()
		b.until("it is called", func() bool { return len(x.all()) >= 2 })
		claim := b.own(a, "inforce/claim")
		reg.refuse(registry.ErrVersion, func(op registry.Op) bool {
			if op.Path != claim || op.Kind != registry.OpSet {
				return false
			}
			c, err := layout.UnmarshalClaim(op.Value)
			return err == nil && c.Completed.Done
		})
		pause(time.Minute)
		require.Less(b, reg.count(), 120)
		require.Positive(b, reg.count())
		reg.refuse(nil, nil)
		before := len(x.all())
		b.until("rounds go on", func() bool { return len(x.all()) >= before+3 })
	})
}

// What somebody deleted above the node of a server is made again, and not asked for without a pause by whoever is
// connected to a server that shows it.
func TestAServersNodeIsMadeAgainWithPauses(t *testing.T) {
	inBubble(t, func(b *bed) {
		last, w := b.contradicted(), newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 8 })
		reg, server := last(), b.path(a, "servers/127.0.0.1")
		reg.refuse(registry.ErrNoParent, func(op registry.Op) bool { return op.Path == server && op.Kind == registry.OpCreate })
		b.remove(a, server)
		pause(time.Minute)
		require.Less(b, reg.count(), 120)
		reg.refuse(nil, nil)
		b.until("it stands", func() bool {
			nodes, err := b.store(a).Get(b.Context(), server)
			return err == nil && nodes[0].Exists()
		})
		ran := w.count()
		b.until("it fires", func() bool { return w.count() >= ran+8 })
	})
}

// An erring strategy gives items in turn, until it is told to do something else.
type erring struct {
	mu   sync.Mutex
	does func(in strategy.Input) strategy.Assignment
}

func (e *erring) Name() string { return "ERRING" }

func (e *erring) Assign(in strategy.Input) strategy.Assignment {
	e.mu.Lock()
	does := e.does
	e.mu.Unlock()
	if does == nil {
		return strategy.AvgAllocation{}.Assign(in)
	}
	return does(in)
}

func (e *erring) set(does func(in strategy.Input) strategy.Assignment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.does = does
}

// A strategy of the program's own that panics, or does not return, ends neither the leader's process nor its lead: items
// stay where they are, it is told, and asked again.
func TestALeaderOutlivesAStrategyThatPanics(t *testing.T) {
	oh := errors.New("oh")
	for name, does := range map[string]func(in strategy.Input) strategy.Assignment{
		"panics":  func(strategy.Input) strategy.Assignment { panic(oh) },
		"exits":   func(strategy.Input) strategy.Assignment { runtime.Goexit(); return nil },
		"nothing": func(strategy.Input) strategy.Assignment { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w, e, cfg := newWitness(), &erring{}, everySecond
				cfg.Strategy = "ERRING"
				with := core.WithStrategy("ERRING", e)
				a := b.start("a", w, cfg, with)
				b.until("it leads", func() bool { return allOwned(4, a) })
				c := b.start("c", w, cfg, with)
				b.until("both have items", func() bool { return allOwned(4, a, c) && len(c.job().Items) == 2 })
				e.set(does)
				d := b.start("d", w, cfg, with)
				c.stop(b)
				items := a.job().Items
				pause(time.Minute)
				require.Equal(b, items, a.job().Items)
				require.Empty(b, d.job().Items)
				var told []event.Warning
				for _, e := range of[event.Warning](a) {
					if strings.Contains(e.Problem, "the items stay where they are") {
						told = append(told, e)
					}
				}
				require.NotEmpty(b, told)
				require.Less(b, len(told), 8)
				require.ErrorContains(b, told[0].Err, `the sharding strategy "ERRING" has no assignment: `)
				if name == "panics" {
					panicked, is := errors.AsType[*core.PanicError](told[0].Err)
					require.True(b, is)
					require.Equal(b, oh, panicked.Value)
				}
				require.Less(b, requestsIn(time.Minute, a), int64(2_000))
				e.set(nil)
				b.until("all have an owner", func() bool { return allOwned(4, a, d) && len(d.job().Items) == 2 })
				require.Empty(b, w.doubled())
			})
		})
	}
}

// A strategy that does not return is told, and holds up no other job: neither over the loss of the session, nor at Stop.
func TestAStrategyThatDoesNotReturn(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, e, cfg, other := newWitness(), &erring{}, everySecond, everySecond
		cfg.Name, cfg.Strategy = "hung", "ERRING"
		let := make(chan struct{})
		defer close(let)
		e.set(func(strategy.Input) strategy.Assignment { <-let; return nil })
		a := b.prepare("a", w, other, core.WithStrategy("ERRING", e))
		require.NoError(b, a.Add(core.JobFunc(func(context.Context, core.Shard) error { return nil }), cfg))
		require.NoError(b, a.Start(b.Context()))
		b.until("the other job has its items", func() bool { return allOwned(4, a) })
		pause(time.Minute)
		told := 0
		for _, e := range of[event.Warning](a) {
			if strings.Contains(e.Problem, `the sharding strategy "ERRING" has not returned within 10s`) {
				told++
			}
		}
		require.Equal(b, 1, told)
		b.expire(a.State().Session)
		ran := w.count()
		b.until("the other job goes on in another session", func() bool { return w.count() > ran+8 })
		a.stop(b)
	})
}

// requestsIn are those that an instance makes in a while.
func requestsIn(while time.Duration, in *instance) int64 {
	before := requests(in)
	pause(while)
	return requests(in) - before
}

// What is wrong with a strategy's answer is told once, and what can be done by it is done.
func TestALeaderTellsWhatIsWrongWithAnAssignment(t *testing.T) {
	for name, c := range map[string]struct {
		does func(in strategy.Input) strategy.Assignment
		says string
		owns []int
	}{
		"nobody is given one": {func(in strategy.Input) strategy.Assignment {
			return strategy.Assignment{in.Instances[0]: {0, 1, 2}}
		}, "item 3 of 4 is given to nobody", []int{0, 1, 2}},
		"nobody has asked for one": {func(in strategy.Input) strategy.Assignment {
			return strategy.Assignment{in.Instances[0]: {0, 1, 2, 3, 4, -1}}
		}, "is not one of 0 to 3", []int{0, 1, 2, 3}},
		"one is given twice": {func(in strategy.Input) strategy.Assignment {
			return strategy.Assignment{in.Instances[0]: {0, 1, 2, 2, 3}}
		}, "item 2 is given twice", []int{0, 1, 2, 3}},
		"to somebody else": {func(in strategy.Input) strategy.Assignment {
			return strategy.Assignment{in.Instances[0]: {1, 2, 3}, "somebody": {0}}
		}, "was not asked for", []int{1, 2, 3}},
		"in no order": {func(in strategy.Input) strategy.Assignment {
			return strategy.Assignment{in.Instances[0]: {3, 1, 2, 0}}
		}, "", []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w, e, cfg := newWitness(), &erring{}, everySecond
				cfg.Strategy, cfg.ReconcileInterval = "ERRING", time.Minute
				e.set(c.does)
				a := b.start("a", w, cfg, core.WithStrategy("ERRING", e))
				b.until("it has its items", func() bool { return slices.Equal(a.job().Items, c.owns) })
				pause(10 * time.Minute)
				require.Equal(b, c.owns, a.job().Items)
				told := of[event.Warning](a)
				if c.says == "" {
					require.Empty(b, told)
					return
				}
				require.Len(b, told, 1)
				require.Contains(b, told[0].Problem, `the sharding strategy "ERRING" gives a wrong answer`)
				require.ErrorContains(b, told[0].Err, c.says)
			})
		})
	}
}

// A request of a tool whose clock is behind is accepted, and one that was made while nobody was there expires by it.
func TestALeaderCountsHowLongARequestStands(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Cron = "@requests"
		a := b.start("a", w, cfg)
		b.until("it leads", func() bool { return allOwned(4, a) })
		ask := func(in *instance, id string) {
			r := layout.Request{Within: time.Minute, Expires: time.Now().Add(-time.Hour)}
			b.set(in, b.own(in, "inforce/request@"+id), string(layout.MarshalRequest(r)))
		}
		ask(a, "x")
		b.until("it runs", func() bool { return w.count() == 4 })
		a.stop(b)
		ask(a, "y")
		c := b.start("c", w, cfg)
		b.until("it is answered", func() bool {
			nodes, err := b.store(c).Get(b.Context(), b.own(c, "inforce/run@2"))
			return err == nil && strings.Contains(string(nodes[0].Value), "expired")
		})
		require.Equal(b, 4, w.count())
	})
}

// What somebody writes beside the runs that were asked for, with numbers of his own, stops none.
func TestALeaderBelievesNoAbsurdNumber(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := everySecond
		cfg.Cron = "@requests"
		a := b.start("a", w, cfg)
		b.until("it leads", func() bool { return allOwned(4, a) })
		for _, name := range []string{"run@9223372036854775807", "run@4611686018427387904", "run@3"} {
			b.set(a, b.own(a, "inforce/"+name), "hello")
		}
		b.hang(a, b.own(a, "runs"))
		b.set(a, b.own(a, "runs"), "9223372036854775806")
		for n := range 5 {
			b.set(a, b.own(a, fmt.Sprint("inforce/request@x", n)), string(layout.MarshalRequest(layout.Request{Items: "2"})))
			b.until("it runs", func() bool { return w.count() == n+1 })
		}
		pause(time.Minute)
		require.Equal(b, 5, w.count())
		require.Less(b, requestsIn(time.Minute, a), int64(20))
		last, err := b.store(a).Get(b.Context(), b.own(a, "runs"))
		require.NoError(b, err)
		require.Equal(b, "6", string(last[0].Value), "the third number was taken")
	})
}
