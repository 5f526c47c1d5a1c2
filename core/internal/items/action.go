package items

import (
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Kind is what an action asks for.
type Kind uint8

const (
	// Begin: commit that Due runs; then Begun or Refused. Skips are told once it is.
	Begin Kind = iota + 1
	// Run: hand the item to its function when there is a place; then Entered and
	// Returned or Uncalled, or Dropped.
	Run
	// End: commit that Due has ended and every fire up to Through has its outcome; then
	// Committed.
	End
	// GiveBack: commit that Due has not begun after all; then Committed.
	GiveBack
	// Account: commit that every fire up to Through has its outcome; then Committed.
	Account
	// Record: monitoring was switched on while Due runs: commit that it does.
	Record
	// Drop: take the item out of those who wait for a place; then Dropped.
	Drop
	// CutRedo: commit that Due, which was to run again, does not; then Committed.
	CutRedo
	// Tell: the leader's notes, or skips that need no record.
	Tell
)

// An Action is what the machine wants done. Those of one item are in order.
type Action struct {
	Kind Kind
	Item int
	// Due is the fire in hand, for all kinds but Account and Tell.
	Due time.Time
	// Through is the item's cursor after End, GiveBack and Account.
	Through time.Time
	// Next is the fire whose begin is to be recorded with End, since it is owed or near, where the
	// record lets it: then Followed takes the place of Committed. Zero is none. NextSkips are told with it.
	Next      time.Time
	NextSkips []Skip
	// Fence is the token of Run.
	Fence registry.Revision
	// Ahead: the begin was recorded before the fire was due. Run waits until then.
	Ahead bool
	// MadeUp: the fire was missed, and runs late.
	MadeUp bool
	// Redo: the fire runs again. Lost is the instance that died last while it ran, Tries how
	// many did.
	Redo  bool
	Lost  string
	Tries int
	// Request is the number of the run that somebody asked for, 0 for a fire of the schedule.
	// Asked is what the record says again after GiveBack.
	Request, Asked int64
	// Cut is why CutRedo does.
	Cut event.CutReason
	// Folded is how many fires a Run stands for besides its own.
	Folded int
	// Reset: Account may lower the cursor, which was in the future.
	Reset bool
	// Skips are told when the action is committed, or at once with Tell.
	Skips []Skip
	// Notes are told with Tell.
	Notes []ledger.Note
}

// A Skip is a stretch of fires of an item that do not run.
type Skip struct {
	First, Last time.Time
	Count       int
	// Into is the fire that runs for them: they are folded into it. It is zero, and Reason
	// says why, where nothing does.
	Into   time.Time
	Reason event.SkipReason
	Detail string
}

// Told are the notes of skips that go with their record: whoever has the item next tells
// them, should this instance not come to it.
func Told(skips []Skip) (notes ledger.Told) {
	for _, s := range skips {
		notes = notes.With(ledger.Note{Due: s.Last, First: s.First, Count: s.Count, Reason: string(s.Reason), Into: s.Into})
	}
	return notes
}

// ToldCut is the note of a fire that was to run again, and is cut.
func ToldCut(r ledger.Redo, why event.CutReason) ledger.Told {
	return ledger.Told{}.With(ledger.Note{Due: r.Due, Instance: r.Lost, Reason: string(why)})
}

// A Refusal says why a begin was not committed.
type Refusal uint8

const (
	// NotOwned: the ledger does not hold the item any more, or holds it back.
	NotOwned Refusal = iota + 1
	// Behind: the fire has its outcome already.
	Behind
	// Shut: the run that was asked for is closed.
	Shut
	// Elsewhere: an instance of ElasticJob runs the item.
	Elsewhere
)
