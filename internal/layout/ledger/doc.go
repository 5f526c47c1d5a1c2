// Package ledger is the record of one instance's sharding items, and its codec: for
// each item the fire that runs now, the one that is owed again because its owner's life
// ended, the instant through which every fire is accounted for, and to whom it belongs
// where it is only lent. It is one node in the registry, and where that outgrows half of a
// value has pages below it: the leader writes it when it assigns, its owner with every begin
// and end, each at the version it knows, so that a stale writer is refused.
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
// # Pages
//
// A page holds the items of so many numbers in a row ("per"), in a node below the ledger's, the
// root. What stands in no page stands in the root, which lists the pages ("pages"). Write returns
// what a commit sets, and only what has changed: it moves items into pages where the root is too
// long, and back where they take little. Every commit that writes a page sets the root too, whose
// version is the lock of the whole ledger. Root and page have a mark in common, by which a reader
// sees that what it has read is torn:
//
//	w := l.Write(version+1, room) // then w.Root and w.Pages are committed, and
//	l.Written()                   // or, once the records are what they were, l.Reverted()
//
//	r, err := ledger.Open(value)  // package pages does this with the registry's nodes
//	for _, p := range r.Wants() { err = r.Page(p, ...) }
//	l, err := r.Ledger()
//
// A Ledger has no lock: it belongs to one goroutine at a time. What was not written here is
// an error that names the field; Decode reads a value without pages.
package ledger
