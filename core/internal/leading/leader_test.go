package leading

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func ids(members ...*member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.id)
	}
	return all
}

func TestOneOfSeveralLeads(t *testing.T) {
	inBubble(t, func(b *bed) {
		var members []*member
		for _, id := range []string{"a", "b", "c"} {
			members = append(members, b.join(id, at(2*time.Millisecond)))
		}
		b.until("spread", func() bool { return b.led(members...) && b.spread(6, "a", "b", "c") })
		leader := members[slices.Index(ids(members...), members[0].Leading())]
		require.False(b, leader.Settled())
		leader.SetAble(false)
		b.until("another leads", func() bool { return b.led(members...) && string(b.get(b.job.Leader()).Value) != leader.id })
		b.until("the former is settled", leader.Settled)
		require.Empty(b, of[event.Warning](members...))
		for _, m := range members {
			m.SetAble(false)
		}
		b.until("nobody leads", func() bool { return !b.get(b.job.Leader()).Exists() && !b.get(b.job.Term()).Exists() })
	})
}

// Whatever a stranger does to the nodes of a leader, one leads again, also when nobody
// looks at the time.
func TestStrangersAtTheLeadersNodes(t *testing.T) {
	anyVersion := registry.AnyVersion
	for name, do := range map[string]func(b *bed, leader, term string){
		"the term is deleted": func(b *bed, _, term string) { b.commit(registry.Delete(term, anyVersion)) },
		"the term is overwritten": func(b *bed, _, term string) {
			b.commit(registry.Set(term, []byte("hello"), anyVersion))
		},
		"the term is overwritten with the same name": func(b *bed, leader, term string) {
			b.commit(registry.Set(term, append(b.get(leader).Value, " 99"...), anyVersion))
		},
		"the leader is deleted": func(b *bed, leader, _ string) { b.commit(registry.Delete(leader, anyVersion)) },
		"the leader is overwritten": func(b *bed, leader, _ string) {
			b.commit(registry.Set(leader, []byte("x"), anyVersion))
		},
		"the leader is made persistent": func(b *bed, leader, _ string) {
			b.commit(registry.Delete(leader, anyVersion))
			b.commit(registry.Create(leader, []byte("x")))
		},
		"both are deleted": func(b *bed, leader, term string) {
			b.commit(registry.Delete(leader, anyVersion), registry.Delete(term, anyVersion))
		},
		"a term stays that nobody has": func(b *bed, leader, term string) {
			b.commit(registry.Delete(leader, anyVersion), registry.Delete(term, anyVersion))
			b.commit(registry.Create(term, []byte("x 7")))
		},
		"a term stays of one that is gone": func(b *bed, leader, term string) {
			b.commit(registry.Delete(leader, anyVersion), registry.Delete(term, anyVersion))
			b.commit(registry.CreateEphemeral(term, []byte("x 7")))
		},
		"a term stays of a stranger that names the leader": func(b *bed, leader, term string) {
			value := []byte(string(b.get(leader).Value) + " 7")
			b.commit(registry.Delete(leader, anyVersion), registry.Delete(term, anyVersion))
			b.commit(registry.CreateEphemeral(term, value))
		},
	} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, of %d", name, n), func(t *testing.T) {
				inBubble(t, func(b *bed) {
					var members []*member
					for k := range n {
						members = append(members, b.join(fmt.Sprint("m", k), at(time.Millisecond)))
					}
					b.until("spread", func() bool { return b.led(members...) && b.spread(6, ids(members...)...) })
					do(b, b.job.Leader(), b.job.Term())
					if !strings.Contains(name, "the term is") {
						b.until("led again", func() bool { return b.led(members...) })
					}
					b.change(func(f *Facts) { f.Total = 7 }, members...)
					b.until("spread again", func() bool {
						return b.led(members...) && b.finish(members...) && b.spread(7, ids(members...)...)
					})
				})
			})
		}
	}
}

