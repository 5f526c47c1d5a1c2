package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/elasticron/elasticron/registry"
)

// Both want a list: one argument for any number of paths, which is faster than IN.
const (
	selectNodes    = "SELECT nodes.path, nodes.value, version, created, modified, owner FROM json_each(?) AS asked CROSS JOIN nodes ON nodes.path = asked.value"
	selectChildren = "SELECT nodes.path, nodes.value, version, created, modified, owner FROM json_each(?) AS asked CROSS JOIN nodes ON nodes.parent = asked.value"
)

func list(paths []string) string {
	text, err := json.Marshal(paths)
	if err != nil {
		panic(err) // strings cannot fail
	}
	return string(text)
}

func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	for _, p := range paths {
		if err := registry.ValidatePath(p); err != nil {
			return nil, err
		}
	}
	found, err := s.read(ctx, selectNodes, list(paths))
	byPath := make(map[string]registry.Node, len(found))
	for _, n := range found {
		byPath[n.Path] = n
	}
	nodes := make([]registry.Node, len(paths))
	for i, p := range paths {
		nodes[i] = byPath[p]
		nodes[i].Path, nodes[i].Value = p, slices.Clone(nodes[i].Value) // p may stand twice
	}
	return nodes, err
}

func (s *session) Children(ctx context.Context, dir string) ([]string, error) {
	if err := registry.ValidatePath(dir); err != nil {
		return nil, err
	}
	found, err := s.read(ctx, "SELECT path, x'', 0, 0, 0, '' FROM nodes WHERE path = ?1 OR parent = ?1 ORDER BY path", dir)
	if err == nil && len(found) == 0 { // not even dir itself, which comes first
		err = fmt.Errorf("sqlite: children of %s: %w", dir, registry.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found)-1)
	for i, n := range found[1:] {
		names[i] = path.Base(n.Path)
	}
	return names, nil
}

// Sync has nothing to do: every read sees every commit that was answered.
func (s *session) Sync(ctx context.Context) error { return cmp.Or(s.Err(), ctx.Err()) }

// Limits are less than SQLite's, which nobody needs.
func (s *session) Limits() registry.Limits { return registry.PortableLimits() }

// read asks for nodes until it has an answer, or ctx or the session ends.
func (s *session) read(ctx context.Context, query string, args ...any) (nodes []registry.Node, err error) {
	ctx, cancel := both(ctx, s.ctx)
	defer cancel()
	if err = cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, err
	}
	err = retry(ctx, func() error {
		nodes = nil // of an attempt that broke off
		return s.registry.each(ctx, func(rows *sql.Rows) error {
			var n registry.Node
			var owner string
			err := rows.Scan(&n.Path, &n.Value, &n.Version, &n.Created, &n.Modified, &owner)
			n.Ephemeral, n.Owned = owner != "", owner == s.id
			nodes = append(nodes, n)
			return err
		}, query, args...)
	})
	if err != nil {
		return nil, cmp.Or(s.Err(), fmt.Errorf("sqlite: read: %w", err))
	}
	return nodes, nil
}

// each queries and hands over each row.
func (r *Registry) each(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Commit sends one statement, once.
func (s *session) Commit(ctx context.Context, ops ...registry.Op) (rev registry.Revision, err error) {
	if err := cmp.Or(s.Limits().Validate(ops), s.Err(), ctx.Err()); err != nil {
		return 0, err
	}
	asking, cancel := both(ctx, s.ctx)
	defer cancel()
	conn, err := s.registry.db.Conn(asking)
	if err != nil { // nothing was sent
		return 0, cmp.Or(s.Err(), ctx.Err(), fmt.Errorf("sqlite: commit: %w: %w", registry.ErrUnavailable, err))
	}
	defer conn.Close()
	var args []any
	for i, op := range ops {
		args = append(args, i, s.id, op.Kind, op.Path, path.Dir(op.Path), op.Value, op.Version)
	}
	err = conn.QueryRowContext(asking, "INSERT INTO ops VALUES (?,?,?,?,?,?,?)"+strings.Repeat(",(?,?,?,?,?,?,?)", len(ops)-1)+
		" RETURNING (SELECT revision FROM clock)", args...).Scan(&rev)
	wakeFor(ops) // an uncertain commit too may have changed something
	return rev, s.outcome(ops, err)
}

// outcome says what an error of the driver means for a commit that was sent.
func (s *session) outcome(ops []registry.Op, err error) error {
	i, reason := refusal(err)
	switch known := class(err); {
	case err == nil:
		return nil
	case errors.Is(reason, registry.ErrSessionLost):
		s.end(errExpired)
		return s.Err()
	case reason != nil:
		return &registry.CommitError{Index: i, Op: ops[i], Err: fmt.Errorf("%w: %w", reason, err)}
	case known != nil:
		return fmt.Errorf("sqlite: commit: %w: %w", known, err)
	}
	return fmt.Errorf("sqlite: commit: %w: %w", registry.ErrUncertain, cmp.Or(s.Err(), err))
}

// refusals are the reasons that the trigger of schema.sql gives.
var refusals = map[string]error{
	"session": registry.ErrSessionLost, "exists": registry.ErrExists, "no parent": registry.ErrNoParent,
	"ephemeral parent": registry.ErrEphemeralParent, "not found": registry.ErrNotFound,
	"version": registry.ErrVersion, "not empty": registry.ErrNotEmpty,
}

var refused = regexp.MustCompile(`refused (\d+): ([a-z ]+[a-z])`)

func refusal(err error) (index int, reason error) {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok || e.Code() != sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		return 0, nil
	}
	if parts := refused.FindStringSubmatch(e.Error()); parts != nil {
		index, _ = strconv.Atoi(parts[1])
		reason = refusals[parts[2]]
	}
	return index, reason
}

// class names an error after which certainly nothing was applied; nil for others.
func class(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL:
			return registry.ErrUnavailable
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			return registry.ErrDenied
		}
	}
	return nil
}
