package execution

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A cost is what one fate adds to a commit that it hits.
type cost struct {
	fate          memory.Fate
	commits, gets int  // after the hit
	fences        bool // the fence is read from the running nodes, which is one get more
}

var costs = map[string]cost{
	"answer lost":  {memory.AnswerLost, 1, 1, true},
	"request lost": {memory.RequestLost, 1, 0, false},
	"applied late": {memory.AppliedLate(3 * time.Second), 1, 0, false},
	"refused":      {memory.Refused, 1, 0, false},
}

// sent is how often a commit with this fate counts as a request.
func (c cost) sent() int {
	if c.fate == memory.Refused {
		return 0 // the server refuses the connection
	}
	return 1
}

func TestAnUncertainBegin(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.fates(c.fate)
				b.rec.Begin(due(1), numbers(5))
				b.pass(time.Second)
				is := b.told()
				require.Equal(t, once(numbers(5)...), is.items())
				require.Empty(t, is.no)
				gets := c.gets
				if c.fences {
					gets++
				}
				b.requireRequests(c.sent()+c.commits, gets)
				for _, g := range is.begun {
					for _, n := range g.items {
						require.Equal(t, b.node(runningPath(n)).Created, g.fence)
						require.Equal(t, b.node(ledgerPath).Modified, g.fence)
					}
				}
				b.pass(10 * time.Second) // the late one comes to nothing
				b.requireRequests(0, 0)
				version := b.node(ledgerPath).Version
				for n := range 5 {
					b.rec.End(n, due(1), due(1))
				}
				synctest.Wait()
				require.Equal(t, once(numbers(5)...), b.told().ends())
				require.Equal(t, version+1, b.node(ledgerPath).Version)
				b.requireRequests(1, 0)
				b.requireAtRest(due(1))
			})
		})
	}
}

func TestAnUncertainEnd(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.rec.Begin(due(1), numbers(5))
				synctest.Wait()
				b.requireRequests(1, 0)
				b.fates(c.fate)
				for n := range 5 {
					b.rec.End(n, due(1), due(1))
				}
				b.pass(time.Second)
				require.Equal(t, once(numbers(5)...), b.told().ends())
				b.requireRequests(c.sent()+c.commits, c.gets)
				b.requireAtRest(due(1))
				b.rec.Begin(due(2), numbers(5))
				b.pass(10 * time.Second)
				require.Equal(t, once(numbers(5)...), b.told().items())
				for n := range 5 {
					require.True(t, b.node(runningPath(n)).Exists(), "the late end took the running node of the next fire")
				}
				b.requireRequests(1, 0)
			})
		})
	}
}

func TestAnUncertainMixture(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 6, func(b *bed) {
				b.rec.Begin(due(1), []int{0, 1, 2})
				synctest.Wait()
				b.rec.End(0, due(1), due(1))
				b.rec.End(1, due(1), due(1))
				synctest.Wait()
				b.requireRequests(1, 0)
				b.told()
				b.fates(c.fate)
				b.rec.Begin(due(2), []int{3, 4})
				b.pass(10 * time.Second)
				is := b.told()
				require.Equal(t, once(3, 4), is.items())
				require.Equal(t, once(0, 1), is.ends())
				gets := c.gets
				if c.fences {
					gets++
				}
				b.requireRequests(c.sent()+c.commits, gets)
				for n := range 6 {
					running := n == 2 || n == 3 || n == 4
					require.Equal(t, running, b.node(runningPath(n)).Exists())
					require.Equal(t, running, b.ledger().Items[n].Running())
				}
			})
		})
	}
}

// An account has no running node by which it could be told that it was applied.
func TestAnUncertainAccount(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 3, func(b *bed) {
				b.fates(c.fate)
				b.rec.Account(numbers(3), due(1))
				b.pass(10 * time.Second)
				b.requireAtRest(due(1))
				b.requireRequests(c.sent()+c.commits, c.gets)
				require.Empty(t, b.told().ended)
			})
		})
	}
}

// Any three fates in a row, on the begin or on the end.
func TestThreeFatesInARow(t *testing.T) {
	all := []memory.Fate{memory.Deliver, memory.AnswerLost, memory.RequestLost, memory.AppliedLate(3 * time.Second), memory.AppliedLate(100 * time.Millisecond), memory.Refused}
	for _, x := range all {
		for _, y := range all {
			for _, z := range all {
				onBed(t, 3, func(b *bed) {
					what := fmt.Sprint([]memory.Fate{x, y, z})
					b.fates(x, y, z)
					for k := 1; k <= 2; k++ {
						b.rec.Begin(due(10*k), numbers(3))
						b.pass(5 * time.Second)
						is := b.told()
						require.Equal(t, once(numbers(3)...), is.items(), what)
						require.Empty(t, is.no, what)
						for _, g := range is.begun {
							require.Equal(t, b.node(runningPath(g.items[0])).Created, g.fence, what)
						}
						for n := range 3 {
							b.rec.End(n, due(10*k), due(10*k))
						}
						b.pass(5 * time.Second)
						require.Equal(t, once(numbers(3)...), b.told().ends(), what)
						b.requireAtRest(due(10 * k))
					}
				})
			}
		}
	}
}