// finish accounts for the end of an epoch as owners do. It reports true.
func (b *bed) finish(members ...*member) bool {
	for _, m := range members {
		n := b.get(b.job.Ledger(m.id))
		l := b.ledger(m.id)
		if !l.Held || l.Until.IsZero() {
			continue
		}
		changed := false
		for _, k := range l.Numbers() {
			if rec, _ := l.Get(k); rec.Through.Before(l.Until) {
				rec.Through = l.Until
				l.Set(k, rec)
				changed = true
			}
		}
		if changed {
			b.commit(registry.Set(n.Path, l.Encode(), n.Version))
		}
	}
	return true
}

// Commits of the leader whose fate is unknown are settled, and told once. Finding 15.
func TestUncertainCommitsAreSettledAndToldOnce(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"the answer is lost": memory.AnswerLost, "the request is lost": memory.RequestLost,
		"refused": memory.Refused, "late": memory.AppliedLate(2 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				var hit atomic.Int64
				b.srv.Intercept(func(_ string, ops []registry.Op) memory.Fate {
					if len(ops) > 1 && ops[1].Path == b.job.Term() && ops[1].Kind == registry.OpSet && hit.Add(1)%3 == 1 {
						return fate
					}
					return memory.Deliver
				})
				a, c := b.join("a", at(0)), b.join("c", at(0))
				b.until("spread", func() bool { return b.spread(6, "a", "c") })
				b.until("none is late", func() bool { <-time.After(3 * time.Second); return true })
				require.True(b, b.spread(6, "a", "c"))
				moved := map[event.Move]int{}
				for _, e := range of[event.Resharded](a, c) {
					for _, mv := range e.Moves {
						moved[mv]++
					}
				}
				first := map[int]int{}
				for mv, times := range moved {
					require.Equal(b, 1, times, mv)
					if mv.From == "" {
						first[mv.Item]++
					}
				}
				require.Equal(b, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, first)
				require.Greater(b, hit.Load(), int64(2))
			})
		})
	}
}

// No commit of the leader starves while an owner commits an end each few milliseconds:
// it is asked for stillness, which it keeps.
func TestTricklingEndsDoNotStarveTheLeader(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.join("a", at(10*time.Millisecond))
		b.until("owned", func() bool { return b.spread(6, "a") })
		owner := b.trickle("a", 3*time.Millisecond, 250*time.Millisecond)
		b.until("trickling", func() bool { return owner.commits.Load() > 20 })
		b.join("c", at(10*time.Millisecond))
		took := b.until("spread", func() bool { return b.ledger("c").Len() == 3 })
		require.Less(b, took, time.Second)
		require.Positive(b, owner.asked.Load(), "the owner was never in the way")
		before := owner.commits.Load()
		b.until("it goes on at once", func() bool { return owner.commits.Load() > before+20 })
	})
}

// Nor where each request takes long, and owners are still for longer (execution.TestStillnessLastsAsCommitsTake).
func TestASlowRegistryDoesNotStarveTheLeader(t *testing.T) {
	inBubble(t, func(b *bed) {
		const slow = 300 * time.Millisecond
		b.join("a", at(slow))
		b.until("owned", func() bool { return b.spread(6, "a") })
		owner := b.trickle("a", slow, 8*slow)
		b.until("trickling", func() bool { return owner.commits.Load() > 20 })
		b.join("c", at(slow))
		took := b.until("spread", func() bool { return b.ledger("c").Len() == 3 })
		require.Less(b, took, 10*time.Second)
		require.Positive(b, owner.asked.Load(), "the owner was never in the way")
		require.LessOrEqual(b, owner.asked.Load(), int64(2))
	})
}

