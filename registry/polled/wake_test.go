package polled

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type closable struct{ Store }

func (closable) Close() error { return nil }

// What stands in a package variable goes with the registries.
func TestClosedRegistriesAreNobodysPeers(t *testing.T) {
	cfg := Config{Name: "none", Namespace: "shop", Data: t.Name()}
	for range 2 {
		a, err := New(closable{}, cfg)
		require.NoError(t, err)
		b, err := New(closable{}, cfg)
		require.NoError(t, err)
		require.Len(t, peers.open, 2)
		require.NoError(t, a.Close())
		require.Len(t, peers.open, 1)
		require.NoError(t, b.Close())
		require.Empty(t, peers.open)
	}
	alone, err := New(closable{}, Config{Name: "none", Namespace: "shop"})
	require.NoError(t, err)
	require.NoError(t, alone.Close())
	require.Empty(t, peers.open)
}
