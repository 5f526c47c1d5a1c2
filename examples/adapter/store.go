package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

//go:embed schema.sql
var schema string

// store is one database. Every request is one statement, and so atomic.
type store struct{ db *sql.DB }

// NewStore returns the store in db, which becomes its own: it is closed with it, or
// when NewStore fails. Tables that db lacks are made.
func NewStore(ctx context.Context, db *sql.DB) (polled.Store, error) {
	db.SetMaxOpenConns(1) // writers take turns, and wait here for theirs
	s := &store{db}
	if err := s.exec(ctx, schema); err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", errors.Join(err, db.Close()))
	}
	return s, nil
}

func (s *store) Begin(ctx context.Context, session string, timeout time.Duration) error {
	return s.exec(ctx, "INSERT INTO sessions (id, timeout) VALUES (?, ?)", session, int64(timeout))
}

func (s *store) Beat(ctx context.Context, session string) (rev registry.Revision, err error) {
	err = s.query(ctx, func(row *sql.Rows) error { return row.Scan(&rev) },
		"UPDATE sessions SET beat = beat + 1 WHERE id = ? RETURNING (SELECT revision FROM clock)", session)
	if err == nil && rev == 0 { // no row
		err = registry.ErrSessionLost
	}
	return rev, err
}

func (s *store) Sessions(ctx context.Context) (all []polled.Session, err error) {
	err = s.query(ctx, func(row *sql.Rows) error {
		var one polled.Session
		err := row.Scan(&one.ID, &one.Beat, &one.Timeout)
		all = append(all, one)
		return err
	}, "SELECT id, beat, timeout FROM sessions")
	return all, err
}

// End leaves the nodes to a trigger.
func (s *store) End(ctx context.Context, session string, beat int64) error {
	return s.exec(ctx, "DELETE FROM sessions WHERE id = ? AND ? IN (beat, -1)", session, beat)
}

func (s *store) Read(ctx context.Context, paths, dirs []string) (nodes []polled.Node, err error) {
	asked, err := json.Marshal([][]string{paths, dirs}) // one argument for any number of paths
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, func(row *sql.Rows) error {
		var n polled.Node
		err := row.Scan(&n.Path, &n.Value, &n.Version, &n.Created, &n.Modified, &n.Owner)
		nodes = append(nodes, n)
		return err
	}, `SELECT path, value, version, created, modified, owner FROM nodes
		WHERE path IN (SELECT value FROM json_each(?1, '$[0]')) OR parent IN (SELECT value FROM json_each(?1, '$[1]'))`, string(asked))
	return nodes, err
}

// Commit is one INSERT, whose trigger holds the rules of the tree.
func (s *store) Commit(ctx context.Context, session string, ops []registry.Op) (rev registry.Revision, err error) {
	var args []any
	for i, op := range ops {
		args = append(args, i, session, op.Kind, op.Path, path.Dir(op.Path), op.Value, op.Version)
	}
	err = s.query(ctx, func(row *sql.Rows) error { return row.Scan(&rev) },
		"INSERT INTO ops VALUES (?,?,?,?,?,?,?)"+strings.Repeat(",(?,?,?,?,?,?,?)", len(ops)-1)+
			" RETURNING (SELECT revision FROM clock)", args...)
	return rev, refusal(err)
}

func (s *store) Close() error { return s.db.Close() }

func (s *store) exec(ctx context.Context, query string, args ...any) error {
	return s.query(ctx, func(*sql.Rows) error { return nil }, query, args...)
}

// query hands over each row of the answer.
func (s *store) query(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	conn, err := s.db.Conn(ctx)
	if err != nil { // nothing was sent
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	defer conn.Close()
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return classify(rows.Err())
}

// classify marks the errors after which certainly nothing was applied.
func classify(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL:
			return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			return fmt.Errorf("%w: %w", registry.ErrDenied, err)
		}
	}
	return err
}

// refused is how the trigger of schema.sql speaks.
var refused = regexp.MustCompile(`refused (\d+): ([a-z ]+[a-z])`)

var reasons = map[string]error{
	"session": registry.ErrSessionLost, "exists": registry.ErrExists, "no parent": registry.ErrNoParent,
	"ephemeral parent": registry.ErrEphemeralParent, "not found": registry.ErrNotFound,
	"version": registry.ErrVersion, "not empty": registry.ErrNotEmpty,
}

// refusal translates what the trigger raised.
func refusal(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok || e.Code() != sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		return err
	}
	parts := refused.FindStringSubmatch(e.Error())
	if parts == nil || reasons[parts[2]] == nil {
		return err
	}
	err = fmt.Errorf("%w: %w", reasons[parts[2]], err)
	if errors.Is(err, registry.ErrSessionLost) {
		return err
	}
	index, _ := strconv.Atoi(parts[1])
	return &registry.CommitError{Index: index, Err: err}
}
