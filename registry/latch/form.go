package latch

import (
	"context"
	"strings"

	"github.com/elasticron/elasticron/registry"
)

// marker is in the name of every contender.
const marker = "latch-"

// A Form is how the clients of a service queue up for a lock, where they have a way of their own: those who follow it
// and Elasticron then exclude each other. All who lock a directory must follow the same one. Without a Form the latch
// names the nodes itself and goes by Created. One Form serves one call of Acquire or many; its methods may be called
// concurrently, and after Acquire has returned.
type Form interface {
	// Join makes a contender's node: ephemeral, with the value, at prefix and whatever the service appends. prefix is
	// the path of a child of the locked directory, ends with "-latch-" and is unique to the contender. Join tries once,
	// and may try once more with the directory where there is none; it fails as a Commit of that one create does.
	//
	// Who knows the path beforehand returns it with every error too. An unknown outcome is then settled by joining
	// again, which fails with ErrExists when the node is there. Who learns it from the answer returns "" with an error;
	// then the children whose names begin as prefix does are the contender's.
	Join(ctx context.Context, prefix string, value []byte) (path string, err error)

	// Place returns the number by which a child of a directory is ordered. The service must give out rising numbers;
	// children with the same number are ordered by Created. ok is false for what is no contender. An error means that
	// the order of this directory is lost, and says what to do: Acquire fails with it.
	Place(name string) (place int64, ok bool, err error)

	// Settle waits until attempts to Join whose outcome is unknown are settled by a look: from then on, a Sync and then
	// Children show a node that was made, and no other will be. It returns false, at once, where a service cannot
	// promise that; the latch then watches the directory for such a node as long as the session lives. It also returns
	// false when ctx ends.
	Settle(ctx context.Context) bool
}

// An EndWatcher is a Watcher that can follow a node to its end alone. AddUntilGone is Add of a Self target that tells
// nothing after an absence. Where a service keeps a watch for each node whose creation is awaited, it spares the latch
// one for each wait: the names of contenders are never used again. The Watchers of the session that is passed to
// Acquire may be EndWatchers.
type EndWatcher interface {
	registry.Watcher
	AddUntilGone(path string) error
}

// An Option of Acquire.
type Option func(*contender)

// WithForm makes the contender queue up in the service's own form.
func WithForm(f Form) Option { return func(c *contender) { c.form = f } }

// byCreated is the form of services that have none: one name, which follows
// Curator's pattern, and a number that says nothing.
type byCreated struct{ session registry.Session }

func (f byCreated) Join(ctx context.Context, prefix string, value []byte) (string, error) {
	path := prefix + "0000000000"
	_, err := f.session.Commit(ctx, registry.CreateEphemeral(path, value))
	return path, err
}

func (byCreated) Place(name string) (int64, bool, error) {
	return 0, strings.Contains(name, marker), nil
}

func (byCreated) Settle(context.Context) bool { return false }
