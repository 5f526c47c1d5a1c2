package leading

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// asks counts what members ask for in a while.
func (b *bed) counted(while time.Duration) (requests int) {
	b.mu.Lock()
	before := b.gets + b.commits
	b.mu.Unlock()
	<-time.After(while)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gets + b.commits - before
}

// contradicts has the registry refuse what one of the members commits, where is says so of an operation.
func (b *bed) contradicts(member string, why error, is func(op registry.Op) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = func(id string, ops []registry.Op) error {
		if at := slices.IndexFunc(ops, is); id == member && at >= 0 {
			return &registry.CommitError{Index: at, Op: ops[at], Err: why}
		}
		return nil
	}
}

// The directory of the items is made again, at once, and nobody asks without a pause where that cannot be.
func TestTheDirectoryOfTheItemsIsMadeAgain(t *testing.T) {
	for _, denied := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			m := b.join("a", at(time.Millisecond))
			b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
			<-time.After(20 * time.Second)
			require.NoError(t, registry.DeleteTree(t.Context(), b.stranger, b.job.Sharding()))
			mended := func() bool { return string(b.get(b.job.ItemInstance(5)).Value) == "a" }
			if denied {
				b.contradicts("a", registry.ErrDenied, func(op registry.Op) bool { return op.Path == b.job.Sharding() })
				m.Reconcile()
				require.Less(t, b.counted(time.Minute), 300)
				require.NotEmpty(t, of[event.Warning](m))
				require.Less(t, len(of[event.Warning](m)), 12)
				b.mended()
			} else {
				m.Reconcile()
			}
			took := b.until("the nodes of the items stand", mended)
			require.Less(t, took, 3*time.Second)
			require.Less(t, b.counted(time.Minute), 5, "and then it rests")
			if !denied {
				require.Empty(t, of[event.Warning](m))
			}
		})
	}
}

// One node of an item that cannot be set right is left, which one Warning says; the others are.
func TestAnItemsNodeThatCannotBeSetRight(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(time.Millisecond))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		<-time.After(20 * time.Second)
		for n := range 6 {
			b.commit(registry.Set(b.job.ItemInstance(n), []byte("x"), registry.AnyVersion))
		}
		b.contradicts("a", registry.ErrVersion, func(op registry.Op) bool { return op.Path == b.job.ItemInstance(3) })
		m.Reconcile()
		require.Less(t, b.counted(time.Minute), 60)
		for n := range 6 {
			want := "a"
			if n == 3 {
				want = "x"
			}
			require.Equal(t, want, string(b.get(b.job.ItemInstance(n)).Value))
		}
		warned := slices.DeleteFunc(of[event.Warning](m), func(e event.Warning) bool { return !strings.Contains(e.Problem, b.job.ItemInstance(3)) })
		require.Len(t, warned, 1)
		b.mended()
		m.Reconcile()
		b.until("all are right", func() bool { return string(b.get(b.job.ItemInstance(3)).Value) == "a" })
	})
}

// What a stranger has made in place of an item's node goes: an ephemeral node has no children.
func TestAnItemsNodeThatIsEphemeral(t *testing.T) {
	inBubble(t, func(b *bed) {
		for n := range 2 {
			b.commit(registry.CreateEphemeral(b.job.Item(n), nil))
		}
		m := b.join("a", at(time.Millisecond))
		took := b.until("the items have an owner", func() bool { return b.led(m) && b.spread(6, "a") && b.epoch().Assigned })
		require.Less(t, took, time.Second)
		<-time.After(20 * time.Second)
		require.NoError(t, registry.DeleteTree(t.Context(), b.stranger, b.job.Item(4)))
		b.commit(registry.CreateEphemeral(b.job.Item(4), nil))
		m.Reconcile()
		took = b.until("all are right", func() bool {
			return string(b.get(b.job.ItemInstance(4)).Value) == "a" && string(b.get(b.job.ItemInstance(0)).Value) == "a"
		})
		require.Less(t, took, time.Second)
		require.Empty(t, of[event.Warning](m))
	})
}

