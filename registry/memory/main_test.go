package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const timeout = 6 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs test with fake time.
func bubble(t *testing.T, test func(t *testing.T, srv *memory.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memory.NewServer(memory.Config{})) })
}

// dial returns a client of its own with one session; both are closed at the end.
func dial(t testing.TB, srv *memory.Server) (*memory.Registry, registry.Session) {
	t.Helper()
	reg := srv.Registry("test")
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	ses, err := reg.Open(context.Background())
	require.NoError(t, err)
	return reg, ses
}

func commit(t testing.TB, s registry.Store, ops ...registry.Op) registry.Revision {
	t.Helper()
	rev, err := s.Commit(context.Background(), ops...)
	require.NoError(t, err)
	return rev
}

func get(t testing.TB, s registry.Store, path string) registry.Node {
	t.Helper()
	nodes, err := s.Get(context.Background(), path)
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	return nodes[0]
}

func isDone(s registry.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// background runs call and returns what it failed with.
func background(call func() error) <-chan error {
	failure := make(chan error, 1)
	go func() { failure <- call() }()
	return failure
}
