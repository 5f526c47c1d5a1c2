package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		require.True(t, wait.For(ctx, 0))
		require.True(t, wait.For(ctx, -time.Second))
		require.Zero(t, time.Since(start))
		require.True(t, wait.For(ctx, 2*time.Second))
		require.Equal(t, 2*time.Second, time.Since(start))
		require.False(t, wait.For(ctx, 2*time.Second))
		require.Equal(t, 3*time.Second, time.Since(start))
		require.False(t, wait.For(ctx, 0))
	})
}