// Who was refused twice asks at once: what it would read before that would be old again when it commits.
func TestStillnessIsAskedForAtOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		m, _ := b.pair()
		var reads []int // of the ledger, at each refused commit and at the one that asks
		asked := false
		b.mu.Lock()
		b.refuses = func(id string, ops []registry.Op) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if id != "a" || asked {
				return nil
			}
			for i, op := range ops {
				still := op.Path == b.job.Notice("b") && layout.UnmarshalNotice(op.Value).Still
				if asked = asked || still; still || op.Path == b.job.Ledger("b") {
					reads = append(reads, b.reads[b.job.Ledger("b")])
				}
				if op.Path == b.job.Ledger("b") {
					return &registry.CommitError{Index: i, Op: op, Err: registry.ErrVersion}
				}
			}
			return nil
		}
		b.mu.Unlock()
		b.change(func(f *Facts) { f.Total = 8 }, m)
		b.until("the items are assigned anew", func() bool { return b.spread(8, "a", "b") })
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Len(t, reads, patience+1)
		require.Greater(t, reads[1], reads[0])
		require.Equal(t, reads[1], reads[2])
	})
}

// Who was asked for stillness is told that it is over, also where its ledger stays as it is after all.
func TestStillnessIsTakenBack(t *testing.T) {
	inBubble(t, func(b *bed) {
		m, _ := b.pair()
		b.lacking("a", b.job.Ledger("b"))
		b.change(func(f *Facts) { f.Total = 8 }, m)
		still := func() bool { return layout.UnmarshalNotice(b.get(b.job.Notice("b")).Value).Still }
		b.until("it is asked", still)
		b.change(func(f *Facts) { f.Total = 6 }, m)
		took := b.until("it is told", func() bool { return !still() })
		require.Less(t, took, time.Second)
		require.True(t, b.spread(6, "a", "b"))
	})
}

// An owner commits ends, and does as its notices say: it is still for as long.
type owner struct{ commits, asked atomic.Int64 }

func (b *bed) trickle(id string, every, stillness time.Duration) *owner {
	o := &owner{}
	var still atomic.Int64
	w, err := b.stranger.Watch(b.Context())
	require.NoError(b, err)
	require.NoError(b, w.Add(b.job.Notice(id), registry.Self))
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			events, err := w.Next(b.Context())
			if err != nil {
				return
			}
			for _, e := range events {
				still.Store(0)
				if layout.UnmarshalNotice(e.Node.Value).Still {
					o.asked.Add(1)
					still.Store(time.Now().Add(stillness).UnixNano())
				}
			}
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for b.Context().Err() == nil {
			<-time.After(every)
			if time.Now().UnixNano() < still.Load() {
				continue
			}
			nodes, err := b.stranger.Get(b.Context(), b.job.Ledger(id))
			if err != nil {
				return
			}
			l, err := ledger.Decode(nodes[0].Value)
			if err != nil {
				return
			}
			for n, rec := range l.All() {
				rec.Through = rec.Through.Add(time.Nanosecond)
				l.Set(n, rec)
				break
			}
			l.Seq++
			if _, err = b.stranger.Commit(b.Context(), registry.Set(nodes[0].Path, l.Encode(), nodes[0].Version)); err == nil {
				o.commits.Add(1)
			}
		}
	}()
	b.Cleanup(func() { // before the session is closed; the test's context has ended
		<-done
		<-done
		_ = w.Close()
	})
	return o
}

// The first refused commit is tried again alone, with one gainer and one loser.
func TestARefusedCommitIsTriedAgainAlone(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.change(func(f *Facts) { f.Total = 8 })
		a := b.join("a", at(time.Millisecond))
		b.until("owned", func() bool { return b.spread(8, "a") })
		var refused atomic.Int64
		var ledgers []int
		b.srv.Intercept(func(_ string, ops []registry.Op) memory.Fate {
			written := 0
			for _, op := range ops {
				if op.Kind == registry.OpSet && strings.HasPrefix(op.Path, b.job.Ledgers()) {
					written++
				}
			}
			if written > 1 && ops[1].Path == b.job.Term() {
				ledgers = append(ledgers, written)
				if refused.Add(1) == 1 { // an end comes first
					n := b.get(b.job.Ledger("a"))
					b.commit(registry.Set(n.Path, n.Value, n.Version))
				}
			}
			return memory.Deliver
		})
		a.SetAble(false)
		b.until("nobody leads", func() bool { return !b.get(b.job.Leader()).Exists() })
		for _, id := range []string{"c", "d", "e"} {
			b.join(id, at(time.Millisecond)).SetAble(false)
		}
		a.SetAble(true)
		b.until("spread", func() bool { return b.spread(8, "a", "c", "d", "e") && b.ledger("e").Len() == 2 })
		require.Equal(b, []int{4, 2, 2, 2}, ledgers)
		require.Zero(b, b.notices(" still"))
	})
}

