package sharding

import "github.com/elasticron/elasticron/internal/layout/ledger"

// Rounds returns how far each owner is with the rounds, by its ledger. ok is false while that
// cannot be known: an item may stand in a ledger that is missing, or belongs to the dead.
func (v *View) Rounds() (owners map[string]ledger.Rounds, ok bool) {
	owners = map[string]ledger.Rounds{}
	ending := false
	for _, m := range v.Members {
		switch {
		case m.Ledger == nil:
			return nil, false // of the dead there are none without
		case m.Ledger.Len() == 0:
			continue
		case m.State == Dead:
			return nil, false
		}
		ending = ending || (v.Base != nil && m.holdsBefore(v.Base.Epoch))
		owners[m.ID] = m.Ledger.Rounds()
	}
	// Items of an epoch that ends go as they have accounted for it, and the next one starts there.
	return owners, v.Base != nil && (v.Base.Assigned || ending) && len(owners) > 0
}
