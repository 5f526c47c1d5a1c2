package main

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// A second process goes on where the first was stopped, on etcd: each order is billed once.
func TestDataflow(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{})
	require.NoError(t, err)
	defer srv.Close()
	var mu sync.Mutex
	var billed []int
	for _, until := range []int{30, orders} {
		ctx, stop := context.WithCancel(t.Context())
		require.NoError(t, run(ctx, "etcd://"+srv.Endpoint()+"/dataflow", func(s core.Shard, some []int) {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range some {
				require.Equal(t, s.Item, n%s.Total)
			}
			if billed = append(billed, some...); len(billed) >= until {
				stop()
			}
		}))
		stop()
		mu.Lock()
		require.GreaterOrEqual(t, len(billed), until)
		mu.Unlock()
	}
	slices.Sort(billed)
	require.Len(t, billed, orders)
	require.Len(t, slices.Compact(billed), orders)
}