// The leader writes the ledger while it is not known whether a begin was applied.
func TestALedgerThatMovedOnSettlesAnUncertainBegin(t *testing.T) {
	for name, c := range costs {
		for _, removed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", removed ", removed), func(t *testing.T) {
				onBed(t, 2, func(b *bed) {
					b.fates(c.fate)
					b.rec.Begin(due(1), []int{0, 1})
					synctest.Wait()
					applied := c.fate == memory.AnswerLost
					change := leave(0)
					if removed && !applied { // the leader takes nothing that runs
						change = without(0)
					}
					b.rule(change)
					b.pass(10 * time.Second)
					is := b.told()
					if applied {
						require.Equal(t, once(0, 1), is.items())
						for _, g := range is.begun {
							require.Equal(t, b.node(runningPath(0)).Created, g.fence)
							require.Less(t, g.fence, b.node(ledgerPath).Modified)
						}
						require.True(t, is.seen[0].Items[0].Leaving)
						return
					}
					require.Equal(t, once(1), is.items())
					require.Equal(t, all(NotOwned, due(1), 0), is.no)
					require.False(t, b.node(runningPath(0)).Exists())
					require.False(t, b.ledger().Items[0].Running())
				})
			})
		}
	}
}

func TestFencesRiseStrictly(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		var last [2]registry.Revision
		fates := []memory.Fate{memory.Deliver, memory.AnswerLost, memory.RequestLost, memory.AppliedLate(time.Second)}
		for k := 1; k <= 40; k++ {
			b.fates(fates[k%4], fates[k/4%4])
			b.rec.Begin(due(k), []int{0, 1})
			b.pass(2 * time.Second)
			is := b.told()
			require.Equal(t, once(0, 1), is.items())
			for _, g := range is.begun {
				for _, n := range g.items {
					require.Greater(t, g.fence, last[n])
					last[n] = g.fence
				}
			}
			b.rec.End(0, due(k), due(k))
			b.rec.End(1, due(k), due(k))
			b.pass(2 * time.Second)
		}
	})
}

// The session is lost, without a word from the server, in each phase of a fire.
func TestTheSessionIsLostInEveryPhase(t *testing.T) {
	phases := map[string]func(b *bed, cut func()){
		"while a begin is in flight": func(b *bed, cut func()) {
			b.before(0, memory.Deliver, cut)
			b.rec.Begin(due(1), []int{0, 1})
		},
		"while a begin is retried": func(b *bed, cut func()) {
			b.fates(memory.RequestLost)
			b.rec.Begin(due(1), []int{0, 1})
			synctest.Wait()
			cut()
		},
		"while the ledger is read": func(b *bed, cut func()) {
			b.before(1, memory.Deliver, cut)
			b.rule(leave(3))
			b.rec.Begin(due(1), []int{0, 1})
		},
		"while an end lingers": func(b *bed, cut func()) {
			b.rec.End(2, due(0).Add(1), due(0).Add(1))
			synctest.Wait()
			cut()
			b.rec.Begin(due(1), []int{0, 1})
		},
		"while an end is in flight": func(b *bed, cut func()) {
			b.before(0, memory.Deliver, cut)
			b.rec.End(2, due(0).Add(1), due(0).Add(1))
			b.pass(linger)
			b.rec.Begin(due(1), []int{0, 1})
		},
	}
	for name, phase := range phases {
		for _, answers := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", answers only ", answers), func(t *testing.T) {
				onBed(t, 4, func(b *bed) {
					b.rec.Begin(due(0).Add(1), []int{2, 3})
					synctest.Wait()
					b.told()
					phase(b, func() {
						if answers {
							b.client.LoseAnswers()
						} else {
							b.client.LoseRequests()
						}
					})
					b.pass(time.Minute)
					require.ErrorIs(t, b.ses.Err(), registry.ErrSessionLost)
					is := b.told()
					if len(is.begun) == 0 {
						require.Equal(t, all(Lost, due(1), 0, 1), is.no)
					} else {
						require.Equal(t, once(0, 1), is.items())
						require.Empty(t, is.no)
					}
					b.rec.Begin(due(2), []int{0})
					synctest.Wait()
					require.Contains(t, b.told().no, refused{due(2), 0, Lost})
					require.LessOrEqual(t, len(is.gone), 1)
				})
			})
		}
	}
}

// denying is a session whose commits are refused for want of a right while it is set.
type denying struct {
	registry.Session
	index int
	set   atomic.Bool
	tries atomic.Int64
}

func (d *denying) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	d.tries.Add(1)
	if d.set.Load() {
		return 0, &registry.CommitError{Index: d.index, Op: ops[d.index], Err: registry.ErrDenied}
	}
	return d.Session.Commit(ctx, ops...)
}

func TestADeniedCommitIsTriedAgain(t *testing.T) {
	for index, what := range []string{"life", "ledger", "running node"} {
		t.Run(what, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				ses := &denying{Session: b.ses, index: index}
				ses.set.Store(true)
				b.rec.Session = ses
				b.rec.Begin(due(1), numbers(5))
				b.pass(10 * time.Second)
				is := b.told()
				require.Empty(t, is.begun)
				require.Empty(t, is.no)
				require.Empty(t, is.gone)
				require.NotEmpty(t, is.late)
				for _, err := range is.late {
					require.ErrorIs(t, err, registry.ErrDenied)
				}
				require.Less(t, ses.tries.Load(), int64(20))
				ses.set.Store(false)
				b.pass(retryLast)
				require.Equal(t, once(numbers(5)...), b.told().items())
				for n := range 5 {
					b.rec.End(n, due(1), due(1))
				}
				b.pass(time.Second)
				b.requireAtRest(due(1))
			})
		})
	}
}
