package admin_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testbed.ClosingShared(m))
}
