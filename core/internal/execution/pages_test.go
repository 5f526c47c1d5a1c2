package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

const longName = "10.123.124.125@-@a-web-server-with-a-rather-long-name-of-a-statefulset-12@-@lg3hz0kqz5"

// own is a record that no other item has, to the nanosecond.
func own(n int) ledger.Item {
	it := ledger.Item{Through: due(0).Add(time.Duration(n)*time.Millisecond + 123_456_789)}
	it.Redo = ledger.Redo{Lost: longName, Tries: 1}
	return it
}

// onPages runs a test with a recorder of items with records of their own.
func onPages(t *testing.T, total int, limits registry.Limits, test func(b *bed, w *wrapped)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wrapped{limits: limits}
		b := newBed(t, total, func(s registry.Session) registry.Session { w.Session = s; return w }, own)
		defer b.close()
		b.rec.Show(-1, false)
		test(b, w)
	})
}

// all submits a change of every item, each with a due of its own.
func (b *bed) all(k kind, total int) {
	changes := make([]Change, total)
	for n := range changes {
		changes[n] = &step{item: n, due: due(100).Add(time.Duration(n) + 123_456_789), kind: k}
	}
	b.rec.Submit(changes...)
}

// What the changes of many items take is counted in bytes, not in items, where each has a record of its
// own: about as many commits as their pages fill.
func TestManyItemsInTheWorstStateNeedFewCommits(t *testing.T) {
	const total = 50_000
	onPages(t, total, registry.PortableLimits(), func(b *bed, w *wrapped) {
		commits, bytes := 0, 0
		w.seen = func(ops []registry.Op) {
			commits++
			for _, op := range ops {
				bytes += len(op.Value)
			}
		}
		for _, k := range []kind{begin, end} {
			commits, bytes = 0, 0
			b.all(k, total)
			b.pass(10 * time.Second)
			is := b.take()
			require.Len(t, is.steps(), total)
			require.Empty(t, is.no)
			require.Empty(t, is.late, "nothing was too large")
			full := bytes/registry.PortableLimits().MaxBytes + 1
			t.Logf("%s: %d commits of %d bytes in all, which fill %d", k, commits, bytes, full)
			require.LessOrEqual(t, commits, full*8/5+2)
			require.Less(t, bytes, total*600, "each page is written once")
		}
	})
}

// A change of one item writes its page, and the root; a ledger in which all are equal again is one node.
func TestOnlyPagesThatChangeAreWritten(t *testing.T) {
	const total = 5_000
	onPages(t, total, registry.PortableLimits(), func(b *bed, w *wrapped) {
		var last []registry.Op
		commits := 0
		w.seen = func(ops []registry.Op) { last, commits = ops, commits+1 }
		b.submit(begin, due(100), 777)
		b.pass(time.Second)
		require.Equal(t, 1, commits)
		require.Len(t, last, 3)
		require.Equal(t, ledger.Path(ledgerPath, 777/512), last[2].Path)
		require.Less(t, len(last[1].Value), 1_000)

		b.submit(end, due(100), 777)
		b.submit(account, due(200), numbers(total)...)
		b.pass(10 * time.Second)
		b.submit(account, due(201), numbers(total)...)
		b.pass(10 * time.Second)
		b.take()
		for _, k := range []kind{begin, end} {
			commits = 0
			b.submit(k, due(300), numbers(total)...)
			b.pass(10 * time.Second)
			require.Equal(t, 1, commits, "%s", k)
		}
		below, err := b.other.Children(t.Context(), ledgerPath)
		require.NoError(t, err)
		require.Empty(t, below, "a steady state is one node")
	})
}

// What somebody did to pages is mended as soon as the leader says that it cannot read the ledger, and no
// later than with the next change of them.
func TestDamagedPagesAreMended(t *testing.T) {
	for _, told := range []bool{true, false} {
		onPages(t, 3_000, registry.PortableLimits(), func(b *bed, w *wrapped) {
			b.do(registry.Delete(ledger.Path(ledgerPath, 1), registry.AnyVersion))
			if told {
				b.do(registry.Set(ledger.Path(ledgerPath, 2), []byte("garbage"), registry.AnyVersion))
			}
			require.Error(t, b.read().Err)
			if told {
				b.rec.Refresh(false)
			} else {
				b.submit(begin, due(100), 600)
			}
			b.pass(time.Second)
			require.Empty(t, b.take().gone)
			require.Equal(t, 3_000, b.ledger().Len())
			require.True(t, b.ledger().Equal(b.rec.Ledger()))
		})
	}
}
