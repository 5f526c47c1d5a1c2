package registry

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: the node does not exist. Children, OpCheck, OpSet, OpDelete.
	ErrNotFound = errors.New("node does not exist")
	// ErrExists: the node exists already. OpCreate, OpCreateEphemeral.
	ErrExists = errors.New("node exists")
	// ErrVersion: the node is at another version. OpCheck, OpSet, OpDelete.
	ErrVersion = errors.New("node has another version")
	// ErrNotEmpty: the node has children. OpDelete.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoParent: the parent does not exist. OpCreate, OpCreateEphemeral.
	ErrNoParent = errors.New("parent node does not exist")
	// ErrEphemeralParent: the parent is ephemeral. OpCreate, OpCreateEphemeral.
	ErrEphemeralParent = errors.New("parent node is ephemeral")
	// ErrInvalid: the call was refused before anything was sent, and will always be.
	ErrInvalid = errors.New("invalid request")
	// ErrUnavailable: the service could not be reached or could not serve; nothing was applied.
	ErrUnavailable = errors.New("registry unavailable")
	// ErrUncertain: a Commit was applied, was not, or will be later. Never retried
	// by an adapter. It is settled by a conflicting write that is answered: applied,
	// or refused with ErrVersion. Conflicting means: after it, a version that the
	// uncertain commit named, or an absence that it needed, has passed for good. A
	// commit that checks nothing but existence cannot be settled by a Set, and a node
	// that is deleted and created again settles nothing.
	ErrUncertain = errors.New("outcome unknown")
	// ErrSessionLost: the session has ended, by loss or by Close. Every call of a Session and of what came from it.
	ErrSessionLost = errors.New("session lost")
	// ErrDenied: the service refused who asks (password, certificate, permission).
	ErrDenied = errors.New("permission denied")
	// ErrHeld: somebody else has the lock. Session.TryLock.
	ErrHeld = errors.New("lock is held")
	// ErrClosed: the Registry or the Watcher was closed by its owner. Registry.Open, Watcher.
	ErrClosed = errors.New("closed")
)

// A CommitError names the first operation of a Commit that could not be applied.
// None was.
type CommitError struct {
	// Index of the operation in the call to Commit.
	Index int
	// Op is the operation.
	Op Op
	// Err wraps ErrNotFound, ErrExists, ErrVersion, ErrNotEmpty, ErrNoParent, ErrEphemeralParent or ErrDenied.
	Err error
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("commit: operation %d (%s %s): %v", e.Index, e.Op.Kind, e.Op.Path, e.Err)
}

// Unwrap returns Err.
func (e *CommitError) Unwrap() error { return e.Err }
