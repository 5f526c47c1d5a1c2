package settings

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The tests are in a zone with a name and summer time, wherever they run.
func TestMain(m *testing.M) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	time.Local = berlin //nolint:gosmopolitan // see above
	goleak.VerifyTestMain(m)
}
