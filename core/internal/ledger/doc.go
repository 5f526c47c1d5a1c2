// Package ledger is the record of one instance's sharding items: for each, the
// fire that runs now and the instant through which every fire is accounted for.
// It is one node in the registry: the leader writes it when it assigns, its
// owner with every begin and end, each at the version it knows, so that a stale
// writer is refused.
//
//	l := ledger.New(8)
//	l.Items[3] = ledger.Item{Through: due}
//	node := l.Encode()
//
// A Ledger is a plain value without locks. Decode fails on what it did not
// write, with an error that names the field.
package ledger
