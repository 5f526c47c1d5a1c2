package zookeeper_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
)

const (
	multi  = "multi"
	create = "create"
	set    = "setData"
	get    = "getData"
	exists = "exists"
	list   = "getChildren2"
	many   = "multiRead"
)

// A meter compares what was sent with what was expected, heartbeats apart.
type meter struct {
	t      testing.TB
	client *testbed.ZooKeeperClient
}

// spare leaves out what time costs.
func spare(sent map[string]int) {
	delete(sent, "ping") // the client's own
	delete(sent, "heartbeat")
}

func (m meter) costs(what string, want map[string]int) {
	m.t.Helper()
	got := m.client.Requests()
	m.client.ResetRequests()
	spare(got)
	if want == nil {
		want = map[string]int{}
	}
	require.Empty(m.t, cmp.Diff(want, got), what)
}

// What every call costs, in requests. The engine's budget rests on it.
func TestRequestsOfEachCall(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	reg, client := connect(t, bed)
	m := meter{t, client}
	m.client.ResetRequests()
	s := session(t, reg)
	opened := client.Requests()
	for _, op := range []string{multi, get, exists, list} {
		require.Zero(t, opened[op], "opening a session: %v", opened)
	}
	ctx := within(t, 30*time.Second)
	client.ResetRequests()

	commit(t, s, registry.Create("/a", nil), registry.Create("/a/b", nil), registry.CreateEphemeral("/a/c", nil))
	m.costs("Commit", map[string]int{multi: 1})
	_, err := s.Commit(ctx, registry.Check("/a", 0), registry.Set("/a/b", nil, 9))
	require.ErrorIs(t, err, registry.ErrVersion)
	m.costs("a refused Commit", map[string]int{multi: 1})

	paths := make([]string, 129)
	for i := range paths {
		paths[i] = fmt.Sprint("/n", i)
	}
	_, err = s.Get(ctx, paths...)
	require.NoError(t, err)
	m.costs("Get of 129", map[string]int{many: 4, get: 1})
	_, err = s.Children(ctx, "/a")
	require.NoError(t, err)
	m.costs("Children", map[string]int{list: 1})
	require.NoError(t, s.Sync(ctx))
	m.costs("Sync", map[string]int{multi: 1})
	commit(t, s, registry.Set("/a/b", nil, 0))
	m.costs("a Set alone", map[string]int{set: 1})
	require.NoError(t, s.Close(ctx))
	require.Zero(t, client.Requests()[multi])
}

