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

// Nothing is taken for granted of a parent that was seen before.
func TestParentThatWasMadeAgain(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	long := func(c *etcd.Config) { c.SessionTimeout = 600 * time.Second }
	s, client := open(t, bed, long)
	other, _ := open(t, bed, long)
	ctx := within(t, 30*time.Second)
	known := func(t *testing.T, dir string) {
		t.Helper()
		commit(t, other, registry.Create(dir, nil))
		commit(t, s, registry.Create(dir+"/a", nil))
		commit(t, s, registry.Delete(dir+"/a", 0))
		client.Requests()
	}
	costs := func(t *testing.T, requests int) {
		t.Helper()
		require.Empty(t, cmp.Diff(map[string]int{txn: requests}, client.Requests()))
	}
	refused := func(t *testing.T, want error, index int, ops ...registry.Op) {
		t.Helper()
		_, err := s.Commit(ctx, ops...)
		var refusal *registry.CommitError
		require.ErrorAs(t, err, &refusal)
		require.ErrorIs(t, err, want)
		require.Equal(t, index, refusal.Index)
	}
	t.Run("Persistent", func(t *testing.T) {
		known(t, "/p")
		commit(t, other, registry.Delete("/p", 0))
		commit(t, other, registry.Create("/p", nil))
		rev := commit(t, s, registry.CreateEphemeral("/p/b", nil))
		costs(t, 1)
		nodes, err := s.Get(ctx, "/p/b")
		require.NoError(t, err)
		require.Equal(t, rev, nodes[0].Created)
		client.Requests()
		commit(t, s, registry.Create("/p/c", nil))
		costs(t, 1)
	})
	t.Run("Ephemeral", func(t *testing.T) {
		known(t, "/e")
		commit(t, other, registry.Delete("/e", 0))
		commit(t, other, registry.CreateEphemeral("/e", nil))
		refused(t, registry.ErrEphemeralParent, 1, registry.Check("/e", 0), registry.Create("/e/b", nil))
		costs(t, 2)
	})
	t.Run("Gone", func(t *testing.T) {
		known(t, "/g")
		commit(t, other, registry.Delete("/g", 0))
		refused(t, registry.ErrNoParent, 0, registry.Create("/g/b", nil))
		costs(t, 2)
		refused(t, registry.ErrNoParent, 0, registry.Create("/g/b", nil))
		costs(t, 2)
	})
	t.Run("AnotherOperationFails", func(t *testing.T) {
		known(t, "/o")
		commit(t, other, registry.Delete("/o", 0))
		commit(t, other, registry.Create("/o", nil), registry.Create("/o/there", nil))
		refused(t, registry.ErrExists, 1, registry.Create("/o/b", nil), registry.Create("/o/there", nil))
		costs(t, 2)
		commit(t, s, registry.Create("/o/b", nil))
		costs(t, 1)
	})
}

// A commit that is refused is as uncertain as any when the answer is lost, and is not
// sent again.
func TestUncertainBeforeTheReason(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed)
	ops := []registry.Op{registry.Create("/p", nil), registry.Check("/none", registry.AnyVersion)}
	for i := range 8 {
		ops = append(ops, registry.Create(fmt.Sprint("/p/", i), nil))
	}
	client.Requests()
	// The first fate is that of the refused attempt: its answer is lost, and with
	// it the reason why nothing was applied.
	lost := client.NextCommit(testbed.AnswerLost)
	_, err := s.Commit(within(t, 20*time.Second), ops...)
	require.ErrorIs(t, err, registry.ErrUncertain)
	require.True(t, lost())
	require.Equal(t, 1, client.Requests()[txn])
	nodes, err := s.Get(within(t, 20*time.Second), "/p")
	require.NoError(t, err)
	require.False(t, nodes[0].Exists())
}
