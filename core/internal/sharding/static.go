package sharding

import (
	"slices"

	"github.com/elasticron/elasticron/internal/failpoint"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
)

// stable is the part of an id that stays over restarts. One that is none of ours is a name.
func stable(id string) string {
	parsed, err := layout.ParseInstanceID(id)
	if err != nil {
		return id
	}
	return parsed.Stable()
}

// bound is whose item n is now, and to whom it belongs where that is another one: with static
// sharding it stays where it is. What a dead owner ran is lent to somebody; everything else of
// the item waits for an instance of its owner's name.
func (p *Plan) bound(n int, from string) (to, bound string) {
	rec := p.records[n]
	lives := p.before[from].State == Alive
	if lives && !rec.Lent() {
		p.away(n, !p.before[from].Eligible)
		return from, ""
	}
	name := rec.Bound
	if name == "" {
		name = stable(from)
	}
	if home := p.least(func(of string) bool { return of == name }); home != "" {
		return home, ""
	}
	p.away(n, true)
	if rec.Redo.Owed() && (!lives || !p.before[from].Eligible) {
		if gainer := p.least(func(string) bool { return true }); gainer != "" {
			if failpoint.Mutant(failpoint.LentForGood) {
				return gainer, ""
			}
			return gainer, name
		}
	}
	return from, rec.Bound
}

func (p *Plan) away(n int, is bool) {
	if is {
		p.Away = append(p.Away, n)
	}
}

// least is the eligible instance with the fewest items among those of some names, "" where
// there is none.
func (p *Plan) least(among func(name string) bool) (least string) {
	if p.names == nil {
		p.names = map[string]string{}
		for _, id := range p.view.eligible() {
			p.names[id] = stable(id)
		}
	}
	for id, name := range p.names {
		if !among(name) {
			continue
		}
		has, fewest := p.after[id].Len(), 0
		if least != "" {
			fewest = p.after[least].Len()
		}
		if least == "" || has < fewest || (has == fewest && id < least) {
			least = id
		}
	}
	return least
}

// stay leaves an item in the ledger of its dead owner, which nobody but the leader writes. What
// is decided about its fires stands there first, and is told then: its owner may never be back.
func (p *Plan) stay(n int, owner string, rec ledger.Item) {
	was, _ := p.before[owner].Ledger.Get(n)
	switch notes := rec.Told.Notes(); {
	case len(notes) == 0:
	case was.Told != rec.Told:
		p.Noted = true
	default:
		for _, note := range notes {
			p.Tell = append(p.Tell, Cut{Epoch: p.view.Base.Epoch, Item: n, Note: note})
		}
		rec.Told = ledger.Told{}
	}
	p.after[owner].Set(n, rec)
}

// IsAway reports whether an item is among Away.
func (p *Plan) IsAway(n int) bool {
	_, is := slices.BinarySearch(p.Away, n)
	return is
}

// Awaits reports whether items of a run that was asked for wait for nothing but instances that
// are away: none of them has begun.
func (p *Plan) Awaits(epoch int, run int64, items map[int]bool) bool {
	for n := range items {
		rec, stands := p.Record(epoch, n)
		if !stands || !p.IsAway(n) || rec.Asked >= run || rec.Request == run {
			return false
		}
	}
	return true
}
