// Package execution records what happens to an instance's items in its ledger, one
// commit at a time.
//
//	rec, err := execution.NewRecorder(config, owner, node)
//	rec.Submit(changes...)          // owner.Applied or owner.Refused follows for each
//
// A Change is one step of one item's record, with the operations that go with it. A
// commit checks the life, sets the ledger at the version that is known, and holds as
// many changes as fit; what is submitted while one is in flight shares the next. An
// item's changes are applied in the order in which they were submitted. Each commit
// raises the ledger's Seq, by which one whose answer was lost is found out (package
// settle).
//
// All methods are safe for concurrent use and return at once, but for Suspend; the
// owner is called from the recorder's task, one call at a time, with no lock held.
package execution
