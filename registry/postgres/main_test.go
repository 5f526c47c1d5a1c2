package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

const sessionTimeout = harness.SessionTimeout

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	within     = harness.Within
	commit     = harness.Commit
	eventually = harness.Eventually
	follow     = harness.Follow
)

// start starts a server of the test's own.
func start(t testing.TB) *testbed.Postgres { return testbed.StartPostgres(t, pgserver.Options{}) }

// connect opens a registry on a client of its own.
func connect(t testing.TB, bed *testbed.Postgres, change ...func(*postgres.Config)) (registry.Registry, *testbed.PostgresClient) {
	t.Helper()
	client := bed.Client()
	cfg := postgres.Config{
		Hosts: client.Addrs(), Database: "postgres", Namespace: "test", Username: pgserver.User, SessionTimeout: sessionTimeout,
	}
	for _, c := range change {
		c(&cfg)
	}
	reg, err := postgres.Open(within(t, 20*time.Second), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	return reg, client
}

// open opens a session on a client of its own.
func open(t testing.TB, bed *testbed.Postgres, change ...func(*postgres.Config)) (registry.Session, *testbed.PostgresClient) {
	t.Helper()
	reg, client := connect(t, bed, change...)
	s, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	return s, client
}

// warnings are what Open has found.
func warnings(reg registry.Registry) []string {
	return reg.(interface{ Warnings() []string }).Warnings()
}

// ask runs a statement past all proxies and scans its one row.
func ask(t testing.TB, bed *testbed.Postgres, query string, into ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := bed.Connect(ctx, "postgres")
	require.NoError(t, err)
	defer conn.Close(ctx)
	require.NoError(t, conn.QueryRow(ctx, query).Scan(into...))
}
