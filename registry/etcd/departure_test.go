package etcd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDepartureIsWhenTheLastAttemptWasMade(t *testing.T) {
	d := new(departure)
	require.False(t, d.sent())
	require.Zero(t, d.at())
	require.Len(t, d.options(), len(callOptions)+1)
	for range 2 {
		before := time.Now()
		_, err := d.GetRequestMetadata(t.Context())
		require.NoError(t, err)
		require.True(t, d.sent())
		require.False(t, d.at().Before(before))
	}
}
