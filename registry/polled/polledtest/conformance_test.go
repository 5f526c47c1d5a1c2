package polledtest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The kit alone, on a store that has nothing of its own to get wrong.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		db := &ram.Database{}
		return polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return db.Store(), nil })
	})
}
