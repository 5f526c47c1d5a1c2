package execution

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A running node of somebody else's is in the way of its item only.
func TestWhatRunsElsewhereIsRefusedAndTheRestBegins(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.do(registry.CreateEphemeral(runningPath(1), nil), registry.Create(runningPath(3), nil))
		b.rec.Begin(due(1), numbers(5))
		synctest.Wait()
		is := b.told()
		require.Equal(t, once(0, 2, 4), is.items())
		require.Equal(t, all(Elsewhere, due(1), 1, 3), is.no)
		require.False(t, b.ledger().Items[1].Running())
		require.True(t, b.ledger().Items[1].Through.Equal(due(0)))
		b.requireRequests(3, 0)
		b.rec.Begin(due(2), []int{1})
		synctest.Wait()
		require.Equal(t, all(Elsewhere, due(2), 1), b.told().no)
	})
}

// A running node that somebody deleted does not keep its end from being recorded.
func TestADeletedRunningNodeStillEnds(t *testing.T) {
	onBed(t, 4, func(b *bed) {
		b.rec.Begin(due(1), numbers(4))
		synctest.Wait()
		b.do(registry.Delete(runningPath(0), registry.AnyVersion), registry.Delete(runningPath(2), registry.AnyVersion))
		b.requireRequests(1, 0)
		for n := range 4 {
			b.rec.End(n, due(1), due(1))
		}
		synctest.Wait()
		require.Equal(t, once(numbers(4)...), b.told().ends())
		b.requireAtRest(due(1))
		b.requireRequests(3, 0)
	})
}

func TestADeletedItemNodeIsMadeAgain(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.do(registry.Delete("/items/0", registry.AnyVersion), registry.Delete("/items/1", registry.AnyVersion),
			registry.Delete("/items/2", registry.AnyVersion), registry.Delete("/items", registry.AnyVersion))
		b.rec.Begin(due(1), numbers(3))
		synctest.Wait()
		is := b.told()
		require.Equal(t, once(numbers(3)...), is.items())
		require.Empty(t, is.no)
		b.requireRequests(7, 6)
	})
}

// A repair whose own commit is uncertain is done again; the item is not refused.
func TestARepairIsRepeated(t *testing.T) {
	for _, fate := range []memory.Fate{memory.AnswerLost, memory.RequestLost, memory.Refused, memory.AppliedLate(3 * time.Second)} {
		onBed(t, 1, func(b *bed) {
			b.do(registry.Delete("/items/0", registry.AnyVersion))
			b.fates(memory.Deliver, fate)
			b.rec.Begin(due(1), []int{0})
			b.pass(10 * time.Second)
			is := b.told()
			require.Equal(t, once(0), is.items(), "%v", is.no)
			require.Empty(t, is.no)
		})
	}
}

// The leader writes the ledger while a begin is under way.
func TestALedgerThatMovedOnDecides(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *ledger.Ledger)
		begun  []int
		no     []refused
	}{
		{"removed", without(0), []int{1, 2}, all(NotOwned, due(1), 0)},
		{"leaving", leave(1, 2), []int{0}, all(NotOwned, due(1), 1, 2)},
		{"all removed", without(0, 1, 2), nil, all(NotOwned, due(1), 0, 1, 2)},
		{"through moved on", func(l *ledger.Ledger) { l.Items[0] = ledger.Item{Through: due(1)} }, []int{1, 2}, all(Behind, due(1), 0)},
		{"one more", func(l *ledger.Ledger) { l.Items[9] = ledger.Item{Through: due(0)} }, []int{0, 1, 2}, nil},
		{"another total", func(l *ledger.Ledger) { *l = *ledger.New(8) }, nil, all(NotOwned, due(1), 0, 1, 2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onBed(t, 3, func(b *bed) {
				b.rule(func(l *ledger.Ledger) { l.Total = 10 })
				b.observe()
				synctest.Wait()
				b.told()
				b.before(0, memory.Deliver, func() { b.rule(tt.change) })
				b.rec.Begin(due(1), numbers(3))
				synctest.Wait()
				is := b.told()
				require.Equal(t, once(tt.begun...), is.items())
				require.ElementsMatch(t, tt.no, is.no)
				require.Len(t, is.seen, 1)
				commits := 1
				if len(tt.begun) > 0 {
					commits = 2
				}
				b.requireRequests(commits, 2)
				b.observe() // the notice is late
				synctest.Wait()
				require.Empty(t, b.told().seen)
				b.requireRequests(0, 1)
			})
		})
	}
}

