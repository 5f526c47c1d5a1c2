package zookeeper

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

// Lock queues up in dir as Curator's LeaderLatch does: the two exclude each other.
func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.spawn, latch.WithForm(curator{s}))
}

// TryLock is Lock without waiting.
func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.spawn, latch.WithForm(curator{s}))
}

// curator is the form of Curator's LeaderLatch: a sequential node, to whose name
// the service adds ten digits by which all contenders are sorted. Its prefix has an
// id by which a node is found whose creation was not answered.
type curator struct{ s *session }

var _ latch.Form = curator{}

const (
	marker = "latch-"
	digits = "0000000000" // as many as the service adds
)

// Join sends one create.
func (c curator) Join(ctx context.Context, prefix string, value []byte) (string, error) {
	op := registry.CreateEphemeral(prefix+digits, value)
	if err := c.s.reg.cfg.Limits.Validate([]registry.Op{op}); err != nil {
		return "", fmt.Errorf("zookeeper: %w", err)
	}
	op.Path = prefix
	if c.s.tree.reserves(prefix) {
		return "", fmt.Errorf("zookeeper: %w: %s belongs to ZooKeeper itself", registry.ErrInvalid, prefix)
	}
	if err := c.s.alive(ctx); err != nil {
		return "", err
	}
	results, err := c.s.link.Multi(ctx, &zk.CreateRequest{
		Path: c.s.tree.at(prefix), Data: data(value), Acl: c.s.reg.acl, Flags: zk.FlagEphemeral | zk.FlagSequence,
	})
	if err != nil {
		return "", c.s.refusal([]registry.Op{op}, results, err)
	}
	path, ok := c.s.tree.path(results[0].String)
	if !ok {
		return "", fmt.Errorf("zookeeper: join: %w: the service has answered %q to %q", registry.ErrUncertain, results[0].String, prefix)
	}
	return path, nil
}

// Place is the number that the service has added. What does not end with one is
// none of Curator's.
//
// The numbers of a directory are 32 bits wide and count its children over its whole
// life. Beyond the greatest the service gives out that one again and again, or
// negative ones, and Curator sorts as text: then each contender may hold itself
// for the first.
func (c curator) Place(name string) (int64, bool, error) {
	i := strings.LastIndex(name, marker)
	if i < 0 {
		return 0, false, nil
	}
	number := name[i+len(marker):]
	place, err := strconv.ParseInt(number, 10, 32)
	added := err == nil && len(number) >= len(digits) && number[0] != '+'
	switch {
	case !added:
		return 0, false, nil
	case place < 0, place == math.MaxInt32:
		return 0, true, fmt.Errorf("zookeeper: the directory has used up its sequence numbers (%s), so that there is no order any more: delete the directory while nobody needs the lock, and it will count from 0 again", name)
	case len(number) > len(digits):
		return 0, false, nil
	}
	return place, true, nil
}

// Settle returns true: a create that was not answered went out on a connection of
// the session, or never will. A Sync on the same connection comes after it; and when
// the session goes on with another connection the service closes that one, and refuses what
// arrives late from it, so what a quorum has not seen by the time of a Sync will never be.
func (c curator) Settle(context.Context) bool { return true }
