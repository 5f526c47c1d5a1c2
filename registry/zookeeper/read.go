package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

const (
	// maxReads is how many requests of one call are under way at once, where each asks for a node.
	maxReads = 64
	// maxTogether is how many nodes a request asks for, where it can ask for several: as many values of a megabyte are half
	// of the longest answer.
	maxTogether = 32
	// maxRequests is how many of these are under way at once.
	maxRequests = 8
	// maxAhead is about how many bytes of values are asked for at once: the answers to heartbeats come behind them.
	maxAhead = 2 << 20
)

// Get asks for up to 32 nodes by a request, and a server that is older than 3.6 for every node by itself.
func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := s.AliveFor(ctx, "get", paths...); err != nil {
		return nil, err
	}
	nodes := make([]registry.Node, len(paths))
	some := func(ctx context.Context, from, to int) error {
		requests := (len(paths)-1)/(to-from) + 1
		apart := maxReads / min(requests, maxRequests)
		return s.getSome(ctx, paths[from:to], nodes[from:to], apart)
	}
	first := 0
	if s.valueSize.Load() == 0 && len(paths) > maxTogether { // it tells how large they are
		first = maxTogether
		if err := some(ctx, 0, first); err != nil {
			return nil, err
		}
		s.valueSize.CompareAndSwap(0, 1) // none exists
	}
	together := func() int { return s.atOnce(maxTogether*maxRequests) / maxRequests }
	if err := pipeline(ctx, maxRequests, first, len(paths), together, some); err != nil {
		return nil, err
	}
	return nodes, nil
}

// atOnce is how many nodes may be asked for at once, most if they are as small as nearly all are.
func (s *session) atOnce(most int) int {
	return min(max(maxAhead/int(max(s.valueSize.Load(), 1)), maxRequests), most)
}

// getSome reads a few nodes into nodes, with so many requests at once where each asks for one.
func (s *session) getSome(ctx context.Context, paths []string, nodes []registry.Node, apart int) error {
	if len(paths) > 1 {
		at := make([]string, len(paths))
		for i, p := range paths {
			at[i] = s.tree.at(p)
		}
		found, err := s.link.GetAll(ctx, at)
		if err != nil {
			return fail("get", paths[0], err)
		}
		for i, f := range found {
			if nodes[i], err = s.found(paths[i], f.Value, f.Stat, f.Err); err != nil {
				return err
			}
		}
		if found != nil {
			return nil
		}
	}
	one := func() int { return 1 }
	return pipeline(ctx, apart, 0, len(paths), one, func(ctx context.Context, i, _ int) (err error) {
		nodes[i], err = s.getOne(ctx, paths[i])
		return err
	})
}

func (s *session) getOne(ctx context.Context, path string) (registry.Node, error) {
	value, stat, err := s.link.Get(ctx, s.tree.at(path), false)
	return s.found(path, value, stat, err)
}

// found is what a read of a node has found.
func (s *session) found(path string, value []byte, stat *zk.Stat, err error) (registry.Node, error) {
	switch {
	case err == nil:
		s.read(len(value))
		return s.node(path, value, stat), nil
	case errors.Is(err, zk.ErrNoNode):
		return registry.Node{Path: path}, nil
	}
	return registry.Node{}, fail("get", path, err)
}

// pipeline calls do for from…n-1, for a few in each call and with so many calls at once, and returns the first error; the
// calls that follow it are not made.
func pipeline(
	ctx context.Context, atOnce, from, n int, few func() int, do func(ctx context.Context, from, to int) error,
) error {
	if from < n && n-from <= few() {
		return do(ctx, from, n)
	}
	calls, bounded := errgroup.WithContext(ctx)
	calls.SetLimit(atOnce)
	for from < n {
		i, to := from, min(from+few(), n)
		from = to
		calls.Go(func() error {
			if err := bounded.Err(); err != nil {
				return fmt.Errorf("zookeeper: get: %w: %w", registry.ErrUnavailable, err)
			}
			return do(bounded, i, to)
		})
	}
	return calls.Wait()
}

// Children asks once; ZooKeeper lists in no order.
func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	if err := s.AliveFor(ctx, "children", path); err != nil {
		return nil, err
	}
	names, err := s.link.Children(ctx, s.tree.at(path), false)
	if err != nil {
		return nil, fail("children of", path, err)
	}
	names = s.tree.names(path, names)
	slices.Sort(names)
	return names, nil
}

// syncPause is the pause before Sync asks again.
const syncPause = 20 * time.Millisecond

// Sync is a multi of nothing but a check: it passes a quorum, which ZooKeeper's own sync does not, and what is read
// after it in this session is not older. That the check is refused is as good an answer.
func (s *session) Sync(ctx context.Context) error {
	if err := s.Alive(ctx); err != nil {
		return err
	}
	check := &zk.CheckVersionRequest{Path: s.tree.at("/"), Version: -1}
	for {
		_, err := s.link.Multi(ctx, check)
		switch {
		case err == nil, denies(err), errors.Is(err, zk.ErrNoNode):
			return nil
		case s.Err() != nil:
			return s.Err()
		case ctx.Err() != nil:
			return fmt.Errorf("zookeeper: sync: %w: %w", registry.ErrUnavailable, ctx.Err())
		}
		wait.For(ctx, syncPause)
	}
}

const (
	containerOwner = math.MinInt64 // of a node that vanishes by itself when it is empty
	ttlOwner       = 0xff          // in the first byte: of a node with a time to live
)

// read takes note of how large a value was.
func (s *session) read(bytes int) {
	size := s.valueSize.Load()
	if size == 0 { // it is the first
		size = int64(bytes)
	}
	s.valueSize.Store(max(size+(int64(bytes)-size)/8, 1))
}

// node turns an answer into a node.
func (s *session) node(path string, value []byte, stat *zk.Stat) registry.Node {
	owner := stat.EphemeralOwner
	ephemeral := owner != 0 && owner != containerOwner && uint64(owner)>>56 != ttlOwner //nolint:gosec // the bits matter
	return registry.Node{
		Path: path, Value: value, Version: registry.Version(stat.Version),
		Created: registry.Revision(stat.Czxid), Modified: registry.Revision(stat.Mzxid),
		Ephemeral: ephemeral, Owned: ephemeral && owner == s.number,
	}
}
