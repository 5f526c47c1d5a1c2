package execution

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// When a registration is over but its session stands, the running nodes of its
// items stay as long as the items run, and no longer: the next owner needs them.
func TestRunningNodesGoWithTheirRunsAfterTheLife(t *testing.T) {
	for what, kind := range map[string]func(b *bed){
		"life deleted":   func(b *bed) { b.do(registry.Delete(lifePath, registry.AnyVersion)); b.rec.Begin(due(2), []int{3}) },
		"ledger deleted": func(b *bed) { b.do(registry.Delete(ledgerPath, registry.AnyVersion)); b.observe() },
		"ledger garbage": func(b *bed) { b.do(registry.Set(ledgerPath, nil, registry.AnyVersion)); b.observe() },
		"dropped":        func(b *bed) { b.rec.Drop(errors.New("by its owner")) },
	} {
		for _, fate := range []memory.Fate{memory.Deliver, memory.AnswerLost, memory.RequestLost, memory.Refused} {
			t.Run(what, func(t *testing.T) {
				onBed(t, 4, func(b *bed) {
					b.rec.Begin(due(1), []int{0, 1, 2})
					synctest.Wait()
					kind(b)
					b.pass(time.Minute)
					for n := range 3 {
						require.True(t, b.node(runningPath(n)).Exists(), "its function runs")
					}
					b.do(registry.Delete(runningPath(1), registry.AnyVersion), registry.Delete(runningPath(2), registry.AnyVersion))
					// Their next owners': in another session, and a later registration in ours.
					b.do(registry.CreateEphemeral(runningPath(1), []byte("a")))
					_, err := b.ses.Commit(t.Context(), registry.CreateEphemeral(runningPath(2), []byte("b")))
					require.NoError(t, err)
					b.fates(fate)
					for n := range 3 {
						b.rec.End(n, due(1), due(1))
					}
					b.pass(time.Minute)
					require.False(t, b.node(runningPath(0)).Exists())
					require.True(t, b.node(runningPath(1)).Exists())
					require.True(t, b.node(runningPath(2)).Exists())
					require.Empty(t, b.told().ended)
				})
			})
		}
	}
}

// A begin that was applied, unknown to its author, before the ledger went away is
// refused as lost and leaves no running node.
func TestALostBeginLeavesNoRunningNode(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.fates(memory.AnswerLost)
		b.rec.Begin(due(1), []int{0, 1})
		synctest.Wait()
		require.True(t, b.node(runningPath(0)).Exists())
		b.do(registry.Delete(ledgerPath, registry.AnyVersion))
		b.pass(time.Second)
		is := b.told()
		require.Empty(t, is.begun)
		require.Equal(t, all(Lost, due(1), 0, 1), is.no)
		require.Len(t, is.gone, 1)
		require.False(t, b.node(runningPath(0)).Exists())
		require.False(t, b.node(runningPath(1)).Exists())
	})
}

// Before an item is given up because of a node in its way, what is in flight is
// ruled out: else it would be recorded as running with nobody running it.
func TestAnItemIsNotRefusedWhileItsBeginMayStillApply(t *testing.T) {
	for name, items := range map[string][]int{"alone": {0}, "with another": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.before(0, memory.AppliedLate(3*time.Second), func() {
					b.do(registry.CreateEphemeral(runningPath(0), []byte("b")))
				})
				b.rec.Begin(due(1), items)
				b.pass(time.Second)
				is := b.told()
				require.Equal(t, all(Elsewhere, due(1), 0), is.no)
				require.Equal(t, once(items[1:]...), is.items())
				b.do(registry.Delete(runningPath(0), registry.AnyVersion))
				b.pass(10 * time.Second)
				require.False(t, b.node(runningPath(0)).Exists(), "the late one was applied")
				require.False(t, b.ledger().Items[0].Running())
				for _, n := range items[1:] {
					b.rec.End(n, due(1), due(1))
				}
				b.rec.Begin(due(2), []int{0})
				b.pass(time.Second)
				require.Equal(t, once(0), b.told().items())
			})
		})
	}
}

