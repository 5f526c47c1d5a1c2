// Package ownership commits what only the owner of a running item may: such a commit checks the
// life of the registration, and that its ledger still holds the item and the run.
//
//	own := &ownership.Ownership{Store: session, Job: paths, Epoch: 1, Item: 3, Due: due, Registration: id, ...}
//	err := own.Commit(ctx, ownership.Change{Ops: ops, Shows: shows}, hindered)
//
// The ledger is set with every begin and end of its owner, so its version is not what is
// checked, or the commit would come too late again and again. Items change hands only in commits
// of the leader, and each of these sets the notice of the ledger's owner too. So the notice is
// read first, then the ledger, and the commit checks the version of the notice: as long as it
// passes, the ledger holds the item.
//
// Who was paused and is an owner no more is refused: its life is gone. In the steady state a
// commit needs no read.
//
// # Errors
//
// ErrNotOwner: the item is another's, or the run is over. A *registry.CommitError has the index of
// the operation in Change.Ops. Others are those of package settle.
//
// An Ownership belongs to one goroutine at a time.
package ownership
