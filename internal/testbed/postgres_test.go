package testbed_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
)

func TestStrandSilencesWhatIsThere(t *testing.T) {
	bed := testbed.StartPostgres(t, pgserver.Options{})
	client := bed.Client()
	host, port, err := net.SplitHostPort(client.Addrs()[0])
	require.NoError(t, err)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), "host="+host+" port="+port+" dbname=postgres sslmode=disable user="+pgserver.User)
		require.NoError(t, err)
		return conn
	}
	ask := func(conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := conn.Exec(ctx, "SELECT")
		return err
	}
	old := connect()
	require.NoError(t, ask(old))
	heal := client.Strand()
	late := connect()
	require.NoError(t, ask(late))
	require.ErrorIs(t, ask(old), context.DeadlineExceeded)
	require.Positive(t, client.Hits())
	heal()
	require.NoError(t, late.Close(t.Context()))
}
