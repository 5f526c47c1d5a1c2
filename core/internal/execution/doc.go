// Package execution records what happens to an instance's items in its ledger, one
// commit at a time, and shows what runs.
//
//	rec := execution.NewRecorder(config, owner, place, node, ledger)
//	rec.Submit(changes...)          // owner.Applied or owner.Refused follows for each
//
// A Change is one step of one item's record. A commit checks the life, sets the ledger at
// the version that is known, which is the lock of its items, and holds all changes that are
// ready; what is submitted while one is in flight shares the next. An
// item's changes are applied in the order in which they were submitted. Each commit
// raises the ledger's Seq, by which one whose answer was lost is found out (package
// settle).
//
// A ledger may have pages (package ledger): a commit takes so many entries as the pages that they
// touch fit it. Pages have no version of their own, since the ledger's is set with them. One that
// somebody deletes or overwrites is written again: from memory, which holds what the registry is to
// hold.
//
// # Pictures
//
// A run that lasts is shown by its running node, for tools: in a commit that checks the
// ledger at its version, after all others, and given up if it comes too late. The commit
// of the end deletes the node; where it is not known whether it stands, the end comes first
// and the node is looked for afterwards: the picture comes no more then. Beside members
// that know no ledgers (Show, strict) the nodes are locks, made with the begin.
//
// All methods are safe for concurrent use and return at once, but for Suspend; the
// owner is called from the recorder's task, one call at a time, with no lock held.
package execution
