package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

func TestManyOpenANewDatabaseAtOnce(t *testing.T) {
	bed := start(t)
	database := bed.Database(t)
	var opening sync.WaitGroup
	for i := range 10 {
		opening.Go(func() {
			reg, err := postgres.Open(t.Context(), postgres.Config{
				Hosts: []string{bed.Addr()}, Database: database, Namespace: fmt.Sprint("ns", i), Username: pgserver.User,
				DialTimeout: 30 * time.Second,
			})
			if err != nil {
				t.Error(err)
				return
			}
			if err := reg.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
}

// Namespaces share a database, and databases share nothing.
func TestSeveralNamespacesInOneDatabase(t *testing.T) {
	bed := start(t)
	a, _ := open(t, bed, func(c *postgres.Config) { c.Namespace = "a" })
	b, _ := open(t, bed, func(c *postgres.Config) { c.Namespace = "team/b" })
	other := bed.Database(t)
	c, _ := open(t, bed, func(c *postgres.Config) { c.Database = other })
	commit(t, a, registry.Create("/a", nil))
	commit(t, b, registry.Create("/team", nil))
	names, err := b.Children(t.Context(), "/")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "team"}, names)
	names, err = c.Children(t.Context(), "/")
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestOpenRefuses(t *testing.T) {
	t.Setenv("EMPTY", "")
	for rawURL, want := range map[string]string{
		"postgres:///db/shop":                         "no host; give the address of the server",
		"postgres://h":                                "no database; name one",
		"postgres://h/db":                             "no namespace; name one, for example postgres://host:5432/database/shop",
		"postgres://h/db/elasticron":                  `namespace "elasticron" is reserved`,
		"postgres://h/db/elasticron/x":                "is reserved",
		"postgres://h/db/a//b":                        "cannot be a path",
		"postgres://h/db/shop?nothing=1":              `unknown setting "nothing"`,
		"postgres://h/db/shop?password=hunter2":       "a password does not belong in a URL; use password-file or ELASTICRON_POSTGRES_PASSWORD",
		"postgres://h/db/shop?password-env=EMPTY":     "environment variable",
		"postgres://jo:hunter2@h/db/shop":             "holds a user or password",
		"postgres://h/db/shop?max-conns=1":            "1 connections are too few; give at least 2",
		"postgres://h/db/shop?session-timeout=100ms":  "session timeout 100ms is too short",
		"postgres://h/db/shop?session-timeout=1h":     "session timeout 1h0m0s is too long", // finding C 21
		"postgres://h:99999/db/shop":                  "is not host:port with a port of 1 to 65535",
		"postgres://h/db/shop?cert=c":                 "a certificate needs its key",
		"postgres://h/db/shop?password-file=/missing": "a password without a username",
		"postgres://::1/db/shop":                      "write an IPv6 address in brackets",
	} {
		_, err := registry.Open(t.Context(), rawURL)
		require.ErrorIs(t, err, registry.ErrInvalid, rawURL)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// What nobody answers at is unavailable, soon.
func TestOpenIsBounded(t *testing.T) {
	_, err := registry.Open(t.Context(), "postgres://127.0.0.1:1,127.0.0.1:2/db/shop?dial-timeout=300ms")
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.NotContains(t, err.Error(), "\n") // finding C 21
	require.Contains(t, err.Error(), "; 127.0.0.1:2")
	bed := start(t)
	client := bed.Client()
	defer client.Hold()()
	began := time.Now()
	_, err = registry.Open(t.Context(), "postgres://"+client.Addrs()[0]+"/db/shop?dial-timeout=300ms")
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestWhatADatabaseMustBe(t *testing.T) {
	bed := start(t)
	ctx := within(t, 60*time.Second)
	require.NoError(t, bed.Exec(ctx, "postgres", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0"))
	require.NoError(t, bed.Exec(ctx, "postgres", "CREATE DATABASE strict"))
	require.NoError(t, bed.Exec(ctx, "postgres", "ALTER DATABASE strict SET default_transaction_isolation = 'serializable'"))
	newer := bed.Database(t)
	open(t, bed, func(c *postgres.Config) { c.Database = newer })
	require.NoError(t, bed.Exec(ctx, newer, "UPDATE elasticron.clock SET format = 2"))
	for database, want := range map[string]string{
		"ascii":   "the database's encoding is SQL_ASCII; make one with ENCODING 'UTF8'",
		"strict":  `default_transaction_isolation is "serializable"; set it to 'read committed' for this role or database`,
		newer:     "the schema elasticron has format 2, and this version of Elasticron knows 1",
		"missing": `database "missing" does not exist`,
	} {
		_, err := registry.Open(ctx, "postgres://"+bed.Addr()+"/"+database+"/shop?username="+pgserver.User)
		require.ErrorIs(t, err, registry.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// Passwords come from files and the environment, and stand in no error.
func TestLogin(t *testing.T) {
	bed := start(t)
	require.NoError(t, bed.Exec(within(t, 10*time.Second), "postgres", "CREATE ROLE "+pgserver.LoginUser+" LOGIN SUPERUSER PASSWORD 'hunter2'"))
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("hunter2\n"), 0o600))
	base := "postgres://" + bed.Addr() + "/postgres/shop?username=" + pgserver.LoginUser
	reg, err := registry.Open(t.Context(), base+"&password-file="+file)
	require.NoError(t, err)
	require.NoError(t, reg.Close())
	t.Setenv("WORD", "hunter2")
	reg, err = registry.Open(t.Context(), base+"&password-env=WORD")
	require.NoError(t, err)
	require.NoError(t, reg.Close())
	t.Setenv("ELASTICRON_POSTGRES_PASSWORD", "hunter3")
	_, err = registry.Open(t.Context(), base)
	require.ErrorIs(t, err, registry.ErrDenied)
	require.NotContains(t, err.Error(), "hunter3")
	_, isServers := errorAs[*pgconn.PgError](err)
	require.True(t, isServers)

	// What one server refuses is not decided while another, which may be the one that takes writes, is away.
	cfg := postgres.Config{
		Hosts: []string{"127.0.0.1:1", bed.Addr()}, Database: "postgres", Namespace: "shop",
		Username: pgserver.LoginUser, Password: "hunter3", DialTimeout: 5 * time.Second,
	}
	_, err = postgres.Open(t.Context(), cfg)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.NotErrorIs(t, err, registry.ErrDenied)
	require.ErrorContains(t, err, "password authentication failed")
	require.NotContains(t, err.Error(), "hunter3")
	cfg.Hosts[0] = bed.Client().Addrs()[0]
	_, err = postgres.Open(t.Context(), cfg)
	require.ErrorIs(t, err, registry.ErrDenied, "all refuse")
}

func TestARoleWithoutRights(t *testing.T) {
	bed := start(t)
	ctx := within(t, 60*time.Second)
	require.NoError(t, bed.Exec(ctx, "postgres", "CREATE ROLE guest LOGIN"))
	guest := func(c *postgres.Config) { c.Username = "guest" }
	cfg := postgres.Config{Hosts: []string{bed.Addr()}, Database: "postgres", Namespace: "shop", Username: "guest", SessionTimeout: sessionTimeout}
	_, err := postgres.Open(ctx, cfg)
	require.ErrorIs(t, err, registry.ErrDenied, "it may not make the schema")
	connect(t, bed)
	_, err = postgres.Open(ctx, cfg)
	require.ErrorIs(t, err, registry.ErrDenied, "it may not read it")

	require.NoError(t, bed.Exec(ctx, "postgres", "GRANT USAGE ON SCHEMA elasticron TO guest"))
	require.NoError(t, bed.Exec(ctx, "postgres", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA elasticron TO guest"))
	ses, _ := open(t, bed, guest)
	commit(t, ses, registry.Create("/a", nil))

	require.NoError(t, bed.Exec(ctx, "postgres", "REVOKE SELECT, INSERT, UPDATE, DELETE ON elasticron.nodes FROM guest"))
	_, err = ses.Get(ctx, "/a")
	require.ErrorIs(t, err, registry.ErrDenied)
	_, err = ses.Commit(ctx, registry.Create("/b", nil))
	require.ErrorIs(t, err, registry.ErrDenied)
	require.NoError(t, bed.Exec(ctx, "postgres", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA elasticron TO guest"))
	commit(t, ses, registry.Create("/b", nil))
}
