package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/testbed/pgserver"
)

// PostgresRequiredEnv makes tests of PostgreSQL fail, and not be skipped, where it is not
// installed.
const PostgresRequiredEnv = "ELASTICRON_POSTGRES_REQUIRED"

// postgresTime bounds the start of a server.
const postgresTime = 60 * time.Second

// A Postgres is one PostgreSQL server, with a proxy for each client.
type Postgres struct {
	*pgserver.Server

	tb        testing.TB
	databases atomic.Int32

	mu      sync.Mutex
	clients []*PostgresClient
	pauses  map[*pause]bool
	closed  bool
}

// StartPostgres starts a server that ends with the test. Where PostgreSQL is not installed the
// test is skipped, or fails if ELASTICRON_POSTGRES_REQUIRED is 1.
func StartPostgres(tb testing.TB, o pgserver.Options) *Postgres {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), postgresTime)
	defer cancel()
	srv, err := pgserver.Start(ctx, o)
	if err != nil {
		withoutPostgres(tb, err)
	}
	p := &Postgres{Server: srv, tb: tb, pauses: map[*pause]bool{}}
	tb.Cleanup(p.Close)
	return p
}

// StartBouncer starts a pgbouncer before the server; it ends with the test. Without the program it
// does as StartPostgres.
func (p *Postgres) StartBouncer(tb testing.TB, mode string) *pgserver.Bouncer {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), postgresTime)
	defer cancel()
	b, err := pgserver.StartBouncer(ctx, p.Server, mode)
	if err != nil {
		withoutPostgres(tb, err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("testbed: %v", err)
		}
	})
	return b
}

func withoutPostgres(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv(PostgresRequiredEnv) == "1" || !errors.Is(err, pgserver.ErrAbsent) {
		tb.Fatalf("testbed: PostgreSQL does not run: %v", err)
	}
	text := fmt.Sprintf("\n!!! PostgreSQL did not run: the tests that need it are SKIPPED: %v.\n"+
		"!!! Install Debian's packages postgresql and pgbouncer; %s=1 makes them fail instead.", err, PostgresRequiredEnv)
	announce(text)
	tb.Skip(text)
}

// Database makes an empty database and returns its name.
func (p *Postgres) Database(tb testing.TB) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	name := fmt.Sprint("registry", p.databases.Add(1))
	if err := p.Exec(ctx, "postgres", "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("testbed: %v", err)
	}
	return name
}

// Members is the number of servers.
func (p *Postgres) Members() int { return 1 }

// Client makes the way of one more client. It ends with the server.
func (p *Postgres) Client() *PostgresClient { return p.ClientAt(p.Addr()) }

// ClientAt is Client for one who reaches the server at another address: through pgbouncer.
func (p *Postgres) ClientAt(addr string) *PostgresClient {
	p.tb.Helper()
	proxy, err := NewProxy(addr)
	if err != nil {
		p.tb.Fatalf("testbed: %v", err)
	}
	c := &PostgresClient{ways: ways{proxies: []*Proxy{proxy}}}
	proxy.setInspect(func(l *link) inspector { return newPostgresMessages(c, l) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for pause := range p.pauses {
		pause.heals = append(pause.heals, c.Hold())
	}
	p.clients = append(p.clients, c)
	return c
}

// Pause holds everything between all clients and the server; nothing is lost.
func (p *Postgres) Pause() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := &pause{}
	for _, c := range p.clients {
		held.heals = append(held.heals, c.Hold())
	}
	p.pauses[held] = true
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pauses, held)
		for _, heal := range held.heals {
			heal()
		}
	})
}

// Restart kills the server and starts it again on its data. Its clients' connections end, also those
// that a blackhole would keep open.
func (p *Postgres) Restart() error {
	p.Kill()
	p.mu.Lock()
	clients := slices.Clone(p.clients)
	p.mu.Unlock()
	for _, c := range clients {
		c.Drop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), postgresTime)
	defer cancel()
	return p.Server.Restart(ctx)
}

// Leader is the one server.
func (p *Postgres) Leader() (int, error) { return 0, nil }

// LoseLeader cannot be: there is one server.
func (p *Postgres) LoseLeader() error { return errors.New("testbed: one server has no leader to lose") }

// Close stops everything. It is idempotent; the test's end calls it.
func (p *Postgres) Close() {
	p.mu.Lock()
	closed, clients := p.closed, p.clients
	p.closed = true
	p.mu.Unlock()
	if closed {
		return
	}
	for _, c := range clients {
		c.Close()
	}
	if err := p.Server.Close(); err != nil {
		p.tb.Errorf("testbed: %v", err)
	}
}
