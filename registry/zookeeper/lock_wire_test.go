package zookeeper_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// What a lock costs, in requests.
func TestRequestsOfALock(t *testing.T) {
	reg, client := connect(t, testbed.SharedZooKeeper(t))
	ctx := within(t, 30*time.Second)
	other, s := session(t, reg), session(t, reg)
	m := meter{t, client}
	require.NoError(t, registry.EnsurePath(ctx, other, "/dir"))
	require.NoError(t, s.Sync(ctx))

	client.ResetRequests()
	lock, err := s.Lock(ctx, "/dir", nil)
	require.NoError(t, err)
	waitFor(t, client, map[string]int{multi: 1, list: 1, get: 2}) // one to watch it
	require.NoError(t, lock.Release(ctx))
	m.costs("a release", map[string]int{multi: 1})
	lock, err = s.TryLock(ctx, "/dir", nil)
	require.NoError(t, err)
	waitFor(t, client, map[string]int{multi: 1, list: 2, get: 2})
	_, err = s.TryLock(ctx, "/dir", nil)
	require.ErrorIs(t, err, registry.ErrHeld)
	m.costs("a held lock", map[string]int{list: 2, multi: 1})

	waits := make(chan registry.Lock)
	go func() {
		lock, err := s.Lock(ctx, "/dir", nil)
		if err == nil {
			waits <- lock
		}
		close(waits)
	}()
	waitFor(t, client, map[string]int{multi: 1, list: 1, get: 3}) // two to watch
	require.NoError(t, lock.Release(ctx))
	next := <-waits
	require.NotNil(t, next)
	require.NoError(t, next.Release(ctx))
	sent := client.Requests()
	require.Zero(t, sent[exists], "a watch that never fires is left behind at the service")
	require.Equal(t, 2, sent[multi])
	require.Equal(t, 1, sent[list])
	require.LessOrEqual(t, sent[get], 2, "one more when the end met the answer that was to be watched")
}

// Whatever becomes of the create, there is one place in the queue and in the end
// none, and nothing goes on being watched for what may come.
func TestLockOfUnknownOutcome(t *testing.T) {
	for name, fate := range map[string]testbed.Fate{
		"AnswerLost": testbed.AnswerLost, "RequestLost": testbed.RequestLost, "AppliedLate": testbed.AppliedLate,
	} {
		t.Run(name, func(t *testing.T) {
			reg, client := connect(t, testbed.SharedZooKeeper(t), func(cfg *zookeeper.Config) { cfg.SessionTimeout = 3 * sessionTimeout })
			onlookers, _ := connect(t, testbed.SharedZooKeeper(t))
			s, onlooker := session(t, reg), session(t, onlookers)
			ctx := within(t, 30*time.Second)
			require.NoError(t, registry.EnsurePath(ctx, s, "/dir"))
			client.ResetRequests()
			hit := client.NextCommit(fate)
			lock, err := s.Lock(ctx, "/dir", []byte("me"))
			require.NoError(t, err)
			require.True(t, hit())
			require.NoError(t, onlooker.Sync(ctx))
			names, err := onlooker.Children(ctx, "/dir")
			require.NoError(t, err)
			require.Len(t, names, 1)
			commit(t, onlooker, lock.Guard())
			require.NoError(t, lock.Release(ctx))
			require.NoError(t, onlooker.Sync(ctx))
			names, err = onlooker.Children(ctx, "/dir")
			require.NoError(t, err)
			require.Empty(t, names)
			require.Equal(t, 2, client.Requests()[list], "one look at what became of it, one at the queue")
		})
	}
}

// A lock in a new directory costs one request more than in one that stands.
func TestRequestsOfALockInANewDirectory(t *testing.T) {
	reg, client := connect(t, testbed.SharedZooKeeper(t))
	ctx := within(t, 30*time.Second)
	s := session(t, reg)
	require.NoError(t, registry.EnsurePath(ctx, s, "/in"))
	require.NoError(t, s.Sync(ctx))
	client.ResetRequests()
	lock, err := s.Lock(ctx, "/in/dir", nil)
	require.NoError(t, err)
	waitFor(t, client, map[string]int{multi: 2, list: 1, get: 2})
	require.NoError(t, lock.Release(ctx))
}
