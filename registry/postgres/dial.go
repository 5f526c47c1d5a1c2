package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A dialer keeps what it has connected, so that it can be cut: the client library takes its time to say goodbye, and
// a server that does not answer would hold Close up.
type dialer struct {
	net   net.Dialer
	began time.Time

	mu     sync.Mutex
	conns  map[*line]struct{}
	doubts map[time.Time]*time.Timer // by since when connections may be dead
	closed bool
}

// deadAfter is how long a connection that may be dead is silent until it is cut: longer than the server waits for a lock.
const deadAfter = 6 * time.Second

// A line is one connection to a server.
type line struct {
	net.Conn

	dialer  *dialer
	heard   atomic.Int64 // when something came last, since dialer.began
	recalls bool         // what was asked last may be cancelled
}

func newDialer(timeout time.Duration) *dialer {
	return &dialer{
		net:    net.Dialer{Timeout: timeout},
		began:  time.Now(),
		conns:  map[*line]struct{}{},
		doubts: map[time.Time]*time.Timer{},
	}
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if network == recall("").Network() {
		return d.recall(ctx, addr)
	}
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
	l.hear()
	d.conns[l] = struct{}{}
	return l, nil
}

// A recall is where the client library connects to cancel what nobody waits for any more; "" is nowhere. A commit
// that waits for a synchronous standby would not be undone by that: it would be seen without the standby.
type recall string

func (recall) Network() string  { return "recall" }
func (r recall) String() string { return string(r) }

// RemoteAddr is asked for by who cancels, and by nobody else.
func (l *line) RemoteAddr() net.Addr {
	if !l.recalls {
		return recall("")
	}
	return recall(l.Conn.RemoteAddr().String())
}

// recall connects to cancel a statement, and soon gives up: meanwhile its connection still counts.
func (d *dialer) recall(ctx context.Context, addr string) (net.Conn, error) {
	if addr == "" {
		return nil, errors.New("what is under way is not cancelled")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := d.dial(ctx, "tcp", addr)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(patience))
	}
	return conn, err
}

// lineOf is the line below a connection.
func lineOf(conn *pgx.Conn) *line {
	below := conn.PgConn().Conn()
	if t, is := below.(*tls.Conn); is {
		below = t.NetConn()
	}
	l, _ := below.(*line) // dial makes nothing else
	return l
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.hear()
	}
	return n, err
}

func (l *line) hear() { l.heard.Store(int64(time.Since(l.dialer.began))) }

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
	for _, t := range d.doubts {
		t.Stop()
	}
}

// doubt breaks the connections on which nothing has come since, nor comes in the time that a slow answer takes.
func (d *dialer) doubt(since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.doubts[since] = time.AfterFunc(deadAfter-time.Since(since), func() { d.cutSilent(since) })
	}
}

func (d *dialer) cutSilent(since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.doubts, since)
	for l := range d.conns {
		if l.heard.Load() < int64(since.Sub(d.began)) {
			_ = l.Conn.Close()
		}
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

// newPool makes a pool of at most so many connections, which it makes when they are needed and keeps as long as they
// serve, but for those that are idle so long.
func newPool(ctx context.Context, conns int, idle time.Duration, conn *pgx.ConnConfig) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig = conn.Copy()
	cfg.MaxConns = int32(conns) //nolint:gosec // a handful
	cfg.MaxConnLifetime, cfg.MaxConnIdleTime, cfg.BeforeConnect = 0, idle, choose
	// A connection that its server has closed is found without asking the server.
	cfg.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // Ping is a round trip, and what this does not see the request does
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}
