package sharding

import "github.com/elasticron/elasticron/internal/layout/ledger"

// Rounds returns how far each owner is with the rounds, by its ledger. ok is false while that
// cannot be known: an item may stand in a ledger that is missing, or belongs to the dead.
func (v *View) Rounds() (owners map[string]ledger.Rounds, ok bool) {
	owners = map[string]ledger.Rounds{}
	ending, missing, stand := false, false, 0
	for _, m := range v.Members {
		switch {
		case m.Ledger == nil: // of the dead there are none without
			missing = true
			continue
		case m.Ledger.Len() == 0:
			continue
		case m.State == Dead && !v.absent(m):
			return nil, false
		case m.State == Dead: // no round waits for them
			stand += m.Ledger.Len()
			continue
		}
		ending = ending || (v.Base != nil && m.holdsBefore(v.Base.Epoch))
		if v.Base != nil && m.Ledger.Epoch == v.Base.Epoch {
			stand += m.Ledger.Len()
		}
		owners[m.ID] = m.Ledger.Rounds()
	}
	if missing && (v.Base == nil || stand < v.Base.To) {
		return nil, false
	}
	// Items of an epoch that ends go as they have accounted for it, and the next one starts there.
	return owners, v.Base != nil && (v.Base.Assigned || ending) && len(owners) > 0
}

// absent reports whether the items of a dead owner are bound to it, and owe nothing that is to
// run elsewhere.
func (v *View) absent(m Member) bool {
	if !v.Static || v.Base == nil || m.Ledger.Epoch != v.Base.Epoch || m.Ledger.Total != v.Base.To {
		return false
	}
	for _, rec := range m.Ledger.All() {
		if rec.Running() || rec.Redo.Owed() {
			return false
		}
	}
	return true
}
