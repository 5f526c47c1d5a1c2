package registry

import (
	"context"
	"time"
)

// A Registry is one configured coordination service. It addresses the whole
// tree; Namespace is only where its user wants to live in it.
type Registry interface {
	// Namespace is the URL's path without its slashes at the ends, for example
	// "shop" or "team/shop". It is never empty.
	Namespace() string

	// Open starts a new session, a new life. Several may be open at once, and
	// they share nothing but connections. It waits for the service until ctx
	// ends, then fails with ErrUnavailable. The caller closes the session.
	Open(ctx context.Context) (Session, error)

	// Close releases what the registry holds and ends the sessions that are
	// still open, without waiting for a service that does not answer. It is
	// idempotent. Open fails with ErrClosed afterwards.
	Close() error
}

// A Store reads, commits and watches.
//
// Reads are retried while the service cannot be reached, until ctx ends; the
// error then wraps both ErrUnavailable and the context's error.
type Store interface {
	// Get reads nodes, in the order of paths. A node that does not exist comes
	// back with its Path and Created == 0. Each node is consistent in itself;
	// two nodes may be of different revisions. An adapter asks for as many in one
	// request as the service allows. No paths are no nodes.
	Get(ctx context.Context, paths ...string) ([]Node, error)

	// Children lists the names (not the paths) of the nodes one level below
	// path, sorted by bytes. It fails with ErrNotFound when path does not exist.
	Children(ctx context.Context, path string) ([]string, error)

	// Sync returns once every read that follows is linearizable with respect to
	// the instant at which Sync was called. It sends nothing where every read is.
	Sync(ctx context.Context) error

	// Commit applies ops in their order, all of them or none.
	//
	// The operations see each other: a parent may be created with its child, a
	// child deleted with its parent. Paths must be distinct. Failure of an
	// operation is a *CommitError with the index of the first that could not be
	// applied. ErrInvalid says that the ops were refused before anything was
	// sent (Limits, paths, duplicates, none at all). ErrUnavailable says that
	// they were not applied. ErrUncertain says that nobody knows, and that it may
	// still happen. A commit in flight when the session is lost fails with an error
	// that is both ErrUncertain and ErrSessionLost; one that was not sent is
	// ErrSessionLost alone. Right after a connection broke the next commit may be
	// ErrUncertain as well. A context that has ended before anything was sent is
	// returned as its plain error. If several reasons hold for one operation,
	// ErrVersion comes after ErrDenied and ErrNotFound, and before ErrNotEmpty.
	//
	// The Revision is that of the commit, and is the Modified of every node it
	// wrote; commits that were under way at once may have it together. It is known when ops hold a Set; otherwise an adapter may return 0 (a
	// ZooKeeper multi returns a revision through nothing else). Failed commits and
	// Sync may use revisions up: they rise, they do not count.
	Commit(ctx context.Context, ops ...Op) (Revision, error)

	// Watch returns a Watcher with no targets. ctx bounds the call, not the
	// Watcher. The caller closes it; it ends with the session too.
	Watch(ctx context.Context) (Watcher, error)

	// Limits says what one Commit may hold.
	Limits() Limits
}

// A Session is one life with the service. Everything it owns (ephemeral nodes,
// locks) ends with it, and it never comes back: the owner opens another.
type Session interface {
	Store

	// ID names the session at the service, for people and for tests. It is
	// unique among all sessions of the service.
	ID() string

	// Lock waits for its turn among all who lock dir, in the order of arrival,
	// and returns the lock. dir and its parents are made when missing. value is
	// what others can read in the owner's node. Two callers on one session
	// exclude each other. While the service cannot be reached it goes on
	// trying. When ctx ends first the error wraps the context's, and ErrUnavailable
	// when that was the cause; nothing is left in the queue: the adapter goes on to
	// remove its place for as long as the session lives.
	Lock(ctx context.Context, dir string, value []byte) (Lock, error)

	// TryLock is Lock without waiting: ErrHeld when somebody else has or waits
	// for it.
	TryLock(ctx context.Context, dir string, value []byte) (Lock, error)

	// Deadline is the earliest instant at which somebody else could own what this
	// session owns: the send time of the last acknowledged heartbeat plus the
	// timeout that the service granted, less a margin. A reconnect within the
	// session is a heartbeat. It carries a monotonic reading; compare it with
	// time.Now. It does not go back. Nothing owned may be used past it.
	Deadline() time.Time

	// Done is closed when the session is lost or closed, no later than Deadline.
	Done() <-chan struct{}

	// Err is nil until Done is closed, then says why; it wraps ErrSessionLost.
	Err() error

	// Close ends the session at the service, so that its ephemeral nodes vanish
	// at once, and joins its goroutines. On a session that is lost or cut off
	// it still tries once to end it at the service. It waits for the service no longer than ctx; the error
	// then says that the nodes vanish only by expiry, and nil that they are gone. It
	// is idempotent.
	Close(ctx context.Context) error
}

// A Lock is held until it is released or its session ends.
type Lock interface {
	// Path is the owner's node: unique for each acquisition, a child of the directory.
	Path() string

	// Token rises strictly from each holder of a directory to the next, over
	// restarts of the service too. It is the Created of the owner's node.
	Token() Revision

	// Guard makes any Commit fail with ErrNotFound once the lock is gone.
	Guard() Op

	// Lost is closed when the lock is no longer held: released, session lost, or
	// its node deleted by somebody else.
	Lost() <-chan struct{}

	// Release gives the lock to the next in line, if it is still held. It deletes
	// nothing but its own node and is idempotent. On a lost session it fails with
	// ErrSessionLost. When ctx ends first, the release goes on for as long as the
	// session lives.
	Release(ctx context.Context) error
}
