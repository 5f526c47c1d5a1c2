package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// format is that of schema.sql.
const format = 1

//go:embed schema.sql
var schema string

// Open connects to the database, makes the schema that it lacks, and finds out whether the server
// keeps what the contract asks for. What it cannot keep is an error or, where nothing is lost yet,
// one of the registry's Warnings. ctx and Config.DialTimeout bound it.
func Open(ctx context.Context, cfg Config) (registry.Registry, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s, warnings, err := open(ctx, cfg)
	if err != nil {
		if !errors.Is(err, registry.ErrDenied) && !errors.Is(err, registry.ErrInvalid) && !errors.Is(err, registry.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", registry.ErrUnavailable, err) // its time is over, or the connection broke
		}
		return nil, fmt.Errorf("postgres: open: %w", flat{err})
	}
	kit := polled.Config{
		Name: "postgres", Namespace: cfg.Namespace, SessionTimeout: cfg.SessionTimeout,
		MaxInFlight: cfg.MaxConns - 1, Warnings: warnings.texts,
	}
	if warnings.deaf {
		kit.Data = strings.Join(cfg.Hosts, ",") + "/" + cfg.Database
		return polled.New(s, kit)
	}
	return polled.New(&bell{s}, kit)
}

// warnings are what Open has found.
type warnings struct {
	texts []string
	deaf  bool // nothing is heard through a pooler
}

// How long a connection is kept that nobody uses.
const (
	idleTime      = 30 * time.Minute
	spareIdleTime = 10 * time.Second // and half a session's timeout at least
)

func open(ctx context.Context, cfg Config) (*store, warnings, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	s := &store{cfg: cfg, dialer: newDialer(cfg.DialTimeout)}
	var err error
	if s.conn, err = connConfig(cfg, s.dialer); err == nil {
		s.pool, err = newPool(ctx, cfg.MaxConns-1, idleTime, s.conn)
	}
	if err == nil {
		s.pulse, err = newPool(ctx, 1, idleTime, s.conn)
	}
	if err == nil {
		s.spare, err = newPool(ctx, 1, max(cfg.SessionTimeout/2, spareIdleTime), s.conn)
	}
	if err != nil {
		return nil, warnings{}, fmt.Errorf("%w: %w", registry.ErrInvalid, err)
	}
	w, err := s.examine(ctx)
	if err != nil {
		return nil, w, errors.Join(err, s.Close())
	}
	return s, w, nil
}

// examine makes what is missing, and finds out what cannot be kept.
func (s *store) examine(ctx context.Context) (w warnings, err error) {
	if err := s.prepare(ctx); err != nil {
		return w, err
	}
	if w.texts, err = s.standbys(ctx); err != nil {
		return w, err
	}
	hears, err := s.hears(ctx)
	if w.deaf = err == nil && !hears; w.deaf {
		w.texts = append(w.texts, "notifications do not come through, as behind pgbouncer in transaction mode: the database is polled, "+
			"and what others write is seen up to half a second later; connect to the server itself, or in session mode")
	}
	return w, err
}

// prepare checks the settings that everything depends on, and makes the schema.
func (s *store) prepare(ctx context.Context) error {
	var encoding, isolation string
	var exists bool
	err := ask(ctx, s.pool, func(row pgx.Rows) error { return row.Scan(&encoding, &isolation, &exists) },
		`SELECT current_setting('server_encoding'), current_setting('default_transaction_isolation'),
			`+made)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s; make one with ENCODING 'UTF8'", registry.ErrInvalid, encoding)
	case isolation != "read committed":
		return fmt.Errorf("%w: default_transaction_isolation is %q; set it to 'read committed' for this role or database", registry.ErrInvalid, isolation)
	}
	if !exists {
		if err := s.make(ctx); err != nil {
			return fmt.Errorf("make the schema elasticron: %w", err)
		}
	}
	var found int
	err = ask(ctx, s.pool, func(row pgx.Rows) error { return row.Scan(&found) }, "SELECT format FROM elasticron.clock")
	if err == nil && found != format {
		err = fmt.Errorf("%w: the schema elasticron has format %d, and this version of Elasticron knows %d; use a version that knows it, or another database",
			registry.ErrInvalid, found, format)
	}
	return err
}

// made asks whether there is a schema. What a function like to_regclass says may be old.
const made = "EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'elasticron' AND tablename = 'clock')"

// makeLock keeps others away who open the same database for the first time.
const makeLock = 0x656c6173746963

// make makes the schema, unless somebody else has done so meanwhile.
func (s *store) make(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock("+patiently+"$1::bigint END)", int64(makeLock)); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, "SELECT "+made).Scan(&exists); err != nil || exists {
			return err
		}
		_, err := tx.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	return classify(err)
}

// standbys warns of those whose promotion would take back what was answered.
func (s *store) standbys(ctx context.Context) (texts []string, err error) {
	var asynchronous int
	err = ask(ctx, s.pool, func(row pgx.Rows) error { return row.Scan(&asynchronous) },
		`SELECT count(*) FROM pg_stat_replication WHERE coalesce(application_name, '') <> 'pg_basebackup'
			AND (current_setting('synchronous_standby_names') = '' OR sync_state = 'async')`)
	if asynchronous > 0 {
		texts = append(texts, fmt.Sprintf("%d standby servers are asynchronous: promoting one takes back commits that were answered, so that an item may "+
			"run twice or never; promote synchronous ones alone (synchronous_standby_names)", asynchronous))
	}
	return texts, err
}

// hears reports whether notifications reach a connection of ours. Behind a pooler that is
// tried: one that gives server processes to transactions drops what comes between them.
func (s *store) hears(ctx context.Context) (bool, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer s.hangUp(conn)
	var process uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&process); err != nil {
		return false, classify(err)
	}
	if process == conn.PgConn().PID() {
		return true, nil // the server's own process answers
	}
	return s.hearsThrough(ctx, conn)
}

// connect makes a connection that is in no pool.
func (s *store) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := s.conn.Copy()
	err := choose(ctx, cfg)
	if err == nil {
		var conn *pgx.Conn
		if conn, err = pgx.ConnectConfig(ctx, cfg); err == nil {
			return conn, nil
		}
	}
	return nil, unreached(ctx, err)
}

// hangUp closes a connection that listened. The client library has more to say to a server that does
// not answer; Close cuts that short.
func (s *store) hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	_ = conn.Close(ctx)
}
