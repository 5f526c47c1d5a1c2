package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

func TestAFireIsTwoCommitsAndNoRead(t *testing.T) {
	onBed(t, 8, func(b *bed) {
		for k := 1; k <= 3; k++ {
			steps := b.submit(begin, due(k), numbers(8)...)
			synctest.Wait()
			require.Equal(t, []applied{{steps, b.node(ledgerPath).Modified}}, b.take().applied)
			for n := range 8 {
				require.Equal(t, due(k), b.item(n).Run)
			}
			steps = b.submit(end, due(k), numbers(8)...)
			synctest.Wait()
			require.Equal(t, steps, b.take().steps())
			b.requireAtRest(due(k))
			b.requireRequests(2, 0)
		}
		require.Equal(t, int64(6), b.ledger().Seq)
	})
}

// What is submitted while a commit is in flight shares the next.
func TestChangesShareCommits(t *testing.T) {
	onBed(t, 4, func(b *bed) {
		release := b.hold()
		b.submit(begin, due(1), 0)
		synctest.Wait()
		b.submit(begin, due(2), 1, 2)
		b.submit(account, due(1), 3)
		synctest.Wait()
		release()
		synctest.Wait()
		require.Len(t, b.take().applied, 2)
		b.requireRequests(2, 0)
	})
}

// An item's changes are applied in their order, one in a commit, whichever of them would wait
// and whichever would not.
func TestChangesOfAnItemKeepTheirOrder(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		var want []*step
		for k := 1; k <= 4; k++ {
			want = append(want, b.submit(begin, due(k), 0)...)
			want = append(want, b.submit(end, due(k), 0)...)
		}
		b.pass(time.Second)
		is := b.take()
		require.Equal(t, want, is.steps())
		require.Len(t, is.applied, 8)
		require.Empty(t, is.no)
		b.requireRequests(8, 0)
		b.requireAtRestBut(due(4), 0)
	})
}

func (b *bed) requireAtRestBut(through time.Time, items ...int) {
	for _, n := range items {
		require.Equal(b, ledger.Item{Through: through}, b.item(n))
	}
}

func TestEndsWaitForTheirNeighbours(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.submit(begin, due(1), numbers(3)...)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.submit(end, due(1), 0)
		b.pass(linger - time.Nanosecond)
		b.requireRequests(0, 0)
		b.pass(time.Nanosecond)
		b.requireRequests(1, 0)

		b.submit(end, due(1), 1)
		b.pass(linger / 2)
		b.submit(end, due(1), 2) // the last: nobody is left to wait for
		synctest.Wait()
		b.requireRequests(1, 0)
		b.pass(time.Second)
		b.requireRequests(0, 0)
		b.requireAtRest(due(1))
	})
}

// A begin does not wait, and takes the ends along that do.
func TestABeginTakesLingeringEndsAlong(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		first := b.submit(end, due(1), 0)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.take()
		second := b.submit(begin, due(2), 2)
		synctest.Wait()
		b.requireRequests(1, 0)
		require.Equal(t, append(second, first...), b.take().steps(), "what is urgent goes first")
		b.submit(end, due(1), 1) // lingers anew
		b.pass(linger - time.Nanosecond)
		b.requireRequests(0, 0)
		b.pass(time.Nanosecond)
		b.requireRequests(1, 0)
	})
}

// What is urgent goes first also where not everything fits.
func TestWhatIsUrgentGoesFirst(t *testing.T) {
	onBed(t, 100, func(b *bed) {
		require.Equal(t, 40, b.ses.Limits().MaxOps)
		b.rec.Show(time.Millisecond, false) // so that each end deletes a node
		b.submit(begin, due(1), numbers(60)...)
		b.pass(time.Second)
		b.take()
		release := b.hold()
		b.submit(account, due(1), 99)
		synctest.Wait()
		b.submit(end, due(1), numbers(60)...)
		b.submit(begin, due(1), 60, 61, 62)
		release()
		b.pass(time.Second)
		is := b.take()
		require.Len(t, is.applied, 3)
		require.Equal(t, begin, is.applied[1].steps[0].kind)
		require.Len(t, is.applied[1].steps, 3+40-fixedOps-signalOps)
		require.Len(t, is.steps(), 64)
	})
}

