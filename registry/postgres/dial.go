package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A dialer keeps what it has connected, so that it can be cut: the client library asks the server politely to cancel
// what nobody waits for any more, and a server that does not answer would hold Close up.
type dialer struct {
	net net.Dialer

	mu     sync.Mutex
	conns  map[*line]struct{}
	closed bool
}

// A line is one connection to a server.
type line struct {
	net.Conn

	dialer *dialer
}

func newDialer(timeout time.Duration) *dialer {
	return &dialer{net: net.Dialer{Timeout: timeout}, conns: map[*line]struct{}{}}
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l := &line{Conn: conn, dialer: d}
	d.conns[l] = struct{}{}
	return l, nil
}

// Close forgets the connection.
func (l *line) Close() error {
	l.dialer.mu.Lock()
	delete(l.dialer.conns, l)
	l.dialer.mu.Unlock()
	return l.Conn.Close()
}

// cut breaks every connection, for good.
func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for l := range d.conns {
		_ = l.Conn.Close()
	}
}

// warned is where a connection keeps that the server has warned it.
const warned = "elasticron warned"

// connConfig is what all connections of a registry have in common.
func connConfig(c Config, d *dialer) (*pgx.ConnConfig, error) {
	var hosts, ports []string
	for _, addr := range c.Hosts {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	dsn := "host=" + quoted(strings.Join(hosts, ",")) + " port=" + quoted(strings.Join(ports, ",")) +
		" dbname=" + quoted(c.Database) + " sslmode=disable target_session_attrs=any"
	if c.Username != "" {
		dsn += " user=" + quoted(c.Username)
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the environment of PostgreSQL's clients (PG…) cannot be read: %w", err)
	}
	if c.Password != "" {
		cfg.Password = c.Password
	}
	if c.TLS != nil {
		cfg.TLSConfig = named(c, cfg.Host)
		for _, f := range cfg.Fallbacks {
			f.TLSConfig = named(c, f.Host)
		}
	}
	cfg.DialFunc, cfg.ConnectTimeout = d.dial, c.DialTimeout
	cfg.ValidateConnect = takesWrites
	// One round trip, and nothing that is prepared: a pooler may hand every statement to another server process.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.StatementCacheCapacity, cfg.DescriptionCacheCapacity = 0, 0
	cfg.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			conn.CustomData()[warned] = true
		}
	}
	return cfg, nil
}

// named is TLS with the host's name to be verified.
func named(c Config, host string) *tls.Config {
	t := c.TLS.Clone()
	if t.ServerName == "" {
		t.ServerName = host
	}
	return t
}

// takesWrites refuses a standby. Servers since version 14 say so by themselves.
func takesWrites(ctx context.Context, conn *pgconn.PgConn) error {
	if standby := conn.ParameterStatus("in_hot_standby"); standby == "off" {
		return nil
	}
	return pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn)
}

func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// newPool makes a pool of at most so many connections, which it makes when they are needed.
func newPool(ctx context.Context, conns int, conn *pgx.ConnConfig) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig = conn.Copy()
	cfg.MaxConns = int32(conns) //nolint:gosec // a handful
	// A connection that its server has closed is found without asking the server.
	cfg.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // Ping is a round trip, and what this does not see the request does
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}
