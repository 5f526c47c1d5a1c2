package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

// pause is how long a registration that is made anew is waited for until the next look.
const pause = 50 * time.Millisecond

// ErrNotOwner: nothing was committed, since the run does not own its item any more.
var ErrNotOwner = errors.New("the item is not owned by this run any more")

// An Ownership is the hold of one run on its item.
type Ownership struct {
	// Store is the session under which the run began.
	Store registry.Store
	// Job are the paths.
	Job layout.Job
	// Epoch, Item and Due are those of the run.
	Epoch int
	Item  int
	Due   time.Time
	// Recorded: the ledger says that the run goes on.
	Recorded bool
	// Registration is the id of the present registration, "" while there is none.
	Registration func() string
	// Now is the wall clock.
	Now func() time.Time

	mu    sync.Mutex
	guard []registry.Op // what commits check; nil until the registry was asked
}

// known is what commits check.
func (o *Ownership) known() []registry.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.guard
}

func (o *Ownership) know(guard []registry.Op) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.guard = guard
}

// A Change is what shall be committed.
type Change struct {
	// Ops are its operations.
	Ops []registry.Op
	// Marker and Shows are those of settle.Commit, among Ops.
	Marker int
	Shows  func(registry.Node) bool
}

// Commit applies a change, or says that it was not and will not be. It goes on for as long as that
// is not known and ctx lasts, and calls hindered about once a second while it is held up. It is safe
// for concurrent use.
func (o *Ownership) Commit(ctx context.Context, c Change, hindered func(error)) error {
	for guard := o.known(); ; guard = nil {
		if guard == nil {
			var err error
			if guard, err = o.look(ctx, hindered); err != nil {
				o.know(nil)
				return err
			}
			o.know(guard)
		}
		checks := len(guard)
		// What a guard checks never comes back once it has passed: the names are those of one
		// registration. So a refusal there rules out all attempts.
		_, err := settle.Commit{
			Store: o.Store, Ops: slices.Concat(guard, c.Ops), Marker: checks + c.Marker, Shows: c.Shows,
		}.Run(ctx, hindered)
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case !refused || errors.Is(err, registry.ErrDenied):
			return err
		case failed.Index >= checks:
			return &registry.CommitError{Index: failed.Index - checks, Op: failed.Op, Err: failed.Err}
		}
	}
}

// look makes the guard, unless the item is another's.
func (o *Ownership) look(ctx context.Context, hindered func(error)) (guard []registry.Op, err error) {
	for {
		if id := o.Registration(); id != "" {
			guard, is, err := o.read(ctx, id, hindered)
			if err != nil {
				return nil, err
			}
			if guard != nil {
				return guard, o.holds(is)
			}
		}
		// The instance registers anew, or its session has ended, which ends ctx.
		if !settle.Pause(ctx, pause) {
			return nil, fmt.Errorf("%w: %w", ErrNotOwner, context.Cause(ctx))
		}
	}
}

// read reads what a registration says of the item, and makes the guard. There is none where that does
// not stand, or not yet.
func (o *Ownership) read(ctx context.Context, id string, hindered func(error)) (guard []registry.Op, is pages.Found, err error) {
	get := func(ctx context.Context, paths ...string) ([]registry.Node, error) {
		return settle.Get(ctx, o.Store, hindered, paths...)
	}
	stood, err := get(ctx, o.Job.Life(id), o.Job.Notice(id))
	if err != nil {
		return nil, is, err
	}
	// Read second: what the leader does to it from now on sets the notice again.
	led, err := get(ctx, o.Job.Ledger(id))
	if err != nil || !stood[0].Exists() || !stood[1].Exists() || !led[0].Exists() {
		return nil, is, err
	}
	if is, err = pages.Item(ctx, get, o.Item, led[0]); err != nil {
		return nil, is, err
	}
	if !is.Node.Exists() || errors.Is(is.Err, ledger.ErrTorn) {
		return nil, is, nil
	}
	guard = []registry.Op{
		registry.Check(o.Job.Life(id), registry.AnyVersion),
		registry.Check(o.Job.Ledger(id), registry.AnyVersion),
		registry.Check(o.Job.Notice(id), stood[1].Version),
	}
	return guard, is, nil
}

// holds reports as an error that a ledger does not hold the run.
func (o *Ownership) holds(is pages.Found) error {
	l := is.Ledger
	if l == nil {
		return fmt.Errorf("%w: %w", ErrNotOwner, is.Err)
	}
	rec, owned := l.Get(o.Item)
	if !owned || l.Epoch != o.Epoch || (o.Recorded && !rec.Run.Equal(o.Due)) {
		return ErrNotOwner
	}
	return nil
}
