package harness

import (
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/stall"
)

// Stalls tells the longest time for which this process has stood still, from now on: see package stall.
func Stalls(t testing.TB) (longest func() time.Duration) {
	t.Helper()
	longest, end := stall.Watch()
	t.Cleanup(end)
	return longest
}
