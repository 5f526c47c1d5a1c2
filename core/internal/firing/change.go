package firing

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// A change is an action of the machine as the recorder takes it.
type change struct {
	items.Action
	now      func() time.Time
	delayed  bool
	stopping bool
	failover bool
	instance string
	// Of an end; unknown: the record has no such run any more. followed: the begin of the next fire
	// is recorded with it. apart: it is not to be.
	unknown      bool
	followed     bool
	apart        bool
	epoch, total int
	took         time.Duration
	err          error
	said         *string // how it reads, where somebody has asked for the run
	// closed: every run up to it is closed. further goes with the commit, or is nil.
	closed  int64
	further execution.Further
	// misses is when the next fire of an item that begins comes due; zero is never.
	misses time.Time
}

// Item implements execution.Change.
func (c *change) Item() int { return c.Action.Item }

// Step implements execution.Change.
func (c *change) Step() execution.Step {
	switch c.Kind {
	case items.Begin, items.Record:
		if c.Redo {
			return execution.BeginsAgain
		}
		return execution.Begins
	case items.End:
		if c.err != nil {
			return execution.EndsFailed
		}
		return execution.Ends
	case items.GiveBack:
		return execution.Undoes
	}
	return execution.Other
}

// Follows implements execution.Change.
func (c *change) Follows() bool { return c.followed }

// Misses implements execution.Change.
func (c *change) Misses() time.Time { return c.misses }

// Further implements execution.Change.
func (c *change) Further() execution.Further { return c.further }

// Patient implements execution.Change: ends wait for their neighbours.
func (c *change) Patient() bool { return c.Kind == items.End }

// Apply implements execution.Change.
func (c *change) Apply(rec *ledger.Item, in *ledger.Ledger, apart bool) bool {
	if c.apart = apart; !c.apply(rec, in) {
		return false
	}
	if rec.Asked <= c.closed || failpoint.Mutant(failpoint.AskedForgotten) {
		rec.Asked = 0
	}
	return true
}

func (c *change) apply(rec *ledger.Item, in *ledger.Ledger) bool {
	switch c.Kind {
	case items.Begin:
		if !c.mayBegin(*rec, in) {
			return false
		}
		c.begin(rec)
	case items.Record:
		rec.Through, rec.Run = later(rec.Through, c.Due, true), c.Due
	case items.End:
		c.unknown = !rec.Run.Equal(c.Due)
		if !c.unknown {
			rec.Run, rec.Redo, rec.Request = time.Time{}, ledger.Redo{}, 0
		}
		if c.Request != 0 || (c.unknown && c.overtaken(*rec)) { // in the latter case others have had the item meanwhile
			c.Through, c.Skips = rec.Through, nil
			break
		}
		if in.Held && !c.delayed && c.Through.After(c.Due) {
			c.Through, c.Skips = c.Due, nil // where the next epoch starts is being found out
			if c.Redo {
				c.Through = rec.Through
			}
		}
		rec.Through = later(rec.Through, c.Through, true)
		if c.stopping && failpoint.Mutant(failpoint.BacklogDropped) {
			rec.Through = later(rec.Through, time.Now(), true)
		}
		c.follow(rec, in)
	case items.GiveBack:
		c.undo(rec, in)
	case items.CutRedo:
		if rec.Running() || !rec.Redo.Due.Equal(c.Due) || c.held(*rec, in) {
			return false
		}
		rec.Through = later(rec.Through, c.Through, true)
		rec.Told, rec.Redo, rec.Request = items.ToldCut(rec.Redo, c.Cut), ledger.Redo{}, 0
		return true
	case items.Account:
		if !c.mayAccount(*rec, in) {
			return false
		}
		rec.Through = later(rec.Through, c.Through, !c.Reset)
	}
	rec.Told = items.Told(c.told())
	return true
}

// told are the skips that are told once the change is committed.
func (c *change) told() []items.Skip {
	if c.followed && len(c.NextSkips) > 0 {
		return append(slices.Clip(c.Skips), c.NextSkips...)
	}
	return c.Skips
}

