package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

// Lock queues up in dir as Curator's LeaderLatch does: the two exclude each other.
func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.Spawn, latch.WithForm(&curator{s: s}))
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.Spawn, latch.WithForm(&curator{s: s}))
}

// curator is the form of Curator's LeaderLatch: a sequential node, to whose name the service adds ten digits by which
// all contenders are sorted. Its prefix has an id by which a node is found whose creation was not answered.
type curator struct {
	s *session

	mu      sync.Mutex
	unknown []<-chan struct{} // creates whose answer did not come, until they are settled
}

const (
	marker = "latch-"
	digits = "0000000000" // as many as the service adds
)

// Join sends one create. Where the directory is missing it sends another, which makes the directory too: a container
// that somebody removes whenever it is empty cannot vanish in between.
func (c *curator) Join(ctx context.Context, prefix string, value []byte) (string, error) {
	op := registry.CreateEphemeral(prefix+digits, value)
	if err := c.s.reg.cfg.Limits.Validate([]registry.Op{op}); err != nil {
		return "", fmt.Errorf("zookeeper: %w", err)
	}
	op.Path = prefix
	if c.s.tree.reserves(prefix) {
		return "", fmt.Errorf("zookeeper: %w: %s belongs to ZooKeeper itself", registry.ErrInvalid, prefix)
	}
	if err := c.s.Alive(ctx); err != nil {
		return "", err
	}
	made, err := c.create(ctx, op)
	if dir := path.Dir(prefix); dir != "/" && errors.Is(err, registry.ErrNoParent) {
		if made, again := c.create(ctx, registry.Create(dir, nil), op); !errors.Is(again, registry.ErrExists) {
			return made, again
		}
	}
	return made, err
}

// create makes nodes, the last one with a number that the service adds, and returns its path.
func (c *curator) create(ctx context.Context, ops ...registry.Op) (string, error) {
	requests, last := c.s.requests(ops), len(ops)-1
	//nolint:forcetypeassert // ops are creates
	requests[last].(*zk.CreateRequest).Flags |= zk.FlagSequence
	w, settled, err := c.s.link.MultiAlone(ctx, requests...)
	if err != nil {
		c.mu.Lock()
		c.unknown = append(c.unknown, settled)
		c.mu.Unlock()
		return "", c.s.refusal(ops, w.Results, err)
	}
	made, ok := c.s.tree.path(w.Results[last].String)
	if !ok {
		return "", fmt.Errorf("zookeeper: join: %w: the service has answered %q to %q",
			registry.ErrUncertain, w.Results[last].String, ops[last].Path)
	}
	return made, nil
}

// Place is the number that the service has added. What does not end with one is none of Curator's.
//
// The numbers of a directory are 32 bits wide and count its children over its whole life. Beyond the greatest the
// service gives out that one again and again, or negative ones, and Curator sorts as text: then each contender may hold
// itself for the first.
func (c *curator) Place(name string) (int64, bool, error) {
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
		return 0, true, fmt.Errorf(
			"zookeeper: the directory has used up its sequence numbers (%s): delete the directory while nobody needs it", name)
	case len(number) > len(digits):
		return 0, false, nil
	}
	return place, true, nil
}

// Settle waits until the client is done with the creates that were not answered. Each went out on a connection of the
// session, or never will: a Sync on the same connection comes after it; and when the session goes on with another
// connection the service closes that one, and refuses what arrives late from it, so what a quorum has not seen by the
// time of a Sync will never be.
func (c *curator) Settle(ctx context.Context) bool {
	c.mu.Lock()
	unknown := c.unknown
	c.mu.Unlock()
	for _, settled := range unknown {
		select {
		case <-settled:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
