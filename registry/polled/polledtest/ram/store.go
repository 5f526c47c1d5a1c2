package ram

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// A Database is what a Store keeps. The zero value is empty and ready.
type Database struct {
	mu       sync.Mutex
	tree     tree
	sessions map[string]polled.Session
	ears     map[*ear]struct{}
}

// Store opens the database.
func (db *Database) Store() *Store {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.sessions == nil {
		db.sessions = map[string]polled.Session{}
	}
	return &Store{db: db}
}

// A Store is one client of a Database.
type Store struct {
	db     *Database
	closed bool // guarded by the database
}

var _ polled.Store = (*Store)(nil)

// step runs an atomic step.
func (s *Store) step(ctx context.Context, run func(db *Database) error) error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	if s.closed {
		return fmt.Errorf("%w: store is closed", registry.ErrUnavailable)
	}
	return run(s.db)
}

// Begin implements polled.Store.
func (s *Store) Begin(ctx context.Context, session string, timeout time.Duration) error {
	return s.step(ctx, func(db *Database) error {
		db.sessions[session] = polled.Session{ID: session, Beat: 1, Timeout: timeout}
		return nil
	})
}

// Beat implements polled.Store.
func (s *Store) Beat(ctx context.Context, session string) (rev registry.Revision, err error) {
	err = s.step(ctx, func(db *Database) error {
		row, alive := db.sessions[session]
		if !alive {
			return registry.ErrSessionLost
		}
		row.Beat++
		db.sessions[session] = row
		rev = db.tree.revision
		return nil
	})
	return rev, err
}

// Sessions implements polled.Store.
func (s *Store) Sessions(ctx context.Context) (all []polled.Session, err error) {
	err = s.step(ctx, func(db *Database) error {
		all = slices.Collect(maps.Values(db.sessions))
		return nil
	})
	return all, err
}

// End implements polled.Store.
func (s *Store) End(ctx context.Context, session string, beat int64) error {
	return s.step(ctx, func(db *Database) error {
		if row, alive := db.sessions[session]; alive && (beat == polled.AnyBeat || beat == row.Beat) {
			delete(db.sessions, session)
			if gone := db.tree.dropOwned(session); len(gone) > 0 {
				db.ring(gone)
			}
		}
		return nil
	})
}

// Read implements polled.Store.
func (s *Store) Read(ctx context.Context, paths, dirs []string) (nodes []polled.Node, err error) {
	err = s.step(ctx, func(db *Database) error {
		for _, p := range paths {
			if n, exists := db.tree.get(p); exists {
				nodes = append(nodes, n)
			}
		}
		for _, dir := range dirs {
			nodes = slices.AppendSeq(nodes, maps.Values(db.tree.dirs[dir]))
		}
		for i := range nodes {
			nodes[i].Value = slices.Clone(nodes[i].Value)
		}
		return nil
	})
	return nodes, err
}

// Commit implements polled.Store.
func (s *Store) Commit(ctx context.Context, session string, ops []registry.Op) (rev registry.Revision, err error) {
	err = s.step(ctx, func(db *Database) error {
		if _, alive := db.sessions[session]; !alive && session != polled.NoSession {
			return registry.ErrSessionLost
		}
		if err := db.tree.commit(session, ops); err != nil {
			return err
		}
		var wrote []string
		for _, op := range ops {
			if op.Kind != registry.OpCheck {
				wrote = append(wrote, op.Path)
			}
		}
		rev = db.tree.revision
		db.ring(wrote)
		return nil
	})
	return rev, err
}

// Close closes this store; the database stays.
func (s *Store) Close() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.closed {
		return errors.New("store is closed twice")
	}
	s.closed = true
	return nil
}
