package sharding

import (
	"cmp"
	"iter"
	"slices"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A Step is one commit of a plan. After each the state is whole: every item stands in
// one ledger, and a leader that starts from there derives the rest.
type Step struct {
	// Base is written with it; nil when it stays.
	Base *layout.Base
	// Moves are the items whose owner changes in this step.
	Moves []Move
	// Ledgers are the new contents.
	Ledgers []Write
	// Drop are ledgers to delete.
	Drop []Write
}

// OnlyDrops reports whether the step deletes ledgers that hold nothing, and does nothing else.
func (s Step) OnlyDrops() bool { return s.Base == nil && len(s.Moves) == 0 && len(s.Ledgers) == 0 }

// A Write is a ledger of an instance at the version it must have.
type Write struct {
	ID      string
	Version registry.Version
	// Value is the ledger's; nil when it is dropped.
	Value []byte
	// Pages are those of its pages that change.
	Pages []ledger.Page
	// Cut are notes that the ledger has no room for. Whoever commits it tells them.
	Cut []Cut
}

// A Cut is a leader's note about an item of an epoch.
type Cut struct {
	Epoch, Item int
	Note        ledger.Note
}

// Room is what one step may take.
type Room struct {
	// Ops and Bytes bound the commit; Ops has room for one move and two ledgers, with a page of each.
	Ops, Bytes int
	// MaxValue bounds the value of a ledger.
	MaxValue int
	// LedgerOps and LedgerBytes are what a changed ledger takes, its value aside. A
	// dropped one takes an operation.
	LedgerOps, LedgerBytes int
	// MoveOps and MoveBytes are what the move of an item takes besides the ledgers.
	MoveOps   func(item int) int
	MoveBytes int
	// Single: at most one gainer and one living loser, so that few commits of others
	// can be in the way.
	Single bool
}

// given reports whether somebody alive gives the item away.
func (p *Plan) given(m Move) bool { return m.From != "" && p.before[m.From].State == Alive }

// Steps cuts the plan into commits, one after another as they are asked for: of a large
// plan no more than one is made at a time, and none in vain when a commit is refused.
func (p *Plan) Steps(r Room) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		w := newWriter(p, r, yield)
		if p.Base != nil && !p.last {
			w.base = p.Base
			w.flush()
			if p.view.Base == nil || p.Base.Epoch != p.view.Base.Epoch {
				return // the rest follows from it
			}
		}
		moves := slices.Clone(p.Moves)
		slices.SortFunc(moves, func(a, b Move) int {
			return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Item, b.Item))
		})
		flags := w.flags()
		// What nobody alive owns waits for no commit but its own.
		w.moveThose(moves, func(m Move) bool { return !p.given(m) })
		if r.Single {
			w.flush()
		}
		for _, f := range flags {
			w.amend(f.id, p.after[f.id], f.items)
		}
		w.moveThose(moves, p.given)
		if w.over {
			return
		}
		w.rest()
		if p.last {
			w.need(1, baseBytes)
			w.ops++
			w.bytes += baseBytes
			w.base = p.Base
		}
		w.flush()
	}
}