// notices is how many notices end so.
func (b *bed) notices(suffix string) (n int) {
	names, err := b.stranger.Children(b.Context(), b.job.Notices())
	require.NoError(b, err)
	for _, id := range names {
		if strings.HasSuffix(string(b.get(b.job.Notice(id)).Value), suffix) {
			n++
		}
	}
	return n
}

func (b *bed) schedule() layout.Schedule {
	n := b.get(b.job.Schedule())
	if !n.Exists() {
		return layout.Schedule{}
	}
	s, err := layout.UnmarshalSchedule(n.Value)
	require.NoError(b, err)
	return s
}

// The leader puts the schedule in force: at first, when it changes, and when somebody has
// made the node unreadable.
func TestTheScheduleInForce(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.join("a", at(time.Millisecond))
		b.until("in force", func() bool { return b.schedule().Number == 1 })
		first := layout.Rule{Cron: "0 0 * * * ?"}
		require.Equal(b, layout.Schedule{Number: 1, Rule: first}, b.schedule())

		b.until("owned", func() bool { return b.spread(6, "a") })
		ahead := time.Now().Add(3 * time.Second).UTC() // a fire that a clock ahead has recorded
		n, l := b.get(b.job.Ledger("a")), b.ledger("a")
		l.Set(2, ledger.Item{Through: ahead})
		l.Set(3, ledger.Item{Through: time.Now().Add(2 * ledger.Believable)})
		b.commit(registry.Set(n.Path, l.Encode(), n.Version))
		second := layout.Rule{Cron: "0 30 * * * ?", Zone: "Asia/Kolkata"}
		b.change(func(f *Facts) { f.Rule = second }, a)
		b.until("changed", func() bool { return b.schedule().Number == 2 })
		require.Equal(b, layout.Schedule{Number: 2, Rule: second, Since: ahead, Before: []layout.Past{{Rule: first}}}, b.schedule())

		b.until("the clock has caught up", func() bool { return time.Now().After(ahead) })
		third := layout.Rule{Cron: "0 30 * * * ?"}
		begun := time.Now().UTC()
		b.change(func(f *Facts) { f.Rule, f.ZoneOpen = third, true }, a)
		b.until("looked", func() bool { return time.Since(begun) > 10*time.Second })
		require.Equal(b, 2, b.schedule().Number, "nobody has chosen a zone: the one in force stays")
		b.change(func(f *Facts) { f.ZoneOpen = false }, a)
		begun = time.Now().UTC()
		b.until("changed", func() bool { return b.schedule().Number == 3 })
		require.WithinDuration(b, begun, b.schedule().Since, 10*time.Millisecond)
		require.Equal(b, second, b.schedule().Before[0].Rule)

		inForce := b.schedule()
		b.commit(registry.Set(b.job.Schedule(), []byte("hello"), registry.AnyVersion))
		a.Look()
		b.until("repaired", func() bool { return string(b.get(b.job.Schedule()).Value) != "hello" })
		require.Equal(b, inForce, b.schedule(), "as it was: by it all members go")
		require.Len(b, of[event.Warning](a), 1)
		require.Contains(b, of[event.Warning](a)[0].Problem, "holds no schedule")

		b.commit(registry.Delete(b.job.Schedule(), registry.AnyVersion))
		a.Look()
		b.until("made again", func() bool { return b.get(b.job.Schedule()).Exists() })
		require.Equal(b, inForce, b.schedule())

		b.commit(registry.Set(b.job.Schedule(), []byte("hello"), registry.AnyVersion))
		fourth := layout.Rule{Cron: "0 45 * * * ?"}
		b.change(func(f *Facts) { f.Rule = fourth }, a)
		b.until("changed", func() bool { return string(b.get(b.job.Schedule()).Value) != "hello" && b.schedule().Rule == fourth })
		require.Equal(b, 4, b.schedule().Number)
		require.Equal(b, third, b.schedule().Before[0].Rule, "what was due until now is due by the one before")

		a.end()
		b.commit(registry.Delete(b.job.Schedule(), registry.AnyVersion))
		b.join("b", at(time.Millisecond))
		b.until("made by one that has never seen it", func() bool { return b.get(b.job.Schedule()).Exists() })
		require.Equal(b, layout.Schedule{Number: 1, Rule: fourth}, b.schedule())
	})
}

