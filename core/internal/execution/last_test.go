package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// The ledger keeps when each item's last run began and ended, and whether it failed.
func TestLastRuns(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		begun := time.Now().UTC()
		b.submit(begin, due(1), 0, 1, 2)
		synctest.Wait()
		require.Equal(t, ledger.Last{Began: begun}, b.last(0))
		b.pass(300 * time.Millisecond)
		b.submit(end, due(1), 0)
		b.submit(fail, due(1), 1)
		b.pass(linger)
		ended := begun.Add(300*time.Millisecond + linger)
		require.Equal(t, ledger.Last{Began: begun, Ended: ended}, b.last(0))
		require.Equal(t, ledger.Last{Began: begun, Ended: ended, Failed: true}, b.last(1))
		b.submit(giveBack, due(1), 2)
		synctest.Wait()
		require.Zero(t, b.last(2), "there was no run")
		require.Zero(t, b.last(3))

		b.pass(time.Second)
		again := time.Now().UTC()
		b.submit(begin, due(3), 0, 1)
		synctest.Wait()
		require.Equal(t, ledger.Last{Began: again, Ended: ended, Failed: true}, b.last(1), "it runs")
		b.pass(2 * time.Second)
		b.submit(giveBack, due(3), 1)
		synctest.Wait()
		require.Equal(t, ledger.Last{Began: begun, Ended: ended, Failed: true}, b.last(1))
		b.submit(account, due(4), 1)
		b.submit(end, due(3), 0)
		b.pass(time.Second)
		require.False(t, b.last(0).Failed)
		require.Equal(t, again, b.last(0).Began)
		require.Equal(t, ended, b.last(1).Ended)
	})
}

// Items that fire together and end together stay one group, and so do their last runs.
func TestLastRunsOfAFireShareAGroup(t *testing.T) {
	onBed(t, 38, func(b *bed) {
		for k := range 3 {
			b.submit(begin, due(k+1), numbers(38)...)
			b.pass(7 * time.Millisecond)
			b.submit(end, due(k+1), numbers(38)...)
			b.pass(time.Second)
		}
		value := string(b.node(ledgerPath).Value)
		require.Regexp(t, `^[^]]*"groups":\[\{"items":"0-37",[^{]*\}\],"last":\[\{"items":"0-37",[^{]*\}\]\}$`, value)
		require.Less(t, len(value), 250)
		b.requireRequests(6, 0)
	})
}
