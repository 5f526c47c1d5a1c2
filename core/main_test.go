package core_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
)

// atOnce is how many tests run side by side: those on real services mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce) // a number
	}
	goleak.VerifyTestMain(testbed.ClosingShared(m))
}