// Where an epoch began, and which it is, stands in the base alone: it is made again as it was seen last.
func TestTheBaseIsMadeAgainAsItWas(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.join("a", at(time.Millisecond))
		b.until("owned", func() bool { return b.spread(6, "a") && b.epoch().Assigned })
		b.change(func(f *Facts) { f.Total = 7 }, a)
		for { // nobody runs what is owed: the bed's owners begin nothing when they are told
			n, l := b.get(b.job.Ledger("a")), b.ledger("a")
			if l.Epoch == 2 {
				break
			}
			l.Held = true
			b.commit(registry.Set(n.Path, l.Encode(), n.Version))
			a.Look()
			<-time.After(100 * time.Millisecond)
		}
		b.until("the next epoch", func() bool { return b.spread(7, "a") && b.epoch().Assigned })
		n, l := b.get(b.job.Ledger("a")), b.ledger("a")
		l.Set(2, ledger.Item{Through: time.Now().Add(time.Second)}) // further than where the epoch began
		b.commit(registry.Set(n.Path, l.Encode(), n.Version))
		was := b.epoch()
		require.Equal(b, 2, was.Epoch)
		for name, spoil := range map[string]registry.Op{
			"deleted":                     registry.Delete(b.job.Base(), registry.AnyVersion),
			"nonsense":                    registry.Set(b.job.Base(), []byte("hello"), registry.AnyVersion),
			"that of the epoch before it": registry.Set(b.job.Base(), layout.MarshalBase(layout.Base{Epoch: 1, To: 6, Assigned: true}), registry.AnyVersion),
		} {
			b.commit(spoil)
			a.Look()
			b.until("it is made again", func() bool {
				n := b.get(b.job.Base())
				return n.Exists() && !bytes.Equal(n.Value, spoil.Value)
			})
			require.Equal(b, was, b.epoch(), name)
		}
		a.end()
		b.commit(registry.Delete(b.job.Base(), registry.AnyVersion), registry.Delete(b.job.Ledger("a"), registry.AnyVersion))
		b.join("b", at(time.Millisecond))
		b.until("an instance that has never seen it begins anew", func() bool { return b.get(b.job.Base()).Exists() })
		require.Equal(b, 1, b.epoch().Epoch)
	})
}

// A leader whose clock is behind puts no schedule in force that begins before the one that it
// replaces; but one that a clock years ahead has made binds nobody.
func TestNoScheduleBeginsBeforeTheOneItReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration
		binds bool
	}{"an hour ahead": {time.Hour, true}, "years ahead": {2 * ledger.Believable, false}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				a := b.join("a", at(time.Millisecond))
				b.until("owned", func() bool { return b.schedule().Number == 1 && b.spread(6, "a") })
				since, was := time.Now().Add(c.ahead).UTC(), b.schedule()
				was.Number, was.Since, was.Before = 2, since, []layout.Past{{Rule: was.Rule}}
				b.commit(registry.Set(b.job.Schedule(), layout.MarshalSchedule(was), registry.AnyVersion))
				b.change(func(f *Facts) { f.Rule = layout.Rule{Cron: "0 30 * * * ?"} }, a)
				b.until("changed", func() bool { return b.schedule().Number == 3 })
				require.Equal(b, c.binds, b.schedule().Since.Equal(since))
				require.False(b, b.schedule().Since.After(since))
			})
		})
	}
}