// However many items a fire has, it is two commits.
func TestManyItemsAreTwoCommits(t *testing.T) {
	onBed(t, 1000, func(b *bed) {
		b.submit(begin, due(1), numbers(1000)...)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.submit(end, due(1), numbers(1000)...)
		b.pass(time.Second)
		b.requireRequests(1, 0)
		b.requireAtRest(due(1))
		b.submit(account, due(2), numbers(1000)...)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.requireAtRest(due(2))
	})
}

// What the record refuses needs no request; the others of the call are committed.
func TestRefusalsThatNeedNoRequest(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rule(func(l *ledger.Ledger) {
			l.Delete(0)
			l.Set(1, ledger.Item{Through: due(0), Leaving: true})
			l.Set(2, ledger.Item{Through: due(1)})
		})
		b.rec.Refresh(false)
		synctest.Wait()
		require.Len(t, b.take().seen, 1)
		b.submit(begin, due(1), 0, 1, 2, 3, 99)
		synctest.Wait()
		is := b.take()
		require.Equal(t, 3, is.steps()[0].item)
		why := map[int]Refusal{}
		for _, r := range is.no {
			why[r.item] = r.why
		}
		require.Equal(t, map[int]Refusal{0: NotOwned, 1: ByRecord, 2: ByRecord, 99: NotOwned}, why)
		b.requireRequests(1, 1)
		require.Len(t, is.steps(), 1)
		b.submit(begin, due(2), 3)
		synctest.Wait()
		require.True(t, b.take().no[0].rec.Running())
		b.requireRequests(0, 0)
	})
}

func TestNothingIsSubmittedByNothing(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		b.rec.Submit()
		b.pass(time.Second)
		b.requireRequests(0, 0)
		l := b.rec.Ledger()
		l.Delete(0)
		require.Equal(t, 1, b.rec.Ledger().Len(), "it is a copy")
	})
}

// What the leader says to have written is not read, unless it is no news, or nonsense.
func TestWhatWasWrittenIsTaken(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		tell := func(ahead registry.Version, value []byte) told {
			b.rec.Take(false, Written{Version: b.node(ledgerPath).Version + ahead, Value: value})
			synctest.Wait()
			return b.take()
		}
		before := b.node(ledgerPath).Value
		b.rule(func(l *ledger.Ledger) { l.Delete(0) })
		seen := tell(0, b.node(ledgerPath).Value).seen
		require.Len(t, seen, 1)
		require.Equal(t, []int{1, 2}, seen[0].Numbers())
		b.requireRequests(0, 0)
		require.Empty(t, tell(-1, before).seen, "the one before comes once more")
		b.requireRequests(0, 1)
		require.Empty(t, tell(5, []byte("nonsense")).seen)
		b.requireRequests(0, 1)
		b.rule(func(l *ledger.Ledger) { l.Delete(1) })
		require.Len(t, tell(0, []byte("nonsense")).seen, 1)
		b.requireRequests(0, 1)
		b.submit(begin, due(1), 2)
		synctest.Wait()
		require.Len(t, b.take().steps(), 1)
		b.requireRequests(1, 0)
	})
}

// The leader's notice: nothing is committed for a moment, or until the next one.
func TestStillness(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Refresh(true)
		b.submit(begin, due(1), 0)
		b.pass(stillness - time.Nanosecond)
		b.requireRequests(0, 1)
		b.pass(time.Nanosecond)
		b.requireRequests(1, 0)
		b.rec.Refresh(true)
		b.submit(begin, due(1), 1)
		synctest.Wait()
		b.rec.Refresh(false)
		synctest.Wait()
		b.requireRequests(1, 2)
		b.take()
		// The end of a stillness that was taken back is no reason to linger for longer.
		b.rec.Refresh(true)
		b.submit(end, due(1), 0)
		synctest.Wait()
		b.rec.Refresh(false)
		b.pass(linger)
		require.Len(t, b.take().steps(), 1)
	})
}