// A server that shows the term as it was, and refuses what goes by it, is not asked without a pause: not by who tidies,
// nor by who sets the nodes of items right.
func TestWhoTidiesAsksAContraryServerRarely(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(0))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		<-time.After(20 * time.Second)
		b.commit(registry.Create(b.job.Item(8), nil), registry.Set(b.job.ItemInstance(2), []byte("x"), registry.AnyVersion))
		b.contradicts("a", registry.ErrVersion, func(op registry.Op) bool { return op.Path == b.job.Term() && op.Kind == registry.OpCheck })
		m.Reconcile()
		require.Less(t, b.counted(time.Minute), 400)
		b.mended()
		took := b.until("all is done", func() bool { return b.itemsAre(6) && string(b.get(b.job.ItemInstance(2)).Value) == "a" })
		require.Less(t, took, 5*time.Second)
	})
}

// Who wants to be elected, and cannot make the directory for it, asks with pauses.
func TestElectionsWithoutADirectoryAreRare(t *testing.T) {
	for name, why := range map[string]error{"denied": registry.ErrDenied, "a server that shows it": registry.ErrNoParent} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				m := b.join("a", at(0))
				b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
				b.contradicts("a", why, func(op registry.Op) bool {
					return op.Path == b.job.LeaderElection() || errors.Is(why, registry.ErrNoParent) && op.Path == b.job.Leader() && op.Kind == registry.OpCreateEphemeral
				})
				require.NoError(t, registry.DeleteTree(t.Context(), b.stranger, b.job.LeaderElection()))
				if errors.Is(why, registry.ErrNoParent) {
					b.tree(b.job.LeaderElection())
				}
				require.Less(t, b.counted(time.Minute), 300)
				require.NotEmpty(t, of[event.Warning](m))
				b.mended()
				took := b.until("it leads again", func() bool { return b.led(m) })
				require.Less(t, took, 3*time.Second)
			})
		})
	}
}

// Where an owner has gone, and somebody has deleted nodes of its registration before, its items have an owner as soon as
// nothing of it is left. Until then it is told, and the job says for whom it waits.
func TestItemsOfARegistrationThatIsHalfDeleted(t *testing.T) {
	inBubble(t, func(b *bed) {
		m, other := b.pair()
		told := b.get(b.job.Notice("b")).Version
		b.commit(registry.Delete(b.job.Life("b"), registry.AnyVersion))
		b.until("it says so", func() bool { return strings.Contains(m.waitsFor(), "instances b, of whose nodes") })
		require.Greater(t, b.get(b.job.Notice("b")).Version, told)
		require.Less(t, b.counted(time.Minute), 12*6, "a look every five seconds")
		require.True(t, b.spread(6, "a", "b"), "it may run on")
		require.True(t, b.srv.Expire(other.ses.ID()))
		took := b.until("its items have an owner", func() bool { return b.spread(6, "a") })
		require.Less(t, took, time.Second)
		b.until("nothing is waited for", func() bool { return m.waitsFor() == "" })
	})
}

// Who leads no more watches nothing for it, and waits for nothing.
func TestAFormerLeaderRests(t *testing.T) {
	for name, stop := range map[string]func(b *bed, m *member){
		"it may not lead":           func(*bed, *member) {},
		"nobody leads":              func(*bed, *member) {},
		"its term is gone":          func(b *bed, _ *member) { b.commit(registry.Delete(b.job.Term(), registry.AnyVersion)) },
		"the leader's node is gone": func(b *bed, _ *member) { b.commit(registry.Delete(b.job.Leader(), registry.AnyVersion)) },
		"its registration is over": func(b *bed, m *member) {
			m.Close()
			b.commit(registry.Delete(b.job.Leader(), registry.AnyVersion), registry.Delete(b.job.Term(), registry.AnyVersion))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.change(func(f *Facts) {
					f.Asked, f.Clocks = true, true
					f.Listens = map[string]layout.Listens{"a": {After: true}, "b": {After: true}}
				})
				m, other := b.pair()
				b.commit(registry.Create(b.job.Request("x"), layout.MarshalRequest(layout.Request{})))
				m.Answer()
				b.until("it is accepted", func() bool { return b.runOf("x") != nil })
				n, l := b.get(b.job.Ledger("b")), b.ledger("b")
				for _, k := range l.Numbers() {
					rec, _ := l.Get(k)
					rec.Run, rec.Request, rec.Asked = b.runOf("x").At, 1, 1
					l.Set(k, rec)
				}
				b.commit(registry.Set(n.Path, l.Encode(), n.Version))
				b.change(func(f *Facts) { f.Total = 7 }, m)
				b.until("it waits for an end", func() bool { return strings.HasPrefix(m.waitsFor(), "items ") })
				for _, p := range []string{b.job.RoundsDir(), b.job.RunResults(1), b.job.Clocks(), b.job.Term(), b.job.Trigger(), b.job.ShardingState(), b.job.Ledger("b")} {
					b.until("it watches "+p, func() bool { return slices.Contains(m.watches(), p) })
				}
				other.SetAble(name != "nobody leads")
				stop(b, m)
				m.SetAble(false)
				b.until("it rests", func() bool { return len(m.watches()) == 0 && m.waitsFor() == "" })
				b.until("another leads", func() bool { return name == "nobody leads" || b.led(other) })
				require.Empty(t, m.watches())
			})
		})
	}
}

