package registry

import "context"

// Scope is how much of the tree a watch target covers.
type Scope uint8

const (
	// Self is one node, existing or not.
	Self Scope = iota
	// Children is every node one level below, with values; not the node itself.
	// A directory that does not exist has no children, and may come.
	Children
)

func (s Scope) String() string {
	if s == Children {
		return "children"
	}
	return "self"
}

// A Watcher follows any number of targets with one consumer.
//
// For each target it delivers the present state, never older than the session's
// own writes (for Self the node or its absence, for Children every child), then
// Synced, then changes. Changes may be
// coalesced: a slow consumer sees fewer of them and memory stays proportional to
// the number of nodes. Per path, Modified never goes back, and the last state
// always arrives, and a node that was reported gone does not come back with the
// same Created: after reconnects, restarts of the service and loss of its
// history too. A node that was deleted and created again may arrive as one event
// with a new Created. Order over different paths is not promised.
type Watcher interface {
	// Add starts a target and returns without waiting for its state. A target
	// that is watched already is left as it is. It fails with ErrSessionLost after the
	// loss, with ErrClosed after Close, with ErrInvalid for a path that cannot be.
	Add(path string, scope Scope) error

	// Remove ends a target. Events of it that are not consumed yet are dropped.
	// Adding it again delivers the present state and Synced again.
	Remove(path string, scope Scope)

	// Next waits for events and returns them in order. It fails with ctx's error,
	// with ErrSessionLost once the session has ended, with ErrClosed after Close,
	// and once with ErrDenied for a target that the service refuses: that target is
	// removed, the others go on.
	// The slice belongs to the caller.
	Next(ctx context.Context) ([]Event, error)

	// Close ends the watcher and frees what it holds here. What the service keeps
	// for it is freed at once, by its next change, or with the session, as the
	// adapter says; so after Remove. It is idempotent.
	Close() error
}

// An Event is one step of a watch target: a node's state, or Synced.
type Event struct {
	// Path and Scope are the target's.
	Path  string
	Scope Scope
	// Synced ends the target's initial state, once for each Add. Node is then zero.
	Synced bool
	// Node is the new state; its Path is the node's own. Created == 0: it is gone.
	Node Node
}