// What a new leader must tidy it tidies, though it has not looked at anything yet.
func TestItemsAboveTheTotalAreTidied(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.join("a", at(time.Millisecond))
		b.until("owned", func() bool { return b.spread(6, "a") })
		a.SetAble(false)
		b.until("nobody leads", a.Settled)
		for n := range 40 {
			if n >= 6 {
				b.commit(registry.Create(b.job.Item(n), nil))
			}
			b.commit(registry.Create(b.job.Misfire(n), nil))
		}
		a.SetAble(true)
		b.until("tidied", func() bool { return b.itemsAre(6) })
		require.True(b, b.get(b.job.Misfire(5)).Exists())
		b.change(func(f *Facts) { f.Total = 3 }, a)
		b.until("three are left", func() bool { return b.finish(a) && b.itemsAre(3) })
	})
}

func (b *bed) itemsAre(total int) bool {
	names, err := b.stranger.Children(b.Context(), b.job.Sharding())
	require.NoError(b, err)
	return len(names) == total
}

// Finding 23: a former leader, or one of another epoch, deletes nothing. Its delete is on
// its way when it loses its term, its life, or its epoch.
func TestOnlyTheLeaderOfTheEpochTidies(t *testing.T) {
	for name, do := range map[string]func(b *bed){
		"another term": func(b *bed) { b.commit(registry.Delete(b.job.Term(), registry.AnyVersion)) },
		"no life":      func(b *bed) { b.commit(registry.Delete(b.job.Life("a"), registry.AnyVersion)) },
		"another epoch": func(b *bed) {
			b.commit(registry.Set(b.job.Base(), layout.MarshalBase(layout.Base{Epoch: 2, From: 6, To: 9}), registry.AnyVersion))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				slow := func(ops []registry.Op) time.Duration {
					if tidies(b, ops) {
						return 10 * time.Second
					}
					return time.Millisecond
				}
				a := b.join("a", slow)
				b.until("owned", func() bool { return b.spread(6, "a") && b.led(a) })
				b.commit(registry.Create(b.job.Item(8), nil))
				begun := time.Now()
				a.Tidy()
				b.until("it is on its way", func() bool { return time.Since(begun) > time.Second })
				a.SetAble(false)
				b.until("it leads no more", func() bool { return !b.get(b.job.Leader()).Exists() || a.Settled() })
				if b.get(b.job.Term()).Exists() || name != "another term" {
					do(b)
				}
				b.until("it has arrived", func() bool { return time.Since(begun) > 15*time.Second })
				require.True(b, b.get(b.job.Item(8)).Exists())
			})
		})
	}
}

func tidies(b *bed, ops []registry.Op) bool {
	return slices.ContainsFunc(ops, func(op registry.Op) bool {
		return op.Kind == registry.OpDelete && strings.HasPrefix(op.Path, b.job.Sharding()+"/")
	})
}

// Finding 11: tidying that takes long is in nobody's way. A crash is mended within a
// second meanwhile.
// Switched off, what ElasticJob keeps of failovers goes, in as many commits as it takes, but for
// what stands in a session.
func TestSwitchedOffFailoverLeavesNothing(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.join("a", at(2*time.Millisecond))
		b.until("leads", func() bool { return b.led(a) && b.ledger("a").Len() == 6 })
		require.NoError(b, registry.EnsurePath(b.Context(), b.stranger, b.job.FailoverItems()))
		for n := range 200 {
			b.commit(registry.Create(b.job.FailoverItem(n), nil))
		}
		b.commit(registry.Create(b.job.Failovering(3), []byte("x")), registry.CreateEphemeral(b.job.Failover(2), []byte("y")))
		left := func() int {
			names, err := b.stranger.Children(b.Context(), b.job.FailoverItems())
			require.NoError(b, err)
			nodes, err := b.stranger.Get(b.Context(), b.job.Failovering(3))
			require.NoError(b, err)
			if nodes[0].Exists() {
				return len(names) + 1
			}
			return len(names)
		}
		a.Tidy() // it was not switched off
		time.Sleep(time.Minute)
		require.Equal(b, 201, left())
		a.FailoverOff()
		b.until("all is gone", func() bool { return left() == 0 })
		nodes, err := b.stranger.Get(b.Context(), b.job.Failover(2))
		require.NoError(b, err)
		require.True(b, nodes[0].Exists())
	})
}