// begin says that the fire runs. Only one of the schedule, and not one that runs again, moves the
// cursor.
func (c *change) begin(rec *ledger.Item) {
	rec.Run, rec.Request, rec.Redo.Due = c.Due, c.Request, time.Time{}
	switch {
	case c.Redo && failpoint.Mutant(failpoint.RedoMovesCursor):
		rec.Through = c.Due
	case c.Request == 0 && !c.Redo:
		rec.Through = later(rec.Through, c.Due, c.delayed)
	}
	rec.Asked = max(rec.Asked, c.Request)
}

// follow says of the next fire that it runs, where the record lets it.
func (c *change) follow(rec *ledger.Item, in *ledger.Ledger) {
	c.followed = !c.Next.IsZero() && !c.unknown && !c.apart && c.Next.After(rec.Through) && !overtaken(c.NextSkips, *rec) &&
		!in.Held && !rec.Leaving && !rec.Lent() && !rec.Redo.Owed()
	if c.followed {
		rec.Run, rec.Through = c.Next, c.Next
	}
}

// undo takes the begin out of the record.
func (c *change) undo(rec *ledger.Item, in *ledger.Ledger) {
	switch {
	case !rec.Run.Equal(c.Due): // it has no such begin: what was decided before it is recorded
		if !in.Held {
			rec.Through = later(rec.Through, c.Through, true)
		}
		c.Through = rec.Through
	case c.Redo:
		rec.Run, rec.Redo.Due, c.Through = time.Time{}, c.Due, rec.Through // it has not moved
	case c.Request != 0:
		rec.Run, rec.Request, rec.Asked, c.Through = time.Time{}, 0, c.Asked, rec.Through
	default:
		rec.Run, rec.Through = time.Time{}, c.Through
	}
}

// mayAccount reports whether the record lets the item account for fires.
func (c *change) mayAccount(rec ledger.Item, in *ledger.Ledger) bool {
	switch {
	case rec.Running(), rec.Redo.Owed():
		return false
	case in.Held && (in.Until.IsZero() || (len(c.Skips) > 0 && c.Through.After(in.Until))):
		return false // fires after Until are the next epoch's
	case rec.Lent() && (c.Through.After(rec.Through) || c.Reset || len(c.Skips) > 0):
		return false // its owner decides about its fires
	}
	return !c.overtaken(rec)
}

// overtaken reports whether fires that are to be told as skipped or folded have their outcome by
// now: another instance had the item meanwhile, and this one has not heard of it. It decides again.
func (c *change) overtaken(rec ledger.Item) bool {
	return !c.delayed && !c.Reset && overtaken(c.Skips, rec)
}

func overtaken(skips []items.Skip, rec ledger.Item) bool {
	return slices.ContainsFunc(skips, func(s items.Skip) bool { return !s.First.After(rec.Through) })
}

// mayBegin reports whether the record lets the fire begin.
func (c *change) mayBegin(rec ledger.Item, in *ledger.Ledger) bool {
	if c.held(rec, in) {
		return false
	}
	if rec.Running() {
		return false
	}
	if c.Redo || rec.Redo.Owed() { // nothing of an item comes before what runs again
		return c.Redo && rec.Redo.Due.Equal(c.Due)
	}
	if rec.Lent() {
		return false // but for what runs again
	}
	if c.Request != 0 {
		return !in.Held && in.Epoch == c.epoch && c.Request > rec.Asked
	}
	if c.overtaken(rec) {
		return false
	}
	// A delay goes on when the clock was set back, and the record is ahead of it.
	return c.Due.After(rec.Through) || (c.delayed && rec.Through.After(c.now()))
}

// held reports whether the leader lets the owner begin nothing, or not this fire. What runs again is of the epoch
// that ends, also where it was asked for after the last fire.
func (c *change) held(rec ledger.Item, in *ledger.Ledger) bool {
	if failpoint.Mutant(failpoint.HoldIgnored) {
		return false
	}
	return rec.Leaving || (in.Held && (in.Until.IsZero() || (!c.Redo && c.Due.After(in.Until))))
}

// later is b, or with keep the later of both.
func later(a, b time.Time, keep bool) time.Time {
	if keep && a.After(b) {
		return a
	}
	return b
}

var _ execution.Change = (*change)(nil)
