package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func openURL(t *testing.T, url string) registry.Registry {
	t.Helper()
	reg, err := registry.Open(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	return reg
}

func openSession(t *testing.T, reg registry.Registry) registry.Session {
	t.Helper()
	ses, err := reg.Open(context.Background())
	require.NoError(t, err)
	return ses
}

func TestURLsOfOneNameShareAServer(t *testing.T) {
	first, second, apart := openURL(t, "memory://one/shop"), openURL(t, "memory://one/team/shop/"), openURL(t, "memory://two/shop")
	require.Equal(t, "shop", first.Namespace())
	require.Equal(t, "team/shop", second.Namespace())
	commit(t, openSession(t, first), registry.Create("/n", nil))
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	require.True(t, get(t, openSession(t, second), "/n").Exists())
	require.False(t, get(t, openSession(t, apart), "/n").Exists())
	require.NoError(t, second.Close())
	require.False(t, get(t, openSession(t, openURL(t, "memory://one/shop")), "/n").Exists())
}

func TestURLsThatAreRefused(t *testing.T) {
	for _, url := range []string{
		"memory:", "memory:one/shop", "memory:///shop", "memory://one", "memory://one/", "memory://one/a//b",
		"memory://one/../b", "memory://one/shop?x=1", "memory://one/shop#x",
	} {
		_, err := registry.Open(context.Background(), url)
		require.ErrorIs(t, err, registry.ErrInvalid, url)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := registry.Open(ctx, "memory://one/shop")
	require.ErrorIs(t, err, context.Canceled)
}

func TestNamespaceOfAServersRegistry(t *testing.T) {
	srv := memory.NewServer(memory.Config{})
	require.Equal(t, "a/b", srv.Registry("/a/b/").Namespace())
	require.Panics(t, func() { srv.Registry("") })
	require.Panics(t, func() { srv.Registry("a//b") })
}

func TestLimits(t *testing.T) {
	_, ses := dial(t, memory.NewServer(memory.Config{}))
	require.Equal(t, registry.PortableLimits(), ses.Limits())
	want := registry.PortableLimits()
	want.MaxOps = 1000
	_, wide := dial(t, memory.NewServer(memory.Config{Limits: registry.Limits{MaxOps: 1000}}))
	require.Equal(t, want, wide.Limits())
	_, err := ses.Commit(context.Background())
	require.ErrorIs(t, err, registry.ErrInvalid)
	_, err = ses.Get(context.Background(), "no")
	require.ErrorIs(t, err, registry.ErrInvalid)
	_, err = ses.Children(context.Background(), "no")
	require.ErrorIs(t, err, registry.ErrInvalid)
}