// The same while the commit that rules it out is itself hit, or comes too late.
func TestRulingOutMayFailToo(t *testing.T) {
	for name, fates := range map[string][]memory.Fate{
		"answer lost":    {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.AnswerLost},
		"request lost":   {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.RequestLost},
		"applied late":   {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.AppliedLate(time.Second)},
		"after it":       {memory.AppliedLate(60 * time.Millisecond), memory.Deliver, memory.RequestLost, memory.RequestLost},
		"refused":        {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.Refused},
		"twice in doubt": {memory.AppliedLate(3 * time.Second), memory.RequestLost, memory.AnswerLost},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.do(registry.CreateEphemeral(runningPath(0), []byte("b")))
				b.fates(fates...)
				b.rec.Begin(due(1), []int{0, 1})
				b.pass(55 * time.Millisecond) // the second attempt has seen the node
				b.do(registry.Delete(runningPath(0), registry.AnyVersion))
				b.pass(20 * time.Second)
				is := b.told()
				require.Equal(t, 2, len(is.items())+len(is.no), "each is begun or refused")
				for n := range 2 {
					require.Equal(t, is.items()[n] == 1, b.ledger().Items[n].Running(), "item %d", n)
					require.Equal(t, is.items()[n] == 1, b.node(runningPath(n)).Exists(), "item %d", n)
				}
			})
		})
	}
}

// A begin that was applied and whose running node is gone when that is found out
// is refused, and the item is free for the next fire.
func TestABeginWhoseRunningNodeIsGoneIsTakenBack(t *testing.T) {
	for name, instead := range map[string]bool{"gone": false, "somebody else's": true} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.fates(memory.AnswerLost)
				b.rec.Begin(due(1), []int{0, 1})
				synctest.Wait()
				b.do(registry.Delete(runningPath(0), registry.AnyVersion))
				if instead {
					b.do(registry.CreateEphemeral(runningPath(0), []byte("b")))
				}
				b.pass(time.Second)
				is := b.told()
				require.Equal(t, once(1), is.items())
				require.Equal(t, all(Lost, due(1), 0), is.no)
				require.Empty(t, is.ended)
				it := b.ledger().Items[0]
				require.False(t, it.Running())
				require.True(t, it.Through.Equal(due(1)))
				require.Equal(t, instead, b.node(runningPath(0)).Exists())
				if instead {
					b.do(registry.Delete(runningPath(0), registry.AnyVersion))
				}
				b.rec.Begin(due(2), []int{0})
				b.pass(time.Second)
				require.Equal(t, once(0), b.told().items())
			})
		})
	}
}

// A running item that somebody took out of the ledger ends without being put back,
// and its running node goes.
func TestAnItemTakenAwayWhileItRuns(t *testing.T) {
	for name, observed := range map[string]bool{"seen by the watch": true, "found by the commit": false} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.rec.Begin(due(1), []int{0, 1})
				synctest.Wait()
				b.rule(without(0))
				if observed {
					b.observe()
				}
				b.rec.End(0, due(1), due(1))
				b.rec.End(1, due(1), due(1))
				b.pass(time.Second)
				require.Equal(t, once(0, 1), b.told().ends())
				require.Equal(t, []int{1}, b.ledger().Numbers())
				b.requireAtRest(due(1))
				require.False(t, b.node(runningPath(0)).Exists())
			})
		})
	}
}

// An end that was applied, unknown to its author, before the item moved on: the
// next owner's run is not touched.
func TestTheNextOwnersRunIsNotTouched(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Begin(due(1), []int{0})
		synctest.Wait()
		b.fates(memory.AnswerLost)
		b.rec.End(0, due(1), due(1))
		synctest.Wait()
		b.rule(without(0))
		b.do(registry.CreateEphemeral(runningPath(0), []byte("b")))
		b.pass(time.Second)
		require.Equal(t, once(0), b.told().ends())
		require.Equal(t, "b", string(b.node(runningPath(0)).Value))
		require.Equal(t, []int{1}, b.ledger().Numbers())
	})
}
