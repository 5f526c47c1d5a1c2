// Package latch is the fair, fenced, cancellable lock of package registry, for authors of adapters: it is written once
// on the primitives of a Session. Implement Session.Lock and TryLock with Acquire:
//
//	func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
//		return latch.Acquire(ctx, s, dir, value, false, s.spawn)
//	}
//
// where s.spawn is a [Spawn]: the session joins its goroutines when it is closed. A service whose own clients queue up
// for locks too has a wire form for it. To exclude them and be excluded, pass WithForm as well.
//
// # Algorithm
//
// A contender is an ephemeral child of the directory, with a name that is never used again. The one that was created
// first holds the lock, its Created is the token. The others each wait for the one before them to vanish, so that a
// release wakes one; then they look again at all that is before them, and at themselves, since their own node may have
// gone meanwhile. A contender whose node was deleted by somebody else joins again, at the end.
//
// Order is by the numbers that a Form reads from the names, and among equal ones by Created. Without a Form all are
// equal, and children whose name lacks "latch-" are ignored.
//
// # Cost
//
// A free lock costs a commit, a Children, a Get and a watch target; a wait costs one target and one Get more; a release
// one commit. TryLock asks Children first and, when that looks held, Sync and Children again. With a Form whose numbers
// differ, a Get is of the own node alone, and a wake costs one Children more. There is no polling; requests that fail
// because the service cannot be reached are repeated with a growing pause, and so is the removal of a waiter that gave
// up, where it is refused.
//
// # Unknown outcomes
//
// A create of unknown outcome is settled by creating the same name again. The first attempt may still be applied after
// the lock was released: whoever had one watches the name as long as the session lives and deletes what appears.
//
// Where the service chooses the name, the node is looked for among the children by its prefix, and made anew when it is
// not there. So a contender may come to have several: the first of them counts, all of them are deleted in the end. If
// the Form cannot settle it either, the directory is watched as above.
//
// # Concurrency
//
// Acquire may be called from any number of goroutines. A lock that is held costs one goroutine, which the session owns.
//
// # Errors
//
// Acquire fails with the context's error, registry.ErrHeld, ErrSessionLost, ErrInvalid, ErrDenied, a
// *registry.CommitError when dir cannot have children, or with what a Form says of a directory whose order is lost. It
// does not fail with ErrUnavailable or ErrUncertain alone.
package latch