func TestSlowTidyingDelaysNothing(t *testing.T) {
	inBubble(t, func(b *bed) {
		deletes := atomic.Int64{}
		a := b.join("a", func(ops []registry.Op) time.Duration {
			if tidies(b, ops) {
				deletes.Add(1)
				return time.Second
			}
			return 2 * time.Millisecond
		})
		b.until("leads", func() bool { return b.led(a) })
		c := b.join("c", at(2*time.Millisecond))
		b.until("spread", func() bool { return b.spread(6, "a", "c") && b.ledger("c").Len() == 3 })
		for n := 6; n < 400; n++ {
			b.commit(registry.Create(b.job.Item(n), nil))
		}
		a.Tidy()
		b.until("it tidies", func() bool { return deletes.Load() > 1 })
		require.True(b, b.srv.Expire(c.ses.ID()))
		took := b.until("mended", func() bool { return b.ledger("a").Len() == 6 })
		require.Less(b, took, time.Second)
		require.False(b, b.itemsAre(6), "it still tidied")
		b.until("tidied", func() bool { return b.itemsAre(6) })
	})
}

// A registration of which only the notice is left may run something: what stands in no
// ledger is given to nobody, and no epoch ends, until it has registered anew or is gone.
func TestARegistrationOfWhichOnlyTheNoticeIsLeft(t *testing.T) {
	for name, total := range map[string]int{"records are missed": 6, "the total changes": 4} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				first := b.join("a", at(time.Millisecond))
				b.until("a leads and has all", func() bool { return b.led(first) && b.spread(6, "a") })
				b.join("b", at(time.Millisecond))
				b.until("both share", func() bool { return b.spread(6, "a", "b") && b.ledger("b").Len() == 3 })
				told := b.get(b.job.Notice("b")).Version
				b.commit(registry.Delete(b.job.Life("b"), registry.AnyVersion), registry.Delete(b.job.Ledger("b"), registry.AnyVersion))
				b.change(func(f *Facts) { f.Total = total }, first)
				<-time.After(10 * time.Second)
				require.Equal(t, 3, b.ledger("a").Len())
				require.Equal(t, 6, b.epoch().To)
				require.Greater(t, b.get(b.job.Notice("b")).Version, told, "it is told that it must register anew")
				b.commit(registry.Delete(b.job.Notice("b"), registry.AnyVersion))
				first.Look()
				b.until("the leader goes on", func() bool {
					return b.epoch().To == total && (total < 6 || b.spread(6, "a"))
				})
			})
		})
	}
}

// A leader reads the pages of a ledger once, and then those that have changed.
func TestPagesThatHaveNotChangedAreNotReadAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(time.Millisecond))
		b.until("a leads and has all", func() bool { return b.led(m) && b.spread(6, "a") })
		node, led := b.get(b.job.Ledger("a")), b.ledger("a")
		write := func() {
			w := led.Write(int64(node.Version)+1, ledger.Room{Value: 300, Ops: 9, Bytes: 9_000})
			require.NotEmpty(t, w.Pages)
			ops := []registry.Op{registry.Set(node.Path, w.Root, node.Version)}
			for _, p := range w.Pages {
				ops = append(ops, pages.Op(node.Path, p))
			}
			b.commit(ops...)
			led.Written()
			node = b.get(node.Path)
		}
		for n, rec := range led.Clone().All() {
			rec.Through = time.Now().Add(time.Duration(n) * time.Millisecond).UTC()
			led.Set(n, rec)
		}
		write()
		all := led.Pages()
		require.Greater(t, len(all), 2)
		looks := func() map[string]int {
			b.mu.Lock()
			clear(b.reads)
			b.mu.Unlock()
			m.Look()
			<-time.After(time.Second)
			b.mu.Lock()
			defer b.mu.Unlock()
			require.NotZero(t, b.reads[node.Path])
			found := map[string]int{}
			for _, p := range all {
				if n := b.reads[ledger.Path(node.Path, p)]; n > 0 {
					found[strconv.Itoa(p)] = n
				}
			}
			return found
		}
		require.Len(t, looks(), len(all))
		require.Empty(t, looks())
		rec, _ := led.Get(5)
		rec.Through = rec.Through.Add(time.Hour)
		led.Set(5, rec)
		write()
		page, is := led.Page(5)
		require.True(t, is)
		require.Equal(t, map[string]int{strconv.Itoa(page): 1}, looks())
	})
}