// What is written over what is in force while the leader looks is seen when it has.
func TestWhatIsWrittenDuringALookIsSeen(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.Asked = true })
		m := b.join("a", at(time.Millisecond))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") && b.epoch().Assigned })
		<-time.After(20 * time.Second)
		good := string(b.get(b.job.Base()).Value)
		var hit, over atomic.Bool
		b.mu.Lock()
		b.asks = func(paths []string) { // the view is read by then, and the look goes on
			if slices.Contains(paths, b.job.Runs()) && !slices.Contains(paths, b.job.Ledger("a")) && hit.CompareAndSwap(false, true) {
				b.commit(registry.Set(b.job.Base(), []byte("hello"), registry.AnyVersion))
				m.OnInForce(b.get(b.job.Base()))
				over.Store(true)
			}
		}
		b.mu.Unlock()
		m.Look()
		took := b.until("it is made again", func() bool { return over.Load() && string(b.get(b.job.Base()).Value) == good })
		require.Less(t, took, time.Second)
	})
}

// A strategy without an answer moves nothing: its owners go on, requests are answered, and it is asked again.
func TestAStrategyWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.Asked = true })
		m, other := b.pair()
		broken := errors.New("the sharding strategy \"mine\" has no assignment: panic: oh")
		b.mu.Lock()
		b.fails = broken
		b.mu.Unlock()
		was := b.get(b.job.Ledger("a")).Version
		other.end()
		<-time.After(10 * time.Second)
		require.Equal(t, was, b.get(b.job.Ledger("a")).Version)
		require.Equal(t, 3, b.ledger("b").Len(), "the items of the dead wait")
		b.commit(registry.Create(b.job.Request("x"), layout.MarshalRequest(layout.Request{Items: "0"})))
		m.Answer()
		took := b.until("a request is answered", func() bool { return b.runOf("x") != nil })
		require.Less(t, took, time.Second)
		warned := of[event.Warning](m)
		require.NotEmpty(t, warned)
		require.Less(t, len(warned), 5)
		require.ErrorIs(t, warned[0].Err, broken)
		require.Contains(t, warned[0].Problem, "stay where they are")
		require.Less(t, b.counted(time.Minute), 300)
		require.True(t, b.led(m))

		b.change(func(f *Facts) { f.Total = 8 }, m)
		<-time.After(10 * time.Second)
		b.mu.Lock()
		b.fails = nil
		b.mu.Unlock()
		b.until("they have an owner", func() bool { return b.finish(m) && b.spread(8, "a") && b.epoch().Assigned })
	})
}

