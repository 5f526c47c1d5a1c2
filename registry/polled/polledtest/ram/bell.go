package ram

import (
	"context"

	"github.com/elasticron/elasticron/registry/polled"
)

// A Bell is a Store that tells what happens in its Database.
type Bell struct{ *Store }

var _ polled.Bell = Bell{}

// Bell opens the database.
func (db *Database) Bell() Bell { return Bell{db.Store()} }

// An ear is one Listen.
type ear struct {
	steps []polled.Step // that it was not told yet; guarded by the database
	more  chan struct{} // has a token while there are some
}

// Listen implements polled.Bell.
func (b Bell) Listen(ctx context.Context, heard func(polled.Step)) error {
	e := &ear{more: make(chan struct{}, 1)}
	if err := b.step(ctx, func(db *Database) error { db.listens(e); return nil }); err != nil {
		return err
	}
	defer func() {
		b.db.mu.Lock()
		defer b.db.mu.Unlock()
		delete(b.db.ears, e)
	}()
	for {
		b.db.mu.Lock()
		steps := e.steps
		e.steps = nil
		b.db.mu.Unlock()
		for _, step := range steps {
			heard(step)
		}
		select {
		case <-e.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listens begins with what was before, which is unknown. The caller holds mu.
func (db *Database) listens(e *ear) {
	if db.ears == nil {
		db.ears = map[*ear]struct{}{}
	}
	db.ears[e] = struct{}{}
	e.steps = []polled.Step{{Revision: db.tree.revision, Unknown: true}}
}

// ring tells all who listen of the present revision. The caller holds mu.
func (db *Database) ring(paths []string) {
	for e := range db.ears {
		e.steps = append(e.steps, polled.Step{Revision: db.tree.revision, Paths: paths})
		select {
		case e.more <- struct{}{}:
		default:
		}
	}
}