// A page that somebody has made, and that no ledger lists, hinders nobody: not a leader that makes a page of that
// number, nor one that deletes the ledger of the dead.
func TestPagesThatNoLedgerLists(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(time.Millisecond))
		other := b.join("b", at(time.Millisecond))
		b.until("both share", func() bool { return b.spread(6, "a", "b") && b.ledger("b").Len() == 3 })
		for _, id := range []string{"a", "b"} {
			b.commit(
				registry.Create(ledger.Path(b.job.Ledger(id), 0), []byte("x")), registry.Create(ledger.Path(b.job.Ledger(id), 4), nil))
		}
		other.end()
		b.until("b is gone, and a has all", func() bool { return b.spread(6, "a") && !b.get(b.job.Ledger("b")).Exists() })
		led := b.ledger("a")
		for n, rec := range led.Clone().All() { // as its owner may write it
			rec.Told = ledger.Told{}.With(ledger.Note{Due: time.Now(), Instance: strings.Repeat("z", 30_000+n)})
			led.Set(n, rec)
		}
		b.commit(registry.Set(b.job.Ledger("a"), led.Encode(), registry.AnyVersion))
		b.change(func(f *Facts) { f.Total = 7 }, m)
		b.until("the leader has written it in pages", func() bool {
			found, err := pages.Read(t.Context(), b.stranger.Get, nil, b.get(b.job.Ledger("a")))
			return err == nil && found[0].Err == nil && found[0].Ledger.Held && slices.Equal(found[0].Ledger.Pages(), []int{0})
		})
		names, err := b.stranger.Children(t.Context(), b.job.Ledger("a"))
		require.NoError(t, err)
		require.Contains(t, names, "0")
	})
}

func (b *bed) epoch() layout.Base {
	base, err := layout.UnmarshalBase(b.get(b.job.Base()).Value)
	require.NoError(b, err)
	return base
}

// A leader that is refused, and is told of news meanwhile, asked again for each refusal, and told it each time: ever
// more often, until the refusals ended.
func TestALeaderThatIsRefusedAsksRarely(t *testing.T) {
	inBubble(t, func(b *bed) {
		m := b.join("a", at(0))
		looks := func() int {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.reads[b.job.Ledger("a")]
		}
		b.until("the items have an owner", func() bool { return b.spread(6, "a") })
		allow := b.srv.Deny(b.job.Ledger("a"))
		b.change(func(f *Facts) { f.Total = 8 })
		const news = 100
		for range news {
			m.Look()
			<-time.After(20 * time.Millisecond)
		}
		<-time.After(2 * time.Second) // what the news have begun
		before := looks()
		<-time.After(time.Minute)
		require.InDelta(t, 30, looks()-before, 2, "once in two seconds")
		warnings := of[event.Warning](m)
		require.NotEmpty(t, warnings)
		require.LessOrEqual(t, len(warnings), 8)
		require.ErrorIs(t, warnings[0].Err, registry.ErrDenied)
		allow()
		b.until("the items are assigned anew", func() bool { return b.spread(8, "a") })
	})
}
