package registry

import (
	"context"
	"time"
)

// A Registry is one configured coordination service. It addresses the whole
// tree; Namespace is only where its user wants to live in it.
type Registry interface {
	// Namespace is the URL's path without its slashes at the ends, for example
	// "shop" or "team/shop". It is never empty (R68).
	Namespace() string

	// Open starts a new session, a new life. Several may be open at once, and they share nothing but connections. It
	// waits for a service that can be reached, and answers before the session's timeout is over, until ctx ends; then
	// it fails with ErrUnavailable and the context's error, both (R69). The caller closes the session.
	Open(ctx context.Context) (Session, error)

	// OpenStore returns a Store without a life, for tools that read and write and own nothing: it is no session, and
	// there is nothing of it to lose. It sends nothing where nothing needs to be sent. The caller closes it.
	OpenStore(ctx context.Context) (StoreCloser, error)

	// Close releases what the registry holds and ends the sessions and stores that are still open: once it returns
	// their Done is closed, and no call of theirs succeeds (R70). It waits for no service that does not answer (R71),
	// and is idempotent. Open and OpenStore fail with ErrClosed afterwards, and an Open under way (R43).
	Close() error
}

// A StoreCloser is a Store without a life. Nothing that it does is ephemeral: a CreateEphemeral is ErrInvalid
// (R72), and it owns no node (R49). An outage of whatever length ends nothing: once the service answers, so does the
// StoreCloser, and none of its calls ever fails with ErrSessionLost (R73). Where a service knows nothing but sessions
// (ZooKeeper) it has one for its connection and opens another when that is lost; a Watcher then ends with
// ErrUnavailable, and its owner makes a new one (R73).
type StoreCloser interface {
	Store

	// Close ends the StoreCloser and its watchers; every call after it fails with ErrClosed, and so does one that is
	// under way (R43), but a commit that was sent with ErrUncertain (R19). It waits for the service, and for what waits
	// for it, no longer than ctx (R102), and is idempotent.
	Close(ctx context.Context) error
}

// A Store reads, commits and watches.
//
// Reads are retried while the service cannot be reached (R74), until ctx ends, whatever others wait for; the error
// then wraps both ErrUnavailable and the context's error (R75). No read, and no watch, fails for the size of what it
// reads (R76).
type Store interface {
	// Get reads nodes, in the order of paths (R77). A node that does not exist comes back with its Path and Created == 0.
	// Each node is consistent in itself (R78); two nodes may be of different revisions. An adapter asks for as many in
	// one request as the service allows. No paths are no nodes.
	Get(ctx context.Context, paths ...string) ([]Node, error)

	// Children lists the names (not the paths) of the nodes one level below path (R79), sorted by bytes (R80). It fails
	// with ErrNotFound when path does not exist (R36).
	Children(ctx context.Context, path string) ([]string, error)

	// Sync returns once every read that follows is linearizable with respect to
	// the instant at which Sync was called (R24). It sends nothing where every read is.
	Sync(ctx context.Context) error

	// Commit applies ops in their order, all of them or none (R17).
	//
	// The operations see each other: a parent may be created with its child, a child deleted with its parent (R81).
	// Paths are distinct (R39). Failure of an operation is a *CommitError with the index of the first that could not be
	// applied (R18); where a service looks at the rights to all of them first, of the first that it denies (R18).
	// ErrInvalid says that the ops were refused before anything was sent: Limits, paths, duplicates, none
	// at all (R39). ErrUnavailable says that they were not applied (R40). ErrUncertain says that nobody knows, and that
	// it may still happen, whatever has ended the wait: ctx, cancelled too, or Close (R19). A commit in flight when the
	// session is lost or closed fails with an error that is both ErrUncertain and ErrSessionLost (R82); one that was not
	// sent is ErrSessionLost alone (R8). Right after a connection broke the next commit may be ErrUncertain as well
	// (R19). A context that has ended before anything was sent is returned as its plain error (R33). If several reasons
	// hold for one operation, ErrVersion comes after ErrDenied and ErrNotFound, and before ErrNotEmpty (R83).
	//
	// The Revision is that of the commit, whatever its ops: the Modified of every node that it wrote (R47); of one that
	// wrote nothing, that of the whole store, however old what it checked is (R84). No commit, be it all checks, or of
	// what its session has just read, is decided by a state older than its call (R112). Commits that were under way at
	// once may have it together; one that was sent after another was answered, by whomever, has no smaller one (R85).
	// Failed commits and Sync may use revisions up: they rise, they do not count.
	Commit(ctx context.Context, ops ...Op) (Revision, error)

	// Watch returns a Watcher with no targets. ctx bounds the call, not the
	// Watcher (R32). The caller closes it; it ends with the session too (R66).
	Watch(ctx context.Context) (Watcher, error)

	// Limits says what one Commit may hold (R52).
	Limits() Limits
}

