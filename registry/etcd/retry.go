package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// leaderRequired lets a member that has lost its leader refuse at once.
var leaderRequired = metadata.Pairs(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)

// withLeader does not add to metadata of the caller's: what he sent elsewhere
// is none of etcd's business.
func withLeader(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, leaderRequired)
}

const (
	// The first attempt is short, since a member that hangs must not hold a call
	// for long while another could serve it; later ones allow for large answers.
	attemptMin = 2 * time.Second
	attemptMax = 30 * time.Second
	// maxStale bounds attempts with a login that the service keeps refusing.
	maxStale = 3
)

// retry runs a request that may be repeated until it is served, refused for
// good, or ctx ends.
func (r *Registry) retry(ctx context.Context, what string, request func(context.Context) error) error {
	ctx = withLeader(ctx)
	var last error
	for n := 0; ; n++ {
		err := r.attempt(ctx, n, request)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return gaveUp(ctx, what, last)
		}
		v := judge(err)
		if r.sessions.Closed() {
			return fail(what, registry.ErrClosed, err)
		}
		if !v.again || v == stale && n >= maxStale {
			return fail(what, v.is, err)
		}
		last = err
		if !pause(ctx, n) {
			return gaveUp(ctx, what, last)
		}
	}
}

func (r *Registry) attempt(ctx context.Context, n int, request func(context.Context) error) error {
	if len(r.cfg.Endpoints) == 1 { // nobody else to turn to
		return request(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Growing(n, attemptMin, attemptMax))
	defer cancel()
	return request(ctx)
}
