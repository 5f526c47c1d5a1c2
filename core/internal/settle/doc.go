// Package settle commits until the outcome is known. A commit whose answer is lost
// was applied, was not, or will be: nobody may act on it before one of the first two
// is certain.
//
//	rev, err := settle.Commit{
//		Store: session, Ops: ops, Marker: 1, Shows: func(n registry.Node) bool { ... },
//	}.Run(ctx, hindered)
//
// One operation of the commit, the marker, sets or makes a node in a way in which no
// other commit does. While the outcome is unknown the same operations are submitted
// again: they are applied now, or refused. A refusal at the marker says that it has
// moved on, so that nothing in flight can be applied any more, and the node shows
// whether one of the attempts was. A refusal elsewhere leaves it open, which Neutral
// ends: it moves the marker on.
//
// # Errors
//
// nil: applied. A *registry.CommitError: refused, and no attempt can be applied any
// more. Any other error: ErrDenied and ErrInvalid say that nothing was applied; the
// end of the context or of the session leaves the outcome open.
//
// Run may be called concurrently for different commits.
package settle
