package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// clock has the recorder's clock go on from its ledger's last fire.
func (b *bed) clock() (now func() time.Time) {
	from := time.Now()
	now = func() time.Time { return due(0).Add(time.Since(from)) }
	b.rec.cfg.Now = now
	return now
}

// A begin that is recorded before it is due says nothing of when it began, and is shown as if it
// were recorded just after it comes due: not when the next one does, which goes first.
func TestABeginAheadOfItsTime(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		fire := b.clock()().Add(800 * time.Millisecond)
		b.submit(begin, fire, 0, 1)
		synctest.Wait()
		require.Equal(t, ledger.Item{Through: fire, Run: fire}, b.item(0))
		require.Zero(t, b.last(0), "it has not begun yet")
		b.submit(giveBack, fire, 1)
		synctest.Wait()
		require.Zero(t, b.last(1))
		b.pass(800*time.Millisecond + showAfter + aside - time.Nanosecond)
		b.requireShown()
		b.pass(time.Nanosecond)
		b.requireShown(0)
		b.submit(end, fire, 0)
		b.pass(linger)
		require.Equal(t, fire, b.last(0).Began)
		require.False(t, b.last(0).Ended.Before(fire.Add(showAfter)))
		b.requireShown()
	})
}

// The end of a run and the begin of the next fire are one commit.
func TestAnEndWithTheNextBegin(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		now := b.clock()
		b.pass(time.Millisecond)
		first := now()
		b.submit(begin, first, 0)
		b.pass(showAfter)
		b.requireShown(0)
		b.requireRequests(2, 0)
		next := first.Add(showAfter + 700*time.Millisecond)
		b.rec.Submit(&step{item: 0, due: first, kind: fail, next: next})
		b.pass(linger)
		b.requireRequests(1, 0)
		require.Equal(t, ledger.Item{Through: next, Run: next}, b.item(0))
		ended := first.Add(showAfter)
		require.Equal(t, ledger.Last{Began: first, Ended: ended, Failed: true}, b.last(0))
		b.requireShown()
		b.pass(next.Sub(now()) + showAfter + aside - time.Nanosecond)
		b.requireShown()
		b.pass(time.Nanosecond)
		b.requireShown(0)
		b.submit(giveBack, next, 0)
		synctest.Wait()
		b.requireShown()
		require.Equal(t, ledger.Last{Began: first, Ended: ended, Failed: true}, b.last(0), "there was no second run")
	})
}

// What is owed begins with the end at once: it is dated by that, and a round has begun by it.
func TestAnEndWithTheBeginOfWhatIsOwed(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		now := b.clock()
		b.rec.Listen(true)
		b.pass(time.Millisecond)
		first := now()
		b.submit(begin, first, 0)
		b.pass(1500 * time.Millisecond)
		next := first.Add(time.Second)
		b.rec.Submit(&step{item: 0, due: first, kind: end, next: next})
		b.pass(linger)
		ended := first.Add(1500 * time.Millisecond)
		require.Equal(t, ledger.Item{Through: next, Run: next}, b.item(0))
		require.Equal(t, ledger.Last{Began: ended, Ended: ended}, b.last(0))
		told, err := ledger.DecodeRounds(b.node(roundsPath).Value)
		require.NoError(t, err)
		require.Equal(t, next, told.Begun)
		b.submit(giveBack, next, 0)
		synctest.Wait()
		require.Equal(t, ledger.Last{Began: first, Ended: ended}, b.last(0), "there was no second run")
	})
}

// Beside a member that goes by what is shown, nothing begins with an end: its node would come later.
func TestBesideElasticJobNothingBeginsWithAnEnd(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Show(showAfter, true)
		now := b.clock()
		b.pass(time.Millisecond)
		first := now()
		b.submit(begin, first, 0)
		synctest.Wait()
		b.requireShown(0)
		b.pass(time.Second)
		b.rec.Submit(&step{item: 0, due: first, kind: end, next: first.Add(time.Second)})
		b.pass(linger)
		require.Equal(t, ledger.Item{Through: first}, b.item(0))
		b.requireShown()
	})
}

// A round that was begun by a clock which was an hour ahead hides none that begins once it is right.
func TestRoundsBegunByAClockThatWasAhead(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		now := b.clock()
		b.rec.Listen(true)
		b.submit(begin, now().Add(time.Hour), 0)
		synctest.Wait()
		b.pass(time.Second)
		fire := now()
		b.submit(begin, fire, 1)
		synctest.Wait()
		told, err := ledger.DecodeRounds(b.node(roundsPath).Value)
		require.NoError(t, err)
		require.Equal(t, fire, told.Begun)
	})
}
