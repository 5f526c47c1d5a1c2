package execution

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/lane"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	lifePath   = "/lives/a"
	ledgerPath = "/ledgers/a"
)

func runningPath(n int) string { return fmt.Sprintf("/items/%d/running", n) }

// due is the k-th fire.
func due(k int) time.Time { return time.Date(2026, 11, 21, 5, 0, k, 0, time.UTC) }

// A bed is a recorder on a server of its own, in fake time.
type bed struct {
	*testing.T
	*owner
	srv    *memory.Server
	client *memory.Registry
	ses    registry.Session // the recorder's
	other  registry.Session // everybody else's
	pool   *lane.Pool
	rec    *Recorder
	total  int
}

// onBed runs a test with a recorder that owns the items below total.
func onBed(t *testing.T, total int, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, total)
		defer b.close()
		test(b)
	})
}

func newBed(t *testing.T, total int) *bed {
	b := &bed{T: t, owner: newOwner(t), srv: memory.NewServer(memory.Config{}), pool: lane.NewPool(4), total: total}
	b.client = b.srv.Registry("shop")
	var err error
	b.ses, err = b.client.Open(t.Context())
	require.NoError(t, err)
	b.other, err = b.srv.Registry("shop").Open(t.Context())
	require.NoError(t, err)
	for n := range total {
		require.NoError(t, registry.EnsurePath(t.Context(), b.other, fmt.Sprintf("/items/%d", n)))
	}
	for _, p := range []string{"/lives", "/ledgers"} {
		require.NoError(t, registry.EnsurePath(t.Context(), b.other, p))
	}
	led := ledger.New(total)
	for n := range total {
		led.Items[n] = ledger.Item{Through: due(0)}
	}
	_, err = b.ses.Commit(t.Context(), registry.CreateEphemeral(lifePath, nil), registry.Create(ledgerPath, led.Encode()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-b.ses.Done(); cancel() }()
	b.rec, err = NewRecorder(Config{
		Session: b.ses, Context: ctx, Pool: b.pool, Life: lifePath, Ledger: ledgerPath, Running: runningPath, Instance: "a",
	}, b.owner, b.node(ledgerPath))
	require.NoError(t, err)
	b.client.ResetRequests()
	return b
}

func (b *bed) close() {
	b.srv.Intercept(nil)
	_ = b.ses.Close(context.Background()) // some tests have cut it off
	b.pool.Close()
	require.NoError(b, b.other.Close(context.Background()))
	synctest.Wait()
}

// pass lets time pass and what is under way end.
func (b *bed) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// node reads past the recorder's client.
func (b *bed) node(path string) registry.Node {
	b.Helper()
	nodes, err := b.other.Get(context.Background(), path)
	require.NoError(b, err)
	return nodes[0]
}

// ledger is what the registry holds.
func (b *bed) ledger() *ledger.Ledger {
	b.Helper()
	l, err := ledger.Decode(b.node(ledgerPath).Value)
	require.NoError(b, err)
	return l
}

// do commits as somebody else.
func (b *bed) do(ops ...registry.Op) {
	b.Helper()
	_, err := b.other.Commit(context.Background(), ops...)
	require.NoError(b, err)
}

// rule writes the ledger as the leader does.
func (b *bed) rule(change func(l *ledger.Ledger)) {
	b.Helper()
	node := b.node(ledgerPath)
	l, err := ledger.Decode(node.Value)
	require.NoError(b, err)
	change(l)
	b.do(registry.Set(ledgerPath, l.Encode(), node.Version))
}

// observe is the watch.
func (b *bed) observe() { b.rec.Refresh() }

func without(items ...int) func(l *ledger.Ledger) {
	return func(l *ledger.Ledger) {
		for _, n := range items {
			delete(l.Items, n)
		}
	}
}

func leave(items ...int) func(l *ledger.Ledger) {
	return func(l *ledger.Ledger) {
		for _, n := range items {
			it := l.Items[n]
			it.Leaving = true
			l.Items[n] = it
		}
	}
}

// fates decides on the next commits of the recorder; before is called first.
func (b *bed) fates(all ...memory.Fate) {
	var next atomic.Int32
	b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != b.ses.ID() {
			return memory.Deliver
		}
		if k := int(next.Add(1)) - 1; k < len(all) {
			return all[k]
		}
		return memory.Deliver
	})
}

// before calls act once, before the recorder's k-th commit from now (0 is the
// next) is served, and gives that commit a fate.
func (b *bed) before(k int, fate memory.Fate, act func()) {
	var next atomic.Int32
	b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != b.ses.ID() || int(next.Add(1))-1 != k {
			return memory.Deliver
		}
		act()
		return fate
	})
}

// hold keeps the recorder's next commit in flight until release.
func (b *bed) hold() (release func()) {
	gate := make(chan struct{})
	b.before(0, memory.Deliver, func() { <-gate })
	return func() { close(gate) }
}

// requires that the recorder has sent so much since the last time.
func (b *bed) requireRequests(commits, gets int) {
	b.Helper()
	got := b.client.Requests()
	got.Heartbeat = 0
	require.Equal(b, memory.Counts{Commit: commits, Get: gets}, got)
	b.client.ResetRequests()
}

// requireAtRest requires that nothing runs, here or in the registry, and that the
// ledger accounts for the fires through the given one.
func (b *bed) requireAtRest(through time.Time) {
	b.Helper()
	for n, it := range b.ledger().Items {
		require.True(b, it.Through.Equal(through), "item %d: %+v", n, it)
		require.False(b, it.Running(), "item %d: %+v", n, it)
		require.False(b, b.node(runningPath(n)).Exists())
	}
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
