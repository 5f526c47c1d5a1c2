// Package ledger is the record of one instance's sharding items, and its codec: for
// each item the fire that runs now, the one that is owed again because its owner's life
// ended, the instant through which every fire is accounted for, and to whom it belongs
// where it is only lent. It is one node in the registry: the leader writes it when it
// assigns, its owner with every begin and end, each at the version it knows, so that
// a stale writer is refused.
//
//	l := ledger.New(1, 8) // the first epoch, eight items in all
//	l.Set(3, ledger.Item{Through: due})
//	value := l.Encode()
//
// Beside the records stand the items' last runs, in groups of their own: they decide
// nothing, take 8 KiB of the value at most, and the oldest are left out.
//
// Items with equal records share a group in the value, so that it stays small: one
// group in the steady state. Set and Delete cost the same in a ledger of 100,000
// items as in one of ten; Encode costs what the groups take, not the items.
//
// A Ledger has no lock: it belongs to one goroutine at a time. Decode fails on what
// it did not write with an error that names the field.
package ledger