// A Session is one life with the service. Everything it owns (ephemeral nodes,
// locks) ends with it, and it never comes back: the owner opens another (R8).
type Session interface {
	Store

	// ID names the session at the service, for people and for tests. It is
	// unique among all sessions that the service has had (R86).
	ID() string

	// Lock waits for its turn among all who lock dir (R87), in the order of arrival (R88), and returns the lock. A
	// child of dir whose name lacks "latch-" is nobody's place (R87). dir and its parents are made when missing, as
	// often as they vanish meanwhile, and the owner's node is ephemeral and holds value (R89). Two callers on one
	// session exclude each other (R90). A waiter keeps its place over broken connections and restarts of the service
	// (R91); one whose node somebody else deletes takes a new place, at the end (R92). While the service cannot be
	// reached it goes on trying. When ctx ends first the error wraps the context's, and ErrUnavailable when that was
	// the cause (R93); nothing is left in the queue: for as long as the session lives the adapter goes on to remove
	// its place, refused by the service or not, and what comes late (R94).
	Lock(ctx context.Context, dir string, value []byte) (Lock, error)

	// TryLock is Lock without waiting: ErrHeld when somebody else has or waits
	// for it (R42). It leaves nothing behind either (R94).
	TryLock(ctx context.Context, dir string, value []byte) (Lock, error)

	// Deadline is the earliest instant at which somebody else could own what this session owns (R95): the send time of
	// the last acknowledged heartbeat plus the timeout that the service granted, less a margin; answers that come late
	// do not move it (R96). A reconnect within the session is a heartbeat; a commit only where it lengthens the
	// session at the service (R95). It carries a monotonic reading (R113); compare it with time.Now. It does not go
	// back (R97). Nothing owned is to be used past it.
	Deadline() time.Time

	// Done is closed when the session is lost or closed, no later than Deadline (R13).
	Done() <-chan struct{}

	// Err is nil until Done is closed, then says why; it wraps ErrSessionLost (R98).
	Err() error

	// Close ends the session at the service, so that its ephemeral nodes vanish at once (R99), and joins its
	// goroutines (R100). Its Registry keeps nothing of it then (R114). On a session that is lost or cut off it still
	// tries once to end it at the service (R101). It waits for the service no longer than ctx (R102); with a ctx that
	// has ended already it makes one attempt, of at most a quarter of the session's timeout (R34). The error then says
	// that the nodes vanish only by expiry, and nil that they are gone (R99). Calls in flight fail with ErrSessionLost
	// (R103). It is idempotent (R104): a Close beside another, or after it, waits no longer than its own ctx either
	// (R102), and holds up no other session (R16).
	Close(ctx context.Context) error
}

// A Lock is held until it is released or its session ends (R108).
type Lock interface {
	// Path is the owner's node: unique for each acquisition, a child of the directory (R89).
	Path() string

	// Token rises strictly from each holder of a directory to the next, over
	// restarts of the service too. It is the Created of the owner's node (R105).
	Token() Revision

	// Guard makes any Commit fail with ErrNotFound once the lock is gone (R106), and lets it pass until then, from any
	// session, whatever was Set in the owner's node (R107). A node that others make at Path later lets it pass again.
	Guard() Op

	// Lost is closed when the lock is no longer held: released, session lost (R108), or
	// its node deleted by somebody else, while the holder was cut off too (R109).
	Lost() <-chan struct{}

	// Release gives the lock to the next in line, if it is still held. It is idempotent and deletes nothing but its own
	// node; when Lost was closed because that is gone, what others make at Path stays (R110). nil says that the node is
	// gone, whoever deleted it (R111). On a lost session it fails with ErrSessionLost, unless it was known before that
	// the node is gone (R8). What is refused with ErrDenied is tried again by the next Release (R111). When ctx ends
	// first, or has ended already, the release goes on for as long as the session lives (R34). The session keeps nothing
	// of a lock that was released (R114).
	Release(ctx context.Context) error
}
