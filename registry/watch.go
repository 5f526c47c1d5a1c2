package registry

import "context"

// Scope is how much of the tree a watch target covers.
type Scope uint8

const (
	// Self is one node, existing or not.
	Self Scope = iota
	// Children is every node one level below, with values; not the node itself (R54).
	// A directory that does not exist has no children, and may come (R27).
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
// For each target it delivers the present state, never older than the session's own writes (R22): for Self the node
// or its absence, for Children every child. Then comes Synced (R55), then changes. Changes may be coalesced: a slow
// consumer sees fewer of them and memory stays proportional to the number of nodes (R56). Per path, Modified never
// goes back (R25), no state is delivered twice (R57), and the last state always arrives (R26), deletions too (R58); a
// node that was reported gone does not come back with the same Created: after reconnects, restarts of the service and
// loss of its history too (R59). A node that was deleted and created again may arrive as one event with a new
// Created. Order over different paths is not promised.
//
// Two watchers of one session share nothing: each has its own targets, events and end (R60).
type Watcher interface {
	// Add starts a target and returns without waiting for its state, cut off from the service too (R61). A target
	// that is watched already is left as it is (R62). It fails with ErrSessionLost after the loss (R8), with
	// ErrClosed after Close (R43), with ErrInvalid for a path or scope that cannot be (R53).
	Add(path string, scope Scope) error

	// Remove ends a target, and waits no more than Add does (R61). Its events that are not consumed yet are dropped,
	// Synced too, and no other target's (R63). Adding it again delivers the present state and Synced again (R64).
	Remove(path string, scope Scope)

	// Next waits for events and returns them in order. It fails with ctx's error, and the next call goes on where it
	// stood, and loses nothing that was on the way (R65). It fails with ErrSessionLost once the session has ended, with
	// targets or without, cut off too (R66), with ErrClosed after Close (R43), and once with ErrDenied for a target that
	// the service refuses: that target is removed, and can be added again (R64); the others go on (R41). The slice
	// belongs to the caller, and no later call changes it (R31).
	Next(ctx context.Context) ([]Event, error)

	// Close ends the watcher, wakes Next, and frees what it holds here (R67), cut off from the service too: its session
	// keeps nothing of it (R114). What the service keeps for it is freed at once, by its next change, or with the
	// session, as the adapter says; so after Remove. It is idempotent.
	Close() error
}

// An Event is one step of a watch target: a node's state, or Synced.
type Event struct {
	// Path and Scope are the target's.
	Path  string
	Scope Scope
	// Synced ends the target's initial state, once for each Add (R55). Node is then zero.
	Synced bool
	// Node is the new state; its Path is the node's own. Created == 0: it is gone.
	Node Node
}
