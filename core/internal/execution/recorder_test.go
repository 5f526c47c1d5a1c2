package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestAFireIsTwoCommitsAndNoRead(t *testing.T) {
	onBed(t, 8, func(b *bed) {
		for k := 1; k <= 3; k++ {
			b.rec.Begin(due(k), numbers(8))
			synctest.Wait()
			is := b.told()
			fence := b.node(ledgerPath).Modified
			require.Equal(t, []begun{{due(k), numbers(8), fence}}, is.begun)
			for n := range 8 {
				node := b.node(runningPath(n))
				require.True(t, node.Ephemeral)
				require.Equal(t, "a", string(node.Value))
				require.Equal(t, fence, node.Created)
				require.True(t, b.ledger().Items[n].Run.Equal(due(k)))
			}
			for n := range 8 {
				b.rec.End(n, due(k), due(k))
			}
			synctest.Wait()
			require.Equal(t, [][]int{numbers(8)}, b.told().ended)
			b.requireAtRest(due(k))
			b.requireRequests(2, 0)
		}
	})
}

// Begins of several fires share a commit and are told fire by fire.
func TestBeginsOfTwoFiresShareACommit(t *testing.T) {
	onBed(t, 4, func(b *bed) {
		release := b.hold()
		b.rec.Begin(due(1), []int{0})
		synctest.Wait()
		b.rec.Begin(due(2), []int{1, 2})
		b.rec.Begin(due(1), []int{3})
		synctest.Wait()
		require.Empty(t, b.told().begun)
		release()
		synctest.Wait()
		is := b.told()
		require.Len(t, is.begun, 3)
		require.Equal(t, []begun{{due(2), []int{1, 2}, is.begun[1].fence}, {due(1), []int{3}, is.begun[1].fence}}, is.begun[1:])
		require.Greater(t, is.begun[1].fence, is.begun[0].fence)
		b.requireRequests(2, 0)
	})
}

func TestEndsWaitForTheirNeighbours(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.rec.Begin(due(1), numbers(3))
		synctest.Wait()
		b.requireRequests(1, 0)
		b.rec.End(0, due(1), due(1))
		b.pass(linger - time.Nanosecond)
		b.requireRequests(0, 0)
		b.pass(time.Nanosecond)
		require.Equal(t, [][]int{{0}}, b.told().ended)
		b.requireRequests(1, 0)

		b.rec.End(1, due(1), due(1))
		b.pass(linger / 2)
		b.rec.End(2, due(1), due(1)) // the last: nobody is left to wait for
		synctest.Wait()
		require.Equal(t, [][]int{{1, 2}}, b.told().ended)
		b.requireRequests(1, 0)
		b.pass(time.Second)
		b.requireRequests(0, 0)
		b.requireAtRest(due(1))
	})
}

// A begin does not wait, and takes the ends along that do.
func TestABeginTakesLingeringEndsAlong(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.rec.Begin(due(1), []int{0, 1})
		synctest.Wait()
		b.rec.End(0, due(1), due(1))
		synctest.Wait()
		b.requireRequests(1, 0)
		b.rec.Begin(due(2), []int{2})
		synctest.Wait()
		b.requireRequests(1, 0)
		is := b.told()
		require.Equal(t, once(0, 1, 2), is.items())
		require.Equal(t, once(0), is.ends())
		b.rec.End(1, due(1), due(1)) // lingers anew
		b.pass(linger - time.Nanosecond)
		b.requireRequests(0, 0)
		b.pass(time.Nanosecond)
		b.requireRequests(1, 0)
	})
}

func TestEndsDuringACommitShareTheNext(t *testing.T) {
	onBed(t, 8, func(b *bed) {
		b.rec.Begin(due(1), numbers(7))
		synctest.Wait()
		release := b.hold()
		b.rec.Begin(due(2), []int{7})
		synctest.Wait()
		for n := range 7 {
			b.rec.End(n, due(1), due(1))
			b.pass(100 * time.Millisecond)
		}
		require.Empty(t, b.told().ended)
		release()
		b.pass(linger)
		require.Equal(t, [][]int{numbers(7)}, b.told().ended)
		b.requireRequests(3, 0)
	})
}

