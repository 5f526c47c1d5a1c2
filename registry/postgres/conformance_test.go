package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/postgres"
)

func TestConformance(t *testing.T) {
	prove(t, func(tb testing.TB, bed *testbed.Postgres) string {
		tb.Helper()
		return bed.Addr()
	})
}

// prove runs the suite on a server that clients reach at an address.
func prove(t *testing.T, reach func(testing.TB, *testbed.Postgres) (addr string)) {
	var served string
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		bed := testbed.StartPostgres(tb, pgserver.Options{})
		version, err := bed.Version(within(tb, 10*time.Second))
		require.NoError(tb, err)
		served = "served by PostgreSQL " + version
		addr := reach(tb, bed)
		return harness.New(harness.Config{
			Bed: bed, Timeout: harness.SuiteTimeout, Grace: harness.SuiteTimeout,
			Lacks: map[string]string{"Deny": "rights are those of tables, not of nodes; open_test.go tries a role without them"},
			Connect: func(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) (registry.Registry, harness.Way) {
				tb.Helper()
				client := bed.ClientAt(addr)
				reg, err := postgres.Open(ctx, postgres.Config{
					Hosts: client.Addrs(), Database: "postgres", Namespace: namespace, Username: pgserver.User, SessionTimeout: timeout,
				})
				require.NoError(tb, err)
				return reg, client
			},
			Expire: func(id string) error {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				return bed.Exec(ctx, "postgres", fmt.Sprintf("SELECT elasticron.finish('%s', -1)", id))
			},
		})
	})
	t.Log(served)
}
