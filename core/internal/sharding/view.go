package sharding

import (
	"slices"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// A State is what the nodes of a registration say.
type State uint8

const (
	// Alive: its life and its notice stand.
	Alive State = iota
	// Astray: one of the two was deleted from outside, or both while its instance's node
	// stands. Nothing of it is assigned until it has registered anew, which it does as
	// soon as it sees that.
	Astray
	// Dead: all are gone, as one session takes them at once.
	Dead
)

// A Member is an instance with a life or a ledger.
type Member struct {
	ID    string
	State State
	// Eligible: it may be given items.
	Eligible bool
	// Ledger is nil when it is missing: absent, unreadable, or not made with the life.
	Ledger  *ledger.Ledger
	Version registry.Version
}

// A View is all that the plan depends on.
type View struct {
	// Base is the epoch in force, nil before the first.
	Base *layout.Base
	// Known returns the base as it was seen last, nil where none was. It is asked where Base cannot be the one in
	// force. A nil func is one that knows none.
	Known func() *layout.Base
	// Total is the sharding total count that is wanted.
	Total int
	// Monitor and Delayed are as in the configuration: begins are recorded; the schedule
	// is a fixed delay.
	Monitor, Delayed bool
	// Failover: what a dead owner ran runs again at the item's next owner. Window is how late
	// that may be where no instance was up meanwhile; 0 is however late.
	Failover bool
	Window   time.Duration
	// Static: items stay with the instances that have them, over their restarts.
	Static bool
	// Now is the leader's clock.
	Now time.Time
	// Up is since when the job has had a live instance without a break.
	Up time.Time
	// Asked is the number of the last run that was asked for.
	Asked int64
	// Members are all instances, in any order.
	Members []Member
	// Assign maps the eligible ids to items; previous is what all ids own now, the
	// dead and the disabled included. nil is no answer: items stay where they are.
	Assign func(ids []string, total int, previous map[string][]int) map[string][]int
}

// holds reports whether the member holds items of an epoch before.
func (m Member) holdsBefore(epoch int) bool {
	return m.Ledger != nil && m.Ledger.Len() > 0 && m.Ledger.Epoch < epoch
}

func (v *View) eligible() []string {
	var ids []string
	for _, m := range v.Members {
		if m.State == Alive && m.Eligible && m.Ledger != nil {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// repair returns the base where there is none, or one of an earlier epoch than the ledgers':
// somebody deleted or overwrote it. It is the one that was seen last, unless the ledgers show
// a later one. Where such an epoch starts stands in a ledger of the one before, if there still is any.
func (v *View) repair() *layout.Base {
	last, used, total := 0, 0, 0
	var latest, from time.Time
	for _, m := range v.Members {
		if m.Ledger == nil {
			continue
		}
		last = max(last, m.Ledger.Epoch)
		if m.Ledger.Len() > 0 && m.Ledger.Epoch >= used {
			used, total = m.Ledger.Epoch, m.Ledger.Total
		}
		latest = later(latest, m.Ledger.Latest())
	}
	for _, m := range v.Members {
		if m.Ledger != nil && m.Ledger.Epoch == used-1 {
			from = later(from, m.Ledger.Until)
		}
	}
	if from.IsZero() {
		from = latest
	}
	if v.Base != nil && used <= v.Base.Epoch {
		return nil
	}
	if b := v.known(); b != nil && (used < b.Epoch || used == b.Epoch && total == b.To) {
		return b
	}
	if total > 0 {
		return &layout.Base{Epoch: max(used, 1), To: total, Through: from, Assigned: true}
	}
	return &layout.Base{Epoch: last + 1, To: v.Total, Through: v.Up}
}

func (v *View) known() *layout.Base {
	if v.Known == nil {
		return nil
	}
	return v.Known()
}

// end returns the instant at which the epoch in force ends: the latest that any ledger
// has recorded. Records of a clock that was far ahead are left out while others are
// not, and so is where the epoch began: a fire of the next years would excuse all until then,
// and those whose records were set back would owe them. What is left out may stand for fires
// that ran until now, which the next epoch is not to have again.
func (v *View) end() time.Time {
	var all, sane time.Time
	leftOut := false
	began, believable := v.Base.Through, v.Now.Add(ledger.Believable)
	for _, m := range v.Members {
		if m.Ledger == nil || m.Ledger.Epoch != v.Base.Epoch {
			continue
		}
		for _, rec := range m.Ledger.All() {
			for _, t := range []time.Time{rec.Through, rec.Run} {
				all = later(all, t)
				if t.Before(believable) {
					sane = later(sane, t)
				} else {
					leftOut = true
				}
			}
		}
	}
	switch {
	case sane.IsZero():
		sane = all
	case !began.Before(believable):
		began, leftOut = time.Time{}, true
	}
	if leftOut {
		sane = later(sane, v.Now)
	}
	if !v.Monitor && !v.Delayed {
		sane = later(sane, v.Now.Add(unrecorded))
	}
	return later(sane, began)
}

// unrecorded is how far ahead an epoch without records ends: by then everybody has
// heard of it.
const unrecorded = 2 * time.Second

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
