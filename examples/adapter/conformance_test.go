package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sqlite "github.com/elasticron/elasticron/examples/adapter"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// That the machine's power may take the last commits along is no matter here.
const options = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"

func TestConformance(t *testing.T) {
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		file := filepath.Join(tb.TempDir(), "registry.db")
		return polledtest.New(tb, polled.Config{Name: "sqlite"}, func(ctx context.Context) (polled.Store, error) {
			db, err := sql.Open("sqlite", "file:"+file+options)
			require.NoError(tb, err)
			return sqlite.NewStore(ctx, db)
		})
	})
}