// Numbers that nobody can have given are no runs: the next one has a number that can be read.
func TestRunsOfAbsurdNumbers(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.Asked = true })
		m := b.join("a", at(time.Millisecond))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		good := layout.Run{Number: 7, Request: "y", At: time.Now(), Items: "0", Total: 6, Closed: time.Now()}
		huge := good
		huge.Number, huge.Total, huge.Closed = 9, 1<<62, time.Time{}
		huge.Items = "0-4611686018427387900"
		b.commit(registry.Create(b.job.Runs(), []byte("9223372036854775807")))
		b.commit(
			registry.Create(b.job.Run(1<<63-1), nil), registry.Create(b.job.Run(1<<62), layout.MarshalRun(good)),
			registry.Create(b.job.Run(5), layout.MarshalRun(good)), registry.Create(b.job.Run(7), layout.MarshalRun(good)),
			registry.Create(b.job.Run(8), []byte("hello")), registry.Create(b.job.RunResults(10), nil), registry.Create(b.job.RunResults(11), nil),
			registry.Create(b.job.Run(9), layout.MarshalRun(huge)),
		)
		n, l := b.get(b.job.Ledger("a")), b.ledger("a")
		rec, _ := l.Get(0)
		rec.Asked = 3
		l.Set(0, rec)
		b.commit(registry.Set(n.Path, l.Encode(), n.Version))
		b.commit(registry.Create(b.job.Request("x"), layout.MarshalRequest(layout.Request{Items: "0"})))
		m.Answer()
		took := b.until("a request is accepted", func() bool { return b.runOf("x") != nil })
		require.Less(t, took, time.Second)
		require.EqualValues(t, 12, b.runOf("x").Number)
		require.Equal(t, "12", string(b.get(b.job.Runs()).Value))
		require.Less(t, b.counted(time.Minute), 100)
		require.Len(t, of[event.Warning](m), 4, "%v", of[event.Warning](m))
		for _, name := range []string{"run@5", "run@8"} {
			require.True(t, b.get(b.job.InForce()+"/"+name).Exists(), "it is nobody's to remove")
		}
	})
}

// A base of which nobody could have the items is made again.
func TestABaseOfAbsurdNumbers(t *testing.T) {
	for _, spoilt := range []layout.Base{{Epoch: 1, To: 1 << 62, Assigned: true}, {Epoch: 1<<63 - 1, To: 6, Assigned: true}} {
		inBubble(t, func(b *bed) {
			m := b.join("a", at(time.Millisecond))
			b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") && b.epoch().Assigned })
			was := b.epoch()
			b.commit(registry.Set(b.job.Base(), layout.MarshalBase(spoilt), registry.AnyVersion))
			m.OnInForce(b.get(b.job.Base()))
			took := b.until("it is made again", func() bool { return b.epoch() == was })
			require.Less(t, took, time.Second)
			require.True(t, b.spread(6, "a"))
		})
	}
}

// A request expires by how long it has stood, as whoever leads has seen, and not by what the clock says of who asks.
func TestARequestExpiresByHowLongItStands(t *testing.T) {
	ask := func(within, expires time.Duration) func() layout.Request {
		return func() layout.Request {
			r := layout.Request{Items: "0", Within: within}
			if expires != 0 {
				r.Expires = time.Now().Add(expires)
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		request func() layout.Request
		waits   time.Duration // until its items are assigned, so that it can be accepted
		former  bool          // it stood before the leader's process looked
		expires bool
	}{
		"the clock of who asks is behind":           {ask(time.Minute, -time.Hour), 0, false, false},
		"ahead":                                     {ask(time.Minute, time.Hour), 0, false, false},
		"behind, and it waits":                      {ask(time.Minute, -time.Hour), 50 * time.Second, false, false},
		"and waits for too long":                    {ask(time.Minute, -time.Hour), 70 * time.Second, false, true},
		"ahead, and it waits for too long":          {ask(time.Minute, time.Hour), 70 * time.Second, false, true},
		"for ever":                                  {ask(0, 0), time.Hour, false, false},
		"of a former version":                       {ask(0, time.Minute), 50 * time.Second, false, false},
		"of a former version, and its time is over": {ask(0, time.Minute), 70 * time.Second, false, true},
		"it stood before":                           {ask(time.Minute, time.Minute), 0, true, false},
		"it stood before, and its time is over":     {ask(time.Minute, -time.Second), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.change(func(f *Facts) { f.Asked = true })
				m := b.join("a", at(time.Millisecond))
				b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
				n, l := b.get(b.job.Ledger("a")), b.ledger("a")
				rec, _ := l.Get(3)
				rec.Run = time.Now()
				l.Set(3, rec)
				if c.waits > 0 {
					b.commit(registry.Set(n.Path, l.Encode(), n.Version))
					b.change(func(f *Facts) { f.Total = 7 }, m) // an item that runs holds it up
					b.until("an epoch ends", func() bool { return b.ledger("a").Held })
				}
				b.commit(registry.Create(b.job.Request("x"), layout.MarshalRequest(c.request())))
				if c.former {
					m.cfg.Memory.SawRequest(b.get(b.job.Request("x")), false)
				}
				m.Answer()
				<-time.After(c.waits)
				b.until("the epoch has ended", func() bool {
					if c.waits == 0 {
						return true
					}
					n, l := b.get(b.job.Ledger("a")), b.ledger("a")
					if rec, has := l.Get(3); has && rec.Running() {
						rec.Through, rec.Run = rec.Run, time.Time{}
						l.Set(3, rec)
						b.commit(registry.Set(n.Path, l.Encode(), n.Version))
						m.Look()
					}
					return b.finish(m) && b.spread(7, "a") && b.epoch().Assigned
				})
				b.until("it is answered", func() bool { return b.runOf("x") != nil })
				if c.expires {
					require.Equal(t, "expired", b.runOf("x").Problem)
				} else {
					require.Empty(t, b.runOf("x").Problem)
				}
			})
		})
	}
}