// An item that is not owned, that leaves, or whose fire is recorded does not
// begin; the others of the call do, without a request more.
func TestRefusalsThatNeedNoRequest(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rule(func(l *ledger.Ledger) { without(0)(l); leave(1)(l); l.Items[2] = ledger.Item{Through: due(1)} })
		b.observe()
		synctest.Wait()
		require.Len(t, b.told().seen, 1)
		b.rec.Begin(due(1), []int{0, 1, 2, 3, 99})
		synctest.Wait()
		is := b.told()
		require.Equal(t, once(3), is.items())
		require.ElementsMatch(t, append(all(NotOwned, due(1), 0, 1, 99), all(Behind, due(1), 2)...), is.no)
		b.requireRequests(1, 1)
		b.rec.Begin(due(1), []int{3})
		b.rec.Begin(due(2), []int{3})
		synctest.Wait()
		require.Equal(t, append(all(Behind, due(1), 3), all(Behind, due(2), 3)...), b.told().no, "it runs")
		b.requireRequests(0, 0)
	})
}

// One fire asked for twice begins once.
func TestOneItemTwiceInOneBegin(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		b.rec.Begin(due(1), []int{0, 0})
		b.rec.Begin(due(2), []int{0})
		synctest.Wait()
		is := b.told()
		require.Equal(t, once(0), is.items())
		require.Equal(t, []refused{{due(1), 0, Behind}, {due(2), 0, Behind}}, is.no)
		b.requireRequests(1, 0)
	})
}

func TestAccountMovesThroughOnly(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.rec.Begin(due(1), []int{2})
		synctest.Wait()
		b.rec.Account(numbers(3), due(5))
		synctest.Wait()
		require.Empty(t, b.told().ended)
		for n := range 3 {
			it := b.ledger().Items[n]
			require.True(t, it.Through.Equal(due(5)))
			require.Equal(t, n == 2, it.Running())
		}
		b.requireRequests(2, 0)
		b.rec.Account(numbers(3), due(4)) // behind what is recorded
		synctest.Wait()
		b.requireRequests(0, 0)
		b.rec.End(2, due(1), due(5))
		synctest.Wait()
		b.requireAtRest(due(5))
	})
}

// An item that left between the request and the commit is not put back into the ledger.
func TestWhatLeftIsNotAccountedFor(t *testing.T) {
	for name, observed := range map[string]bool{"seen by the watch": true, "found by the commit": false} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 3, func(b *bed) {
				release := b.hold()
				b.rec.Begin(due(1), []int{2})
				synctest.Wait()
				b.rec.Account([]int{0, 1}, due(5))
				b.rule(without(0))
				if observed {
					b.observe()
				}
				release()
				b.pass(time.Second)
				require.Equal(t, []int{1, 2}, b.ledger().Numbers())
				require.True(t, b.ledger().Items[1].Through.Equal(due(5)))
				require.Equal(t, once(2), b.told().items())
			})
		})
	}
}

// The end of a run may give the fire back, so that its next owner runs it.
func TestAnEndMayGiveTheFireBack(t *testing.T) {
	for _, fate := range []memory.Fate{memory.Deliver, memory.AnswerLost, memory.RequestLost} {
		onBed(t, 1, func(b *bed) {
			b.rec.Begin(due(1), []int{0})
			synctest.Wait()
			b.fates(fate)
			b.rec.End(0, due(1), due(1).Add(-1))
			b.pass(time.Second)
			b.requireAtRest(due(1).Add(-1))
			b.rec.Begin(due(1), []int{0})
			synctest.Wait()
			is := b.told()
			require.Len(t, is.begun, 2)
			require.Greater(t, is.begun[1].fence, is.begun[0].fence)
		})
	}
}

func TestAHundredItemsTakeThreeCommits(t *testing.T) {
	onBed(t, 100, func(b *bed) {
		require.Equal(t, 40, b.ses.Limits().MaxOps)
		b.rec.Begin(due(1), numbers(100))
		synctest.Wait()
		b.requireRequests(3, 0)
		is := b.told()
		require.Equal(t, once(numbers(100)...), is.items())
		require.Len(t, is.begun[0].items, 40-fixedOps)
		for n := range 100 {
			b.rec.End(n, due(1), due(1))
		}
		b.pass(time.Second)
		require.Equal(t, once(numbers(100)...), b.told().ends())
		b.requireRequests(3, 0)
		b.requireAtRest(due(1))
	})
}

func TestAccountsThatNeedNoOperationShareOneCommit(t *testing.T) {
	onBed(t, 100, func(b *bed) {
		b.rec.Account(numbers(100), due(1))
		b.pass(time.Second)
		b.requireAtRest(due(1))
		b.requireRequests(1, 0)
	})
}
