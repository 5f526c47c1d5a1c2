package registry

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: the node does not exist (R36). Children, OpCheck, OpSet, OpDelete.
	ErrNotFound = errors.New("node does not exist")
	// ErrExists: the node exists already (R37). OpCreate, OpCreateEphemeral.
	ErrExists = errors.New("node exists")
	// ErrVersion: the node is at another version (R38). OpCheck, OpSet, OpDelete.
	ErrVersion = errors.New("node has another version")
	// ErrNotEmpty: the node has children (R3). OpDelete.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoParent: the parent does not exist (R1). OpCreate, OpCreateEphemeral.
	ErrNoParent = errors.New("parent node does not exist")
	// ErrEphemeralParent: the parent is ephemeral (R2). OpCreate, OpCreateEphemeral.
	ErrEphemeralParent = errors.New("parent node is ephemeral")
	// ErrInvalid: the call was refused before anything was sent, and will always be (R39).
	ErrInvalid = errors.New("invalid request")
	// ErrUnavailable: the service could not be reached or could not serve; nothing was applied (R40).
	ErrUnavailable = errors.New("registry unavailable")
	// ErrUncertain: a Commit was applied, was not, or will be later (R19). Never retried by an adapter (R19). It is
	// settled by a conflicting write that is answered: applied, or refused with ErrVersion (R20). Conflicting means:
	// after it, a version that the uncertain commit named, or an absence that it needed, has passed for good. A
	// commit that checks nothing but existence cannot be settled by a Set, and a node that is deleted and created
	// again settles nothing.
	ErrUncertain = errors.New("outcome unknown")
	// ErrSessionLost: the session has ended, by loss or by Close (R8). Every call of a Session and of what came
	// from it, alone but for a commit that was in flight (R35, R82).
	ErrSessionLost = errors.New("session lost")
	// ErrDenied: the service refused who asks (password, certificate, permission), and is asked only so far: a
	// read fails with it, a commit names the operation, a watch loses that target, a lock is not joined (R41).
	ErrDenied = errors.New("permission denied")
	// ErrHeld: somebody else has the lock (R42). Session.TryLock.
	ErrHeld = errors.New("lock is held")
	// ErrClosed: the Registry, the StoreCloser or the Watcher was closed by its owner (R43).
	ErrClosed = errors.New("closed")
)

// A CommitError names the first operation of a Commit that could not be applied. None was.
type CommitError struct {
	// Index of the operation in the call to Commit.
	Index int
	// Op is the operation.
	Op Op
	// Err wraps ErrNotFound, ErrExists, ErrVersion, ErrNotEmpty, ErrNoParent, ErrEphemeralParent or ErrDenied (R18).
	Err error
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("commit: operation %d (%s %s): %v", e.Index, e.Op.Kind, e.Op.Path, e.Err)
}

// Unwrap returns Err.
func (e *CommitError) Unwrap() error { return e.Err }
