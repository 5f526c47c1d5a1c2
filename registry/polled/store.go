package polled

import (
	"context"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A Store keeps a tree of nodes, a table of sessions and one revision, and changes them in steps that are atomic: seen
// as a whole or not at all, and the later of two sees the earlier. So who sees a revision sees all that was written up
// to it: in SQL it is a row that each step locks, not a sequence, which runs ahead. A Store knows no time and starts
// nothing by itself.
//
// All methods are called from many goroutines; of reads and commits at most Config.MaxInFlight run at once. Each
// returns soon after its context has ended, and each but Close says with registry.ErrDenied that the service refuses
// who asks. Nothing that is passed may be changed, nor kept after the return; what is returned belongs to the caller.
type Store interface {
	// Begin adds a session with its counter at 1. The id was never used before. After an error it is not used again: a
	// session that was added all the same has nobody who raises its counter, and is ended.
	Begin(ctx context.Context, session string, timeout time.Duration) error

	// Beat raises the counter of a session and returns the revision of the store,
	// no older than the call. Without such a session it is registry.ErrSessionLost.
	Beat(ctx context.Context, session string) (registry.Revision, error)

	// Sessions lists all sessions, in any order.
	Sessions(ctx context.Context) ([]Session, error)

	// End removes a session and its ephemeral nodes in one step, if its counter stands at beat or beat is AnyBeat. The
	// revision rises when nodes went. That there is no such session, or that its counter has moved, is no error.
	End(ctx context.Context, session string, beat int64) error

	// Read returns those of paths that exist and all nodes one level below each of dirs, in any order, as they were at
	// one moment, which is no earlier than the call. Paths are distinct, dirs too; a node that is asked for as both may
	// come twice. There may be thousands, or none of the one kind. What is said of the root does not matter, but that
	// of its children does.
	Read(ctx context.Context, paths, dirs []string) ([]Node, error)

	// Commit applies ops in their order, all or none, in one step that also finds the session alive, unless it is
	// NoSession, and returns the revision of that step: it is higher than all before, and the Modified of every node
	// that was written. Operations and reasons are those of registry.Store.Commit; ops are valid already.
	//
	// A *registry.CommitError says which operation could not be applied, by its Index, and why; registry.ErrSessionLost
	// that there is no such session. registry.ErrUnavailable and registry.ErrDenied say that certainly nothing was
	// applied nor will be. After every other error nobody knows: the caller is told registry.ErrUncertain. So a Store
	// never sends a commit twice.
	Commit(ctx context.Context, session string, ops []registry.Op) (registry.Revision, error)

	// Close frees what the Store holds here; the data stays. It is called once,
	// when all sessions were closed. Calls that still run may fail.
	Close() error
}

// A Node is what Read returns. Path, Value, Version, Created and Modified are as
// in package registry; Ephemeral and Owned are set from Owner.
type Node struct {
	registry.Node

	// Owner is the session that made an ephemeral node; "" for a persistent one.
	Owner string
}

// A Session is a row of the table of sessions.
type Session struct {
	ID string
	// Beat is its counter.
	Beat int64
	// Timeout is what Begin was given.
	Timeout time.Duration
}

// NoSession is who commits for a registry.StoreCloser. It has no row, is always alive, and makes nothing ephemeral.
const NoSession = ""

// AnyBeat ends a session wherever its counter stands.
const AnyBeat int64 = -1
