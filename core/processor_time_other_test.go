//go:build !unix

package core_test

import (
	"testing"
	"time"
)

// processorTime ends a benchmark that measures what nobody says here.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	b.Fatal("the processor time of a process is measured on Unix")
	return 0
}