// What the leader does meanwhile takes as long as the recorder's own commits.
func TestStillnessLastsAsCommitsTake(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		b.rec.Show(time.Hour, false)
		for k, x := range []struct{ took, still time.Duration }{
			{100 * time.Millisecond, commitsInStillness * 100 * time.Millisecond}, {time.Second, mostStillness}, {0, stillness},
		} {
			heal := b.client.Delay(x.took)
			b.submit(begin, due(k+1), 0)
			b.pass(x.took)
			heal()
			b.client.ResetRequests()
			b.rec.Refresh(true)
			b.submit(end, due(k+1), 0)
			b.pass(x.still - time.Nanosecond)
			b.requireRequests(0, 1)
			b.pass(time.Nanosecond)
			b.requireRequests(1, 0)
		}
	})
}

// How long the registry was away says nothing about how long the leader's requests take now.
func TestAnOutageMakesNoStillnessLonger(t *testing.T) {
	onBed(t, 1, func(b *bed) {
		heal := b.client.Refuse()
		b.submit(begin, due(1), 0)
		b.pass(2 * time.Second)
		heal()
		b.pass(time.Second)
		require.Equal(t, due(1), b.item(0).Run)
		b.client.ResetRequests()
		b.rec.Refresh(true)
		b.submit(end, due(1), 0)
		b.pass(stillness)
		require.False(t, b.item(0).Running())
	})
}

// Where somebody listens to rounds each begin says so, and each commit that brings the items
// further, in the commits that are made anyway; elsewhere there is no node.
func TestWhatIsToldOfRounds(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		told := func() ledger.Rounds {
			synctest.Wait()
			r, err := ledger.DecodeRounds(b.node(roundsPath).Value)
			require.NoError(t, err)
			require.Equal(t, b.ledger().Seq, r.Seq)
			r.Seq = 0
			return r
		}
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		b.submit(end, due(1), 0, 1)
		synctest.Wait()
		require.False(t, b.node(roundsPath).Exists(), "nobody listens")
		b.rec.Listen(true)
		b.rec.Listen(true)
		b.requireRequests(2, 0)
		b.submit(begin, due(2), 0)
		require.Equal(t, ledger.Rounds{Started: due(1), Completed: due(1), Begun: due(2)}, told())
		b.submit(begin, due(2), 1)
		require.Equal(t, ledger.Rounds{Started: ledger.Always, Completed: due(2).Add(-1), Begun: due(2)}, told())
		b.submit(end, due(2), 0)
		b.pass(linger)
		require.Equal(t, ledger.Rounds{Started: due(2), Completed: due(2).Add(-1), Begun: due(2)}, told())
		b.submit(end, due(2), 1)
		b.pass(linger)
		require.Equal(t, ledger.Rounds{Started: due(2), Completed: due(2), Begun: due(2)}, told())
		b.submit(account, due(3), 0)
		synctest.Wait()
		require.Less(t, toldAsItIs(t, b).Seq, b.ledger().Seq, "no item is further than all")
		b.submit(account, due(3), 1)
		require.Equal(t, ledger.Rounds{Started: due(3), Completed: due(3), Begun: due(2)}, told())
		b.submit(begin, due(4), 0)
		require.Equal(t, due(4), told().Begun)
		b.submit(giveBack, due(4), 0)
		synctest.Wait()
		b.requireRequests(8+2, 2) // the first made the directory
		b.rec.Listen(false)
		seq := toldAsItIs(t, b).Seq
		b.submit(account, due(5), 0, 1)
		synctest.Wait()
		require.Equal(t, seq, toldAsItIs(t, b).Seq, "nobody listens any more")
	})
}

func toldAsItIs(t *testing.T, b *bed) ledger.Rounds {
	t.Helper()
	r, err := ledger.DecodeRounds(b.node(roundsPath).Value)
	require.NoError(t, err)
	return r
}