// What a watch costs: one read for each node at Add, one for each change, and
// nothing while nothing changes, however many watchers there are.
func TestRequestsOfAWatch(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	reg, client := connect(t, bed)
	s, writer := session(t, reg), session(t, reg)
	m := meter{t, client}
	commit(t, writer, registry.Create("/d", nil), registry.Create("/d/a", nil), registry.Create("/d/b", nil))
	require.NoError(t, s.Sync(within(t, 10*time.Second)))
	client.ResetRequests()

	f := follow(t, s)
	m.costs("Watch", nil)
	require.NoError(t, f.Watcher.Add("/d", registry.Self))
	f.Until(10*time.Second, "a node", func() bool { return f.Synced == 1 })
	m.costs("Add of a node", map[string]int{get: 1})
	require.NoError(t, f.Watcher.Add("/none", registry.Self))
	f.Until(10*time.Second, "an absence", func() bool { return f.Synced == 2 })
	m.costs("Add of an absence", map[string]int{get: 1, exists: 1})
	require.NoError(t, f.Watcher.Add("/d", registry.Children))
	f.Until(10*time.Second, "a directory", func() bool { return f.Synced == 3 })
	m.costs("Add of a directory of two", map[string]int{list: 1, get: 2})
	require.NoError(t, f.Watcher.Add("/nowhere", registry.Children))
	f.Until(10*time.Second, "no directory", func() bool { return f.Synced == 4 })
	waitFor(t, client, map[string]int{list: 1, exists: 1})

	second := follow(t, s)
	require.NoError(t, second.Watcher.Add("/d", registry.Children))
	second.Until(10*time.Second, "a directory", func() bool { return second.Synced == 1 })
	m.costs("the same directory in another watcher", map[string]int{list: 1, get: 2})

	both := func(path, value string) func() bool {
		return func() bool { return string(f.Nodes[path].Value) == value }
	}
	commit(t, writer, registry.Set("/d/a", []byte("1"), 0))
	f.Until(10*time.Second, "a change", both("/d/a", "1"))
	second.Until(10*time.Second, "a change", func() bool { return string(second.Nodes["/d/a"].Value) == "1" })
	m.costs("a change of a child, seen by two", map[string]int{set: 1, get: 1})
	commit(t, writer, registry.Create("/d/c", []byte("1")))
	f.Until(10*time.Second, "a new child", both("/d/c", "1"))
	m.costs("a new child", map[string]int{create: 1, list: 1, get: 1})
	commit(t, writer, registry.Delete("/d/c", 0))
	f.Until(10*time.Second, "a child less", func() bool { return !f.Nodes["/d/c"].Exists() })
	waitFor(t, client, map[string]int{multi: 1, list: 1})
	commit(t, writer, registry.Create("/none", []byte("1")))
	f.Until(10*time.Second, "a creation", both("/none", "1"))
	m.costs("a node that was absent", map[string]int{create: 1, get: 1})
	commit(t, writer, registry.Create("/nowhere", nil))
	waitFor(t, client, map[string]int{create: 1, list: 1, exists: 1})

	require.NoError(t, second.Watcher.Close())
	f.Watcher.Remove("/none", registry.Self)
	commit(t, writer, registry.Set("/none", nil, 0), registry.Set("/d/b", []byte("end"), 0))
	f.Until(10*time.Second, "the end", both("/d/b", "end"))
	m.costs("a change that nobody watches any more, and one", map[string]int{multi: 1, get: 1})
}

// waitFor waits until these requests were sent, and demands that no others were.
func waitFor(t testing.TB, client *testbed.ZooKeeperClient, want map[string]int) {
	t.Helper()
	requests := func() map[string]int {
		got := client.Requests()
		spare(got)
		return got
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t, 5*time.Second); !maps.Equal(want, requests()) && ctx.Err() == nil; {
		<-tick.C
	}
	require.Empty(t, cmp.Diff(want, requests()))
	client.ResetRequests()
}

// A directory of ten thousand, read whole and emptied, and what it costs.
func TestTenThousandChildren(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	reg, client := connect(t, bed)
	s, writer := session(t, reg), session(t, reg)
	const n, batch = 10_000, 500
	commit(t, writer, registry.Create("/d", nil))
	each := func(op func(path string) registry.Op) {
		for i := 0; i < n; i += batch {
			ops := make([]registry.Op, batch)
			for k := range ops {
				ops[k] = op(fmt.Sprint("/d/", i+k))
			}
			commit(t, writer, ops...)
		}
	}
	each(func(path string) registry.Op { return registry.Create(path, []byte("x")) })
	require.NoError(t, s.Sync(within(t, 10*time.Second)))
	client.ResetRequests()

	f := follow(t, s)
	start := time.Now()
	require.NoError(t, f.Watcher.Add("/d", registry.Children))
	f.Until(30*time.Second, "ten thousand nodes", func() bool { return f.Synced == 1 })
	t.Logf("%d nodes in %v", n, time.Since(start))
	require.Len(t, f.Nodes, n)
	got := client.Requests()
	require.Equal(t, n, got[get])
	require.Equal(t, 1, got[list])

	client.ResetRequests()
	each(func(path string) registry.Op { return registry.Delete(path, 0) })
	left := n
	f.Until(30*time.Second, "their end", func() bool {
		left = 0
		for _, node := range f.Nodes {
			if node.Exists() {
				left++
			}
		}
		return left == 0
	})
	require.Less(t, client.Requests()[get], n/10, "an end that a watch reports is not asked for again")
}
