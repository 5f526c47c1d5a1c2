package etcd

import (
	"context"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

// alone is a session whose commits share no request, and so no revision: the
// contenders for a lock are told apart by it.
type alone struct{ *session }

func (s alone) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	return s.commit(ctx, ops, false)
}

// Lock queues up in dir, in the order of creation revisions.
func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, alone{s}, dir, value, false, s.Spawn)
}

// TryLock is Lock without waiting.
func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, alone{s}, dir, value, true, s.Spawn)
}