// What a process has seen of a request it knows in its next session too.
func TestAMemoryKnowsHowLongRequestsStand(t *testing.T) {
	inBubble(t, func(b *bed) {
		var m Memory
		n := registry.Node{Path: "/r", Created: 7}
		m.SawRequest(n, true)
		<-time.After(time.Minute)
		stood, known := m.stands(n)
		require.True(t, known)
		require.Equal(t, time.Minute, stood)
		m.Anew()
		m.SawRequest(n, false)
		stood, known = m.stands(n)
		require.True(t, known)
		require.Equal(t, time.Minute, stood)

		another := registry.Node{Path: "/r", Created: 9}
		m.SawRequest(another, false)
		_, known = m.stands(another)
		require.False(t, known, "nobody has seen it made")
		m.SawRequest(registry.Node{Path: "/r"}, true)
		require.Empty(t, m.requests)
		stood, known = m.stands(another)
		require.True(t, known, "what was not shown yet has just been made")
		require.Zero(t, stood)
		m.Anew()
		m.Anew()
		require.Empty(t, m.before)
	})
}

// A request whose run would outgrow a node is answered, and a run that would when it is closed is left: no other waits
// for either.
func TestWhatOutgrowsANode(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.Asked = true })
		m := b.join("a", at(time.Millisecond))
		b.until("it leads", func() bool { return b.led(m) && b.spread(6, "a") })
		most := m.ses.Limits().MaxValue
		open := layout.Run{Number: 1, Request: "open", Epoch: 1, At: time.Now(), Items: "0", Total: 6}
		open.Parameter = strings.Repeat("x", most-len(layout.MarshalRun(open))-20)
		long := layout.Request{Items: "0"}
		long.Parameter = strings.Repeat("x", most-len(layout.MarshalRequest(long))-20)
		b.commit(
			registry.Create(b.job.Runs(), []byte("1")), registry.Create(b.job.RunResults(1), nil),
			registry.Create(b.job.RunResult(1, "a"), layout.MarshalResults(layout.Results{Results: []layout.Answer{{Items: "0", Outcome: "succeeded"}}})),
		)
		b.commit(registry.Create(b.job.Run(1), layout.MarshalRun(open)))
		b.commit(registry.Create(b.job.Request("long"), layout.MarshalRequest(long)))
		b.commit(registry.Create(b.job.Request("short"), layout.MarshalRequest(layout.Request{Items: "0"})))
		m.Answer()
		took := b.until("the last request is accepted", func() bool { return b.runOf("short") != nil })
		require.Less(t, took, time.Second)
		require.Contains(t, b.runOf("long").Problem, "the request is too long")
		require.False(t, b.runOf("long").Closed.IsZero())
		require.True(t, b.runOf("open").Closed.IsZero())
		b.commit(registry.Create(b.job.RunResult(3, "a"), layout.MarshalResults(layout.Results{Results: []layout.Answer{{Items: "0", Outcome: "succeeded"}}})))
		b.until("its run is closed", func() bool { return !b.runOf("short").Closed.IsZero() })
		require.Less(t, b.counted(time.Minute), 100)
		require.Len(t, of[event.Warning](m), 1, "%v", of[event.Warning](m))
	})
}
