// Package latch is the fair, fenced, cancellable lock of package registry,
// written once on the primitives of a Session. Adapters whose service has no
// wire form of its own for it implement Session.Lock and TryLock with Acquire:
//
//	func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
//		return latch.Acquire(ctx, s, dir, value, false, s.spawn)
//	}
//
// # Algorithm
//
// A contender is an ephemeral child of the directory, with a name that is never
// used again. The one that was created first holds the lock, its Created is the
// token. The others each wait for the one before them to vanish, so that a
// release wakes one; then they read again all that was before them, and
// themselves, since their own node may have gone meanwhile. A contender whose
// node was deleted by somebody else joins again, at the end.
//
// Children whose name lacks "latch-" are ignored.
//
// # Cost
//
// A free lock costs a commit, a Children, a Get and a watch target; a
// wait costs one target and one Get more; a release one commit.
// TryLock asks Children first and, when that looks held, Sync and Children again.
// There is no polling; requests that fail because the service cannot be reached
// are repeated with a growing pause.
//
// # Unknown outcomes
//
// A create of unknown outcome is settled by creating the same name again. The
// first attempt may still be applied after the lock was released: whoever had
// one watches the name as long as the session lives and deletes what appears.
//
// # Concurrency
//
// Acquire may be called from any number of goroutines. A lock that is held costs
// one goroutine, which the session owns.
//
// # Errors
//
// Acquire fails with the context's error, registry.ErrHeld, ErrSessionLost,
// ErrInvalid, ErrDenied, or a *registry.CommitError when dir cannot have
// children. It does not fail with ErrUnavailable or ErrUncertain alone.
package latch
