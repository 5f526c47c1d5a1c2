package leading

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
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
		"the leader is deleted":     func(b *bed, leader, _ string) { b.commit(registry.Delete(leader, anyVersion)) },
		"the leader is overwritten": func(b *bed, leader, _ string) { b.commit(registry.Set(leader, []byte("x"), anyVersion)) },
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
			value := append(b.get(leader).Value, " 7"...)
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
					b.until("spread again", func() bool { return b.led(members...) && b.finish(members...) && b.spread(7, ids(members...)...) })
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
		owner := b.trickle("a", 3*time.Millisecond)
		b.until("trickling", func() bool { return owner.commits.Load() > 20 })
		b.join("c", at(10*time.Millisecond))
		took := b.until("spread", func() bool { return b.ledger("c").Len() == 3 })
		require.Less(b, took, time.Second)
		require.Positive(b, owner.asked.Load(), "the owner was never in the way")
		before := owner.commits.Load()
		b.until("it goes on at once", func() bool { return owner.commits.Load() > before+20 })
	})
}

// An owner commits ends, and does as its notices say.
type owner struct{ commits, asked atomic.Int64 }

func (b *bed) trickle(id string, every time.Duration) *owner {
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
					still.Store(time.Now().Add(250 * time.Millisecond).UnixNano())
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
