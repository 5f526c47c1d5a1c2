package execution

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// replace puts a persistent node with a child in the place of one, as a stranger's hand may.
func (b *bed) replace(path, value string) {
	b.Helper()
	if b.node(path).Exists() {
		b.do(registry.Delete(path, registry.AnyVersion))
	}
	b.do(registry.Create(path, []byte(value)), registry.Create(path+"/child", nil))
}

// Whatever is in the way of a picture's removal is none of an end: the end was lost, and nothing of its item ever began
// or ended again.
func TestAnEndCountsThoughItsPictureCannotBeRemoved(t *testing.T) {
	nothing := func() {}
	spoils := map[string]func(b *bed, path string) (end func()){
		"replaced": func(b *bed, path string) func() { b.replace(path, ""); return nothing },
		"deleted":  func(b *bed, path string) func() { b.do(registry.Delete(path, registry.AnyVersion)); return nothing },
		"denied":   func(b *bed, path string) func() { return b.srv.Deny(path) },
	}
	for name, spoil := range spoils {
		for of, begins := range map[string]struct {
			kind kind
			path func(int) string
		}{
			"running": {begin, runningPath}, "misfire": {begin, misfirePath}, "running again": {redo, runningPath}, "failover": {redo, failoverPath},
		} {
			for _, ends := range []kind{end, fail, giveBack} {
				t.Run(fmt.Sprint(of, "/", name, "/", ends), func(t *testing.T) {
					onBed(t, 5, func(b *bed) {
						b.rec.Submit(&step{item: 0, due: due(1), kind: begins.kind, misses: time.Now()}, &step{item: 1, due: due(1), kind: begins.kind})
						b.pass(time.Minute)
						require.True(t, b.node(begins.path(0)).Exists())
						require.Len(t, b.take().steps(), 2)
						mend := spoil(b, begins.path(0))
						b.client.ResetRequests()
						b.submit(ends, due(1), 0, 1)
						b.pass(time.Minute)
						is := b.take()
						require.Len(t, is.steps(), 2)
						require.Empty(t, is.no)
						require.Empty(t, is.late)
						require.Len(t, is.unshown, map[string]int{"replaced": 1, "denied": 1}[name], "told once")
						require.LessOrEqual(t, b.client.Requests().Commit, 4, "it comes to an end")
						require.False(t, b.item(0).Running())
						require.False(t, b.node(runningPath(1)).Exists())
						mend()
						if b.pass(time.Minute); name == "denied" {
							require.False(t, b.node(begins.path(0)).Exists(), "it is removed once the registry lets it go")
						}
						b.submit(begin, due(5), 0, 1)
						b.pass(time.Minute)
						require.Len(t, b.take().steps(), 2, "the next one begins")
						b.submit(end, due(5), 0, 1)
						b.pass(time.Minute)
						require.Len(t, b.take().steps(), 2)
						require.LessOrEqual(t, b.client.Requests().Commit, 20)
					})
				})
			}
		}
	}
}

// What cannot be removed where a picture is to stand is asked for once.
func TestAPictureThatHasNoPlaceIsGivenUp(t *testing.T) {
	for name, path := range map[string]func(int) string{"running": runningPath, "misfire": misfirePath} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.replace(path(0), "")
				b.misses(0, 0, 1)
				b.client.ResetRequests()
				b.pass(time.Hour)
				require.Less(t, b.client.Requests().Commit, 10)
				require.True(t, b.node(path(1)).Exists(), "the others are shown")
				b.submit(end, due(1), 0, 1)
				b.pass(time.Minute)
				is := b.take()
				require.Len(t, is.steps(), 4)
				require.Len(t, is.unshown, 1, "told once")
				require.True(t, b.node(path(0)).Exists())
			})
		})
	}
}

// Beside ElasticJob such a node is a lock: its instances look whether one stands, and not what it holds.
func TestALockThatCannotBeRemoved(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(showAfter, true)
		b.replace(runningPath(0), "b")
		b.client.ResetRequests()
		b.submit(begin, due(1), 0, 1)
		b.pass(time.Hour)
		is := b.take()
		require.Len(t, is.steps(), 1)
		require.Len(t, is.no, 1)
		require.Equal(t, Obstructed, is.no[0].why)
		require.Less(t, b.client.Requests().Commit, 10)
	})
}

// The directory of the nodes by which the leader is told of ends is one that no node can stand in. What is tried again
// is tried once a second.
func TestWhatTellsOfEndsHasNoPlace(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		b.rule(func(l *ledger.Ledger) {
			rec, _ := l.Get(0)
			rec.Leaving = true
			l.Set(0, rec)
		})
		b.rec.Refresh(false)
		b.do(registry.CreateEphemeral("/rounds", nil))
		b.client.ResetRequests()
		b.submit(end, due(1), 0, 1)
		b.pass(10 * time.Second)
		require.Less(t, b.client.Requests().Commit, 15)
		require.NotEmpty(t, b.take().late)
		b.do(registry.Delete("/rounds", registry.AnyVersion))
		b.pass(time.Minute)
		require.Len(t, b.take().steps(), 2)
		require.True(t, b.node(roundsPath).Exists())
	})
}

// A fire that was to begin with an end has not, where the ledger does not hold the item any more, though an attempt
// before would have begun it: it was taken for running, and beside ElasticJob nothing of any item began.
func TestAnEndThatIsRecordedNowhereBeginsNothing(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.submit(begin, due(1), 0)
		synctest.Wait()
		b.take()
		b.rec.Show(time.Hour, false)
		b.rule(func(l *ledger.Ledger) { l.Delete(0) }) // nobody has told the recorder
		last := &step{item: 0, due: due(1), kind: end, next: due(2)}
		b.rec.Submit(last)
		b.pass(time.Second)
		is := b.take()
		require.Equal(t, []*step{last}, is.steps())
		require.Zero(t, is.applied[0].rev)
		require.True(t, last.Follows(), "an attempt would have begun it")
		b.rec.Show(showAfter, true)
		b.pass(time.Second)
		b.submit(begin, due(3), 1)
		b.pass(time.Minute)
		require.Len(t, b.take().steps(), 1)
	})
}

// A picture of which it is not known whether it stands is looked for after the end. Where the registry does not let it be
// read, others did not begin or end until it did.
func TestAPictureThatCannotBeLookedForHindersNothing(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.fates(memory.Deliver, memory.AnswerLost)
		b.submit(begin, due(1), 0)
		b.pass(showAfter)
		require.True(t, b.node(runningPath(0)).Exists())
		allow := b.srv.Deny(runningPath(0))
		b.submit(end, due(1), 0)
		b.submit(begin, due(1), 1)
		b.pass(time.Minute)
		b.submit(begin, due(1), 2)
		b.submit(end, due(1), 1)
		b.pass(time.Minute)
		is := b.take()
		require.Len(t, is.steps(), 5)
		require.Len(t, is.unshown, 1)
		require.Empty(t, is.late)
		allow()
		b.pass(sweepAgain)
		require.False(t, b.node(runningPath(0)).Exists())
		b.client.ResetRequests()
		b.pass(time.Hour)
		b.requireRequests(0, 0)
	})
}
