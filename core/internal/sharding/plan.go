package sharding

import (
	"slices"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// A Move is one item's change of owner; "" is nobody.
type Move struct {
	Item     int
	From, To string
}

// A Plan is the difference between what is and what should be.
type Plan struct {
	// Base is what must be written as the base, nil when it stays. A new epoch is
	// written before anything else, and alone.
	Base *layout.Base
	// Moves are the items that change owner, by item.
	Moves []Move
	// Waiting are the items that must end first.
	Waiting []int
	// Ending are the ids of owners of items that are leaving and run.
	Ending []string
	// Held are the ids whose ledgers will change before the plan can go on.
	Held []string
	// Drop are the ids of dead members whose ledgers are empty after the moves.
	Drop []string
	// Nudge are the ids of members that are not dead and whose ledgers are missing: they
	// must be told.
	Nudge []string
	// Astray are the ids of members that hold items of which nothing is decided until they have registered anew, or
	// are gone: they must be told too.
	Astray []string
	// Tell are notes that stand in the ledgers of the dead, whose items are bound to them: the
	// leader tells them, and then makes the steps, which take them out.
	Tell []Cut
	// Noted: a step leaves such notes, so that another plan follows at once.
	Noted bool
	// Away are the items that no instance may begin, since they are bound to one that is not
	// there, or begins nothing.
	Away []int
	// Lost are items that stood in no ledger though the epoch was assigned: what ran
	// of them is not known any more. They begin anew, or their epoch ends.
	Lost []int

	view    View
	last    bool // Base goes with the last step
	missing bool // the ledger of a registration that stands, or stands in part
	before  map[string]Member
	after   map[string]*ledger.Ledger
	records map[int]ledger.Item
	names   map[string]string // the stable ones, of the eligible
}

// Derive compares what is with what should be.
func Derive(v View) *Plan {
	v.Members = slices.SortedFunc(slices.Values(v.Members), func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	p := &Plan{view: v, before: map[string]Member{}, after: map[string]*ledger.Ledger{}, records: map[int]ledger.Item{}}
	for _, m := range v.Members {
		p.before[m.ID] = m
		if m.State == Astray && m.Ledger != nil && m.Ledger.Len() > 0 {
			p.Astray = append(p.Astray, m.ID)
		}
		switch {
		case m.Ledger != nil:
			p.after[m.ID] = m.Ledger.Clone()
		case m.State != Dead:
			p.Nudge = append(p.Nudge, m.ID)
			p.missing = true
		}
	}
	switch {
	case p.repair():
	case p.unfinished():
		p.finish()
	case v.Base.To != v.Total && p.untouched():
		b := *v.Base
		b.To = v.Total
		p.Base = &b // nobody has had an item of this epoch: it is another total's
	case v.Base.To != v.Total && v.Base.Assigned:
		p.hold()
	default:
		p.assign()
	}
	p.dropDead()
	slices.SortFunc(p.Moves, func(a, b Move) int { return a.Item - b.Item })
	slices.Sort(p.Waiting)
	p.Waiting = slices.Compact(p.Waiting)
	slices.Sort(p.Ending)
	p.Ending = slices.Compact(p.Ending)
	return p
}

// Record is the record of an item of an epoch as the plan leaves it; false when it stands in
// no ledger.
func (p *Plan) Record(epoch, n int) (ledger.Item, bool) {
	for _, l := range p.after {
		if l.Epoch == epoch {
			if rec, held := l.Get(n); held {
				return rec, true
			}
		}
	}
	return ledger.Item{}, false
}

// Missing reports whether the ledger of a registration that stands, or stands in part, is not there: what it
// held is not known.
func (p *Plan) Missing() bool { return p.missing }

// Items are those of an instance as the plan leaves them, in the epoch in force; what is lent
// to it is not.
func (p *Plan) Items(id string) []int {
	l := p.after[id]
	if l == nil || p.view.Base == nil || l.Epoch != p.view.Base.Epoch {
		return nil
	}
	return slices.DeleteFunc(l.Numbers(), func(n int) bool {
		rec, _ := l.Get(n)
		return rec.Lent()
	})
}

// Owners are the ids that have items as the plan leaves them, in any order.
func (p *Plan) Owners() (ids []string) {
	for id, l := range p.after {
		if l.Len() > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Asked is the highest number of a run that any record names.
func (p *Plan) Asked() (highest int64) {
	for _, l := range p.after {
		highest = max(highest, l.Asked())
	}
	return highest
}

// Final reports whether the plan gives up what stands in no ledger: records that are lost,
// or an epoch that is over.
func (p *Plan) Final() bool {
	return len(p.Lost) > 0 || (p.Base != nil && p.view.Base != nil && p.Base.Epoch > p.view.Base.Epoch)
}

func (p *Plan) repair() bool {
	p.Base = p.view.repair()
	return p.Base != nil
}

// unfinished reports whether items of an epoch before stand in ledgers.
func (p *Plan) unfinished() bool {
	return slices.ContainsFunc(p.view.Members, func(m Member) bool { return m.holdsBefore(p.view.Base.Epoch) })
}

// untouched reports whether no item of the epoch in force has been given to anybody.
func (p *Plan) untouched() bool {
	return !p.view.Base.Assigned && !slices.ContainsFunc(p.view.Members, func(m Member) bool {
		return m.Ledger == nil || m.Ledger.Len() > 0
	})
}

// hold makes every owner begin nothing more, and starts the next epoch when all do so.
func (p *Plan) hold() {
	all := !p.missing
	for _, m := range p.view.Members {
		if m.Ledger == nil || m.Ledger.Len() == 0 || m.State == Dead {
			continue
		}
		if m.State == Astray {
			all = false
			continue
		}
		p.after[m.ID].Held = true
		p.Held = append(p.Held, m.ID)
		if !m.Ledger.Held || (p.view.Delayed && m.Ledger.Running() > 0) {
			all = false
		}
		p.await(m.Ledger)
	}
	if all || failpoint.Mutant(failpoint.BaseEarly) {
		b, through := p.view.Base, p.view.end()
		if p.lose(); len(p.Lost) > 0 {
			through = later(through, p.view.Now) // what of them ran until now is not known: none of it is owed again
		}
		p.Base = &layout.Base{Epoch: b.Epoch + 1, From: b.To, To: p.view.Total, Through: through}
	}
}

// lose notes what stood in no ledger when its epoch ended. Where nobody is eligible, or the strategy has no answer, nobody
// can say to whom an item would belong: each counts as lost.
func (p *Plan) lose() {
	owners := p.findOwners()
	if len(owners) == p.view.Base.To {
		return
	}
	wanted := p.wanted(p.view.eligible(), owners)
	for n := range p.view.Base.To {
		if _, known := p.records[n]; !known && (wanted == nil || wanted[n] != "") {
			p.Lost = append(p.Lost, n)
		}
	}
}

// await notes what runs.
func (p *Plan) await(l *ledger.Ledger) {
	if l.Running() == 0 {
		return
	}
	for n, rec := range l.All() {
		if rec.Running() {
			p.Waiting = append(p.Waiting, n)
		}
	}
}

// finish has the owners of the epoch before run what they owe of it, and assigns the
// items of the dead to others for that. When nothing is owed any more the next begins.
func (p *Plan) finish() {
	owed := p.missing
	for _, m := range p.view.Members {
		if m.State == Dead || !m.holdsBefore(p.view.Base.Epoch) {
			continue
		}
		if m.State == Astray {
			owed = true
			continue
		}
		p.until(m.ID)
		if p.owes(m.Ledger) {
			owed = true
			p.Held = append(p.Held, m.ID)
		}
		p.await(m.Ledger)
	}
	owed = p.inherit() || owed
	if !owed {
		p.assign()
	}
}

// inherit gives what the dead owe of the epoch before to others, in turn. It reports
// whether they owe anything.
func (p *Plan) inherit() (owed bool) {
	ids, next := p.view.eligible(), 0
	stale := p.standing()
	for _, m := range p.view.Members {
		if m.State != Dead || !m.holdsBefore(p.view.Base.Epoch) {
			continue
		}
		for n, rec := range m.Ledger.All() {
			rec = p.orphan(m.ID, rec)
			if p.done(rec) || stale(n, m.Ledger.Epoch) {
				p.after[m.ID].Delete(n)
				continue
			}
			owed = true
			if len(ids) > 0 {
				p.bequeath(n, rec, m, ids[next%len(ids)])
				next++
			}
		}
	}
	return owed
}

// standing returns what tells a record of the dead that counts no more, by somebody's
// hand: the item stands in the ledger of an owner that lives, or the next epoch has
// begun, which it does when nothing of the one before is owed.
func (p *Plan) standing() func(n, epoch int) bool {
	var living []*ledger.Ledger
	begun := false
	for _, m := range p.view.Members {
		if m.Ledger == nil || m.Ledger.Len() == 0 {
			continue
		}
		begun = begun || m.Ledger.Epoch == p.view.Base.Epoch
		if m.State != Dead {
			living = append(living, m.Ledger)
		}
	}
	return func(n, epoch int) bool {
		return begun || slices.ContainsFunc(living, func(l *ledger.Ledger) bool {
			_, has := l.Get(n)
			return has && l.Epoch == epoch
		})
	}
}

// until tells an owner up to where the epoch goes that ends. Nothing of it leaves any
// more, nor is it lent: its owner runs what it owes.
func (p *Plan) until(id string) {
	l := p.after[id]
	l.Held, l.Until = true, p.view.Base.Through
	for n, rec := range p.before[id].Ledger.All() {
		if rec.Leaving || rec.Lent() {
			rec.Leaving, rec.Bound = false, ""
			l.Set(n, rec)
		}
	}
}

// bequeath gives an item of a dead owner to somebody for the rest of its epoch.
func (p *Plan) bequeath(n int, rec ledger.Item, from Member, to string) {
	l := p.after[to]
	if l.Len() == 0 {
		l = ledger.New(from.Ledger.Epoch, from.Ledger.Total)
		l.Seq = p.after[to].Seq
		p.after[to] = l
	}
	if l.Epoch != from.Ledger.Epoch {
		return // it owes an epoch of its own first
	}
	if !l.Held || !l.Until.Equal(p.view.Base.Through) { // once for however many items
		p.until(to)
	}
	rec.Bound = ""
	l.Set(n, rec)
	p.after[from.ID].Delete(n)
	p.Moves = append(p.Moves, Move{Item: n, From: from.ID, To: to})
	if !slices.Contains(p.Held, to) {
		p.Held = append(p.Held, to)
	}
}

func (p *Plan) owes(l *ledger.Ledger) bool {
	for _, rec := range l.All() {
		if !p.done(rec) {
			return true
		}
	}
	return false
}

// done reports whether an item has accounted for the epoch that ends.
func (p *Plan) done(rec ledger.Item) bool {
	if rec.Running() || rec.Redo.Owed() || rec.Told != (ledger.Told{}) {
		return false
	}
	return p.view.Delayed || !rec.Through.Before(p.view.Base.Through)
}

// MaxTries is how many lives may end while one fire runs: after that it is not run again.
const MaxTries = 3

// orphan returns the record that a dead owner's item goes on with: what ran is to run again
// where failover is on, and is cut otherwise.
func (p *Plan) orphan(id string, rec ledger.Item) ledger.Item {
	redo := rec.Redo
	if redo.Owed() && failpoint.Mutant(failpoint.TriesOfOwed) {
		redo.Tries++
	}
	if rec.Running() {
		redo = ledger.Redo{Due: rec.Run, Lost: id, Tries: rec.Redo.Tries + 1}
	}
	rec.Run, rec.Leaving = time.Time{}, false
	if rec.Redo = redo; !redo.Owed() {
		rec.Redo, rec.Request = ledger.Redo{}, 0
		return rec
	}
	if failpoint.Mutant(failpoint.RedoIgnored) {
		rec.Redo, rec.Request = ledger.Redo{}, 0
		return rec
	}
	if why, is := p.isCut(redo); is {
		rec = cut(rec, why)
	}
	return rec
}

// isCut reports whether a fire that was begun does not run again, and why.
func (p *Plan) isCut(r ledger.Redo) (event.CutReason, bool) {
	switch {
	case !p.view.Failover:
		return event.CutPlain, true
	case r.Tries >= MaxTries:
		return event.CutTries, true
	case p.view.Window > 0 && !r.Due.After(p.view.Up) && p.view.Now.Sub(r.Due) > p.view.Window:
		return event.CutLate, true
	}
	return event.CutPlain, false
}

// cut returns the record of an item of which a fire is owed again, and is cut instead.
func cut(rec ledger.Item, why event.CutReason) ledger.Item {
	rec.Told = rec.Told.With(ledger.Note{Due: rec.Redo.Due, Instance: rec.Redo.Lost, Reason: string(why)})
	rec.Redo, rec.Request = ledger.Redo{}, 0
	return rec
}

func (p *Plan) dropDead() {
	for _, m := range p.view.Members {
		if m.State == Dead && m.Ledger != nil && p.after[m.ID].Len() == 0 {
			p.Drop = append(p.Drop, m.ID)
		}
	}
}

// changed returns the ids whose ledgers differ, sorted. Who owns nothing need not know
// the epoch.
func (p *Plan) changed() []string {
	var ids []string
	for id, l := range p.after {
		was := p.before[id].Ledger
		if l.Len()+was.Len() > 0 && !l.Equal(was) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
