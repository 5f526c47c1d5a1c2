package testbed_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elasticron/elasticron/internal/testbed"
)

func connect(t *testing.T, c *testbed.Client) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints(), DialOptions: c.DialOptions(), Logger: zap.NewNop(), MaxUnaryRetries: 1,
	})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func create(ctx context.Context, c *clientv3.Client, key string) error {
	_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, "x")).Commit()
	return err
}

func exists(ctx context.Context, t *testing.T, c *clientv3.Client, key string) bool {
	t.Helper()
	got, err := c.Get(ctx, key)
	require.NoError(t, err)
	return len(got.Kvs) > 0
}

func TestEtcdPartition(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
	old, err := bed.Leader()
	require.NoError(t, err)
	apart, others := bed.Client(), bed.Client()
	defer others.Proxy(old).Refuse()()
	for i := range bed.Members() {
		if i != old {
			defer apart.Proxy(i).Refuse()()
		}
	}
	client, spared := connect(t, apart), connect(t, others)
	ctx := within(t, 30*time.Second)
	require.NoError(t, create(ctx, client, "before"))
	heal, err := bed.Partition(old)
	require.NoError(t, err)
	defer heal()
	require.Eventually(t, func() bool {
		_, err := spared.Put(within(t, soon), "after", "x")
		return err == nil
	}, 20*time.Second, 10*time.Millisecond, "the others go on without the old leader")
	_, err = client.Put(within(t, time.Second), "apart", "x")
	require.Error(t, err)
	got, err := client.Get(ctx, "after", clientv3.WithSerializable())
	require.NoError(t, err, "clients still reach it")
	require.Empty(t, got.Kvs)
	heal()
	require.Eventually(t, func() bool {
		got, err := client.Get(within(t, soon), "after")
		return err == nil && len(got.Kvs) == 1
	}, 20*time.Second, 10*time.Millisecond)
}

func TestFates(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	way := bed.Client()
	client, ctx := connect(t, way), within(t, 30*time.Second)
	require.NoError(t, create(ctx, client, "connected"))

	for _, c := range []struct {
		name    string
		fate    testbed.Fate
		applied bool
		late    bool
	}{
		{"AnswerLost", testbed.AnswerLost, true, false},
		{"RequestLost", testbed.RequestLost, false, false},
		{"AppliedLate", testbed.AppliedLate, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			hit := way.NextCommit(c.fate)
			require.False(t, hit())
			_, err := client.Get(ctx, c.name) // not a commit
			require.NoError(t, err)
			require.False(t, hit())
			before, started := way.Hits(), time.Now()
			require.Error(t, create(ctx, client, c.name))
			require.True(t, hit())
			require.Greater(t, way.Hits(), before)
			require.Equal(t, c.applied, exists(ctx, t, bed.Admin(), c.name))
			if c.late {
				watch := bed.Admin().Watch(ctx, c.name)
				<-watch
				require.GreaterOrEqual(t, time.Since(started), testbed.LateBy)
			}
			require.NoError(t, create(ctx, client, c.name+" again"), "the next commit is spared")
		})
	}
}

func TestRestartKeepsData(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	client, ctx := connect(t, bed.Client()), within(t, 30*time.Second)
	require.NoError(t, create(ctx, client, "kept"))
	require.NoError(t, bed.Restart())
	require.True(t, exists(ctx, t, client, "kept"), "the client finds its way back")
	require.True(t, exists(ctx, t, bed.Admin(), "kept"))
}

func TestPauseLosesNothing(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	client, ctx := connect(t, bed.Client()), within(t, 30*time.Second)
	require.NoError(t, create(ctx, client, "before"))
	resume := bed.Pause()
	written := make(chan error, 1)
	go func() { written <- create(ctx, client, "held") }()
	late := connect(t, bed.Client()) // made during the pause, and paused too
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := late.Get(short, "before")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, exists(ctx, t, bed.Admin(), "held"))
	resume()
	resume()
	require.NoError(t, <-written)
	require.True(t, exists(ctx, t, late, "held"))
}

func TestLoseLeader(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Members: 3})
	require.Equal(t, 3, bed.Members())
	ctx := within(t, 60*time.Second)
	client := connect(t, bed.Client())
	require.NoError(t, create(ctx, client, "kept"))
	term := func() uint64 {
		got, err := bed.Admin().Get(ctx, "kept")
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
		return got.Header.RaftTerm
	}
	before := term()
	require.NoError(t, bed.LoseLeader())
	require.Greater(t, term(), before)
	require.True(t, exists(ctx, t, client, "kept"))
}

func TestRevokeAndCompact(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	ctx := within(t, 30*time.Second)
	lease, err := bed.Admin().Grant(ctx, 60)
	require.NoError(t, err)
	_, err = bed.Admin().Put(ctx, "leased", "", clientv3.WithLease(lease.ID))
	require.NoError(t, err)
	require.NoError(t, bed.Revoke(int64(lease.ID)))
	require.False(t, exists(ctx, t, bed.Admin(), "leased"))
	require.NoError(t, bed.Compact())
	_, err = bed.Admin().Get(ctx, "leased", clientv3.WithRev(1))
	require.ErrorContains(t, err, "compacted")
}
