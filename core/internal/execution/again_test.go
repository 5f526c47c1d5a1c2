package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// A run of a fire that a dead instance had begun is shown as one at once, in its own commit,
// and its end removes both nodes in its own.
func TestWhatRunsAgainIsShownAtOnce(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.submit(redo, due(1), 0, 1)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.submit(begin, due(1), 2)
		synctest.Wait()
		b.requireRequests(1, 0)
		b.requireShown(0, 1)
		require.Equal(t, "a", string(b.node(failoverPath(0)).Value))
		require.False(t, b.node(failoverPath(2)).Exists())
		b.submit(end, due(1), 0)
		b.submit(giveBack, due(1), 1)
		b.pass(showAfter)
		b.requireShown(2)
		require.False(t, b.node(failoverPath(0)).Exists())
		require.False(t, b.node(failoverPath(1)).Exists())
	})
}

// Nothing that is in the way of a picture is in the way of the run.
func TestWhatRunsAgainBeginsWhateverStandsThere(t *testing.T) {
	for name, stands := range map[string]string{"running": runningPath(0), "failover": failoverPath(0)} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.do(registry.CreateEphemeral(stands, []byte("java")))
				b.submit(redo, due(1), 0, 1)
				b.pass(time.Second)
				require.Len(t, b.take().steps(), 2)
				require.Equal(t, "a", string(b.node(failoverPath(1)).Value))
				b.submit(end, due(1), 0, 1)
				b.pass(time.Second)
				require.Len(t, b.take().steps(), 2)
				b.requireShown()
				require.False(t, b.node(failoverPath(1)).Exists())
				require.True(t, b.node(stands).Exists())
			})
		})
	}
}

// What somebody deletes is not missed, and the other node goes all the same.
func TestTheNodesOfWhatRunsAgainMayBeDeleted(t *testing.T) {
	for name, path := range map[string]string{"running": runningPath(0), "failover": failoverPath(0)} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.submit(redo, due(1), 0)
				synctest.Wait()
				b.do(registry.Delete(path, registry.AnyVersion))
				b.submit(end, due(1), 0)
				b.pass(time.Second)
				require.Len(t, b.take().steps(), 2)
				require.False(t, b.node(runningPath(0)).Exists())
				require.False(t, b.node(failoverPath(0)).Exists())
			})
		})
	}
}

func TestNothingIsShownOfWhatRunsAgainWhereItIsSwitchedOff(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(-time.Second, false)
		b.submit(redo, due(1), 0)
		b.pass(time.Minute)
		require.False(t, b.node(runningPath(0)).Exists())
		require.False(t, b.node(failoverPath(0)).Exists())
	})
}

// Beside ElasticJob the running node is a lock: it is made, or the begin is refused.
func TestBesideJavaWhatRunsAgainTakesTheLock(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(showAfter, true)
		b.do(registry.CreateEphemeral(runningPath(0), []byte("java")), registry.CreateEphemeral(failoverPath(1), []byte("java")))
		b.submit(redo, due(1), 0, 1)
		b.pass(time.Second)
		told := b.take()
		require.Len(t, told.no, 1)
		require.Equal(t, 0, told.no[0].item)
		require.Equal(t, Obstructed, told.no[0].why)
		b.requireShown(1)
	})
}
