package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

const (
	txn   = "/etcdserverpb.KV/Txn"
	get   = "/etcdserverpb.KV/Range"
	grant = "/etcdserverpb.Lease/LeaseGrant"
	end   = "/etcdserverpb.Lease/LeaseRevoke"
	beat  = "/etcdserverpb.Lease/LeaseKeepAlive"
	watch = "/etcdserverpb.Watch/Watch"
)

// What every call costs, in requests. The engine's budget rests on it.
func TestRequestsOfEachCall(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	reg, client := connect(t, bed, func(c *etcd.Config) { c.SessionTimeout = 600 * time.Second })
	ctx := within(t, 30*time.Second)
	costs := func(what string, want map[string]int) {
		t.Helper()
		require.Empty(t, cmp.Diff(want, client.Requests()), what)
	}
	costs("Open of the registry", map[string]int{get: 1})

	s, err := reg.Open(ctx)
	require.NoError(t, err)
	costs("Open of a session", map[string]int{grant: 1})

	commit(t, s, registry.Create("/a", nil), registry.Create("/a/b", nil), registry.CreateEphemeral("/a/c", nil))
	costs("Commit", map[string]int{txn: 1})

	_, err = s.Commit(ctx, registry.Check("/a", 0), registry.Set("/a/b", nil, 9))
	require.ErrorIs(t, err, registry.ErrVersion)
	var refusal *registry.CommitError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, 1, refusal.Index)
	costs("a refused Commit", map[string]int{txn: 2})
	_, err = s.Commit(ctx, registry.Set("/a/d", nil, registry.AnyVersion))
	require.ErrorIs(t, err, registry.ErrNotFound)
	costs("a Commit that can be refused for one reason", map[string]int{txn: 1})

	paths := make([]string, 129)
	for i := range paths {
		paths[i] = fmt.Sprint("/n", i)
	}
	_, err = s.Get(ctx, "/a")
	require.NoError(t, err)
	costs("Get of one", map[string]int{get: 1})
	_, err = s.Get(ctx, paths[:128]...)
	require.NoError(t, err)
	costs("Get of 128", map[string]int{txn: 1})
	_, err = s.Get(ctx, paths...)
	require.NoError(t, err)
	costs("Get of 129", map[string]int{txn: 1, get: 1})

	_, err = s.Children(ctx, "/a")
	require.NoError(t, err)
	costs("Children", map[string]int{txn: 1})
	require.NoError(t, s.Sync(ctx))
	costs("Sync", nil)

	f := follow(t, s)
	costs("Watch", nil)
	for _, path := range paths[:100] {
		require.NoError(t, f.Watcher.Add(path, registry.Self))
	}
	f.Until(10*time.Second, "100 targets", func() bool { return f.Synced == 100 })
	_, err = bed.Admin().Put(ctx, "/elasticron/1/n99", "x") // past the client
	require.NoError(t, err)
	f.Until(10*time.Second, "a change of the last target", func() bool { return f.Nodes["/n99"].Exists() })
	spent := client.Requests()
	require.Equal(t, 100, spent[watch])
	require.LessOrEqual(t, spent[txn]+spent[get], 100)

	require.NoError(t, s.Close(ctx))
	costs("Close", map[string]int{end: 1})
}

func TestHeartbeatsAreOneMessageAQuarter(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, func(c *etcd.Config) { c.SessionTimeout = time.Second })
	client.Requests()
	before := s.Deadline()
	eventually(t, 10*time.Second, "two seconds of heartbeats", func() bool { return s.Deadline().Sub(before) > 2*time.Second })
	beats := client.Requests()
	require.InDelta(t, 8, beats[beat], 2)
	require.Len(t, beats, 1, "an idle session sends nothing but heartbeats: %v", beats)
}

func TestWidestPortableCommit(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, _ := open(t, bed)
	n := s.Limits().MaxOps
	require.Equal(t, registry.PortableLimits(), s.Limits())
	var parents, children, grandchildren, leaves, all []registry.Op
	for i := range n {
		dir := fmt.Sprint("/p", i)
		parents = append(parents, registry.Create(dir, nil))
		children = append(children, registry.CreateEphemeral(dir+"/e", []byte("x")))
		grandchildren = append(grandchildren, registry.Create(dir+"/d", nil))
		leaves = append(leaves, registry.Delete(dir+"/e", 0))
		all = append(all, registry.Set(dir+"/d", []byte("y"), 0))
	}
	for _, ops := range [][]registry.Op{parents, children, grandchildren, leaves, all} {
		commit(t, s, ops...)
	}
	// A directory with 39 children, all deleted in one commit.
	commit(t, s, registry.Create("/wide", nil))
	var fill, empty []registry.Op
	for i := range n - 1 {
		fill = append(fill, registry.Create(fmt.Sprint("/wide/", i), nil))
		empty = append(empty, registry.Delete(fmt.Sprint("/wide/", i), 0))
	}
	commit(t, s, fill...)
	commit(t, s, append(empty, registry.Delete("/wide", 0))...)
	_, err := s.Children(within(t, 5*time.Second), "/wide")
	require.ErrorIs(t, err, registry.ErrNotFound)
}