func TestGoneOnceAndEverythingLost(t *testing.T) {
	replace := func(b *bed) {
		value := b.node(ledgerPath).Value
		b.do(registry.Delete(ledgerPath, registry.AnyVersion))
		b.do(registry.Create(ledgerPath, value))
	}
	kinds := map[string]func(b *bed){
		"life deleted": func(b *bed) { b.do(registry.Delete(lifePath, registry.AnyVersion)) },
		"life made again": func(b *bed) {
			b.do(registry.Delete(lifePath, registry.AnyVersion))
			b.do(registry.Create("/lives/b", nil))
		},
		"ledger deleted":    func(b *bed) { b.do(registry.Delete(ledgerPath, registry.AnyVersion)) },
		"ledger replaced":   replace,
		"ledger is garbage": func(b *bed) { b.do(registry.Set(ledgerPath, []byte("hello"), registry.AnyVersion)) },
		"garbage and life": func(b *bed) {
			b.do(registry.Set(ledgerPath, nil, registry.AnyVersion), registry.Delete(lifePath, registry.AnyVersion))
		},
		"replaced, again":     func(b *bed) { replace(b); replace(b) },
		"session expired":     func(b *bed) { b.srv.Expire(b.ses.ID()) },
		"session closed":      func(b *bed) { _ = b.ses.Close(b.Context()) },
		"dropped":             func(b *bed) { b.rec.Drop(errors.New("by its owner")) },
		"dropped and expired": func(b *bed) { b.srv.Expire(b.ses.ID()); b.rec.Drop(registry.ErrSessionLost) },
	}
	moments := map[string]func(b *bed, strike func()){
		"before": func(b *bed, strike func()) { strike(); b.rec.Begin(due(2), []int{0, 1}) },
		"in flight": func(b *bed, strike func()) {
			b.before(0, memory.Deliver, strike)
			b.rec.Begin(due(2), []int{0, 1})
		},
		"in flight, uncertain": func(b *bed, strike func()) {
			b.before(0, memory.RequestLost, strike)
			b.rec.Begin(due(2), []int{0, 1})
		},
		"in flight, between two attempts": func(b *bed, strike func()) {
			b.fates(memory.RequestLost)
			b.rec.Begin(due(2), []int{0, 1})
			synctest.Wait()
			strike()
		},
		"while an end lingers": func(b *bed, strike func()) {
			b.rec.End(2, due(1), due(1))
			synctest.Wait()
			strike()
			b.rec.Begin(due(2), []int{0, 1})
		},
	}
	for what, kind := range kinds {
		for when, moment := range moments {
			t.Run(what+", "+when, func(t *testing.T) {
				onBed(t, 4, func(b *bed) {
					b.rec.Begin(due(1), []int{2, 3})
					synctest.Wait()
					require.Equal(t, once(2, 3), b.told().items())
					moment(b, func() { kind(b) })
					b.pass(10 * time.Second)
					if b.ses.Err() == nil {
						b.observe()
					}
					b.rec.Begin(due(3), []int{0})
					b.rec.End(3, due(1), due(1))
					b.rec.Account([]int{0}, due(9))
					b.pass(10 * time.Second)
					is := b.told()
					lost := func(k int) []refused {
						return slices.DeleteFunc(slices.Clone(is.no), func(r refused) bool { return r.due != due(k) })
					}
					require.Empty(t, is.ends()[3])
					require.Equal(t, all(Lost, due(3), 0), lost(3))
					if what == "dropped" && len(is.begun) > 0 {
						require.Contains(t, when, "in flight")
						require.Equal(t, once(0, 1), is.items())
						require.Empty(t, lost(2))
						return
					}
					require.Empty(t, is.begun)
					require.Equal(t, all(Lost, due(2), 0, 1), lost(2))
					if strings.HasPrefix(what, "dropped") {
						require.LessOrEqual(t, len(is.gone), 1)
						return
					}
					require.Len(t, is.gone, 1)
					require.NotContains(t, is.gone[0].Error(), "\n")
				})
			})
		}
	}
}

// A look alone tells of a ledger that is not ours any more.
func TestARefreshTellsOfAForeignLedger(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		b.do(registry.Delete(ledgerPath, registry.AnyVersion))
		b.observe()
		b.observe()
		synctest.Wait()
		is := b.told()
		require.Len(t, is.gone, 1)
		require.ErrorContains(t, is.gone[0], ledgerPath)
		b.requireRequests(0, 1)
	})
}

func TestAnUnreadableLedgerIsRefusedAtOnce(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		_, err := NewRecorder(b.rec.Config, b.owner, registry.Node{Value: []byte("hello"), Created: 1})
		require.ErrorContains(t, err, "ledger")
	})
}

// The notice may come late, and for nothing.
func TestRefreshTakesOnlyWhatIsNewer(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Begin(due(1), []int{0})
		synctest.Wait()
		b.observe()
		synctest.Wait()
		require.Empty(t, b.told().seen)
		b.rule(leave(1))
		b.rule(without(1))
		b.observe()
		synctest.Wait()
		is := b.told()
		require.Len(t, is.seen, 1)
		require.Equal(t, []int{0}, is.seen[0].Numbers())
		is.seen[0].Items[1] = ledger.Item{} // the owner's own
		b.rec.Begin(due(2), []int{1})
		synctest.Wait()
		require.Equal(t, all(NotOwned, due(2), 1), b.told().no)
		b.requireRequests(1, 2)
	})
}

// A commit that can never be sent ends the life, and says so.
func TestALedgerThatIsTooLargeEndsTheLife(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		b.rule(func(l *ledger.Ledger) {
			l.Total = 10_000
			for n := range 10_000 {
				l.Items[n] = ledger.Item{Through: due(0)}
			}
		})
		b.observe()
		synctest.Wait()
		for n := range 10_000 {
			b.rec.Account([]int{n}, due(n+1))
		}
		b.pass(time.Second)
		is := b.told()
		require.Len(t, is.gone, 1)
		require.ErrorIs(t, is.gone[0], registry.ErrInvalid)
		b.rec.Begin(due(20_000), []int{0})
		synctest.Wait()
		require.Equal(t, all(Lost, due(20_000), 0), b.told().no)
	})
}

func TestAServiceThatIsAwayIsWaitedFor(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		heal := b.client.Refuse()
		b.rec.Begin(due(1), []int{0, 1})
		b.pass(3 * time.Second)
		require.Empty(t, b.told().begun)
		heal()
		b.pass(2 * time.Second)
		require.Equal(t, once(0, 1), b.told().items())
	})
}
