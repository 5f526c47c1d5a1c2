package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A verdict is what a failed request means for its caller.
type verdict struct {
	is    error // the sentinel of the contract
	sure  bool  // the server certainly did nothing
	again bool  // another attempt may succeed
}

var (
	denied  = verdict{is: registry.ErrDenied, sure: true}
	stale   = verdict{is: registry.ErrDenied, sure: true, again: true}
	refused = verdict{is: registry.ErrInvalid, sure: true}
	busy    = verdict{is: registry.ErrUnavailable, sure: true, again: true}
	broken  = verdict{is: registry.ErrUnavailable, sure: true}
	// Etcd applies the write that fills it, and answers the same.
	full        = verdict{is: registry.ErrUnavailable}
	unreachable = verdict{is: registry.ErrUnavailable, again: true}
)

// verdicts holds the refusals that etcd types: all but one of them come before anything is applied. Timeouts and leader
// changes are not among them: what they interrupted may still be applied, now or later.
var verdicts = map[error]verdict{
	rpctypes.ErrLeaseNotFound:        {is: registry.ErrSessionLost, sure: true},
	rpctypes.ErrPermissionDenied:     denied,
	rpctypes.ErrPermissionNotGranted: denied,
	rpctypes.ErrAuthFailed:           denied,
	rpctypes.ErrUserEmpty:            denied,
	rpctypes.ErrUserNotFound:         denied,
	rpctypes.ErrInvalidAuthMgmt:      denied,
	rpctypes.ErrInvalidAuthToken:     stale,
	rpctypes.ErrAuthOldRevision:      stale,
	rpctypes.ErrTooManyOps:           refused,
	rpctypes.ErrRequestTooLarge:      refused,
	rpctypes.ErrDuplicateKey:         refused,
	rpctypes.ErrNoLeader:             busy,
	rpctypes.ErrTooManyRequests:      busy,
	rpctypes.ErrNotCapable:           busy,
	rpctypes.ErrNoSpace:              full,
	rpctypes.ErrCorrupt:              broken,
}

// proposalDropped is raft's answer when there is no leader to hand a write to.
const proposalDropped = "raft proposal dropped"

func judge(err error) verdict {
	// An error of another kind may not be hashable.
	typed, _ := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err))
	if v, known := verdicts[typed]; known {
		return v
	}
	st, _ := status.FromError(err)
	switch {
	case st.Code() == codes.Unauthenticated, st.Code() == codes.PermissionDenied:
		return denied
	case st.Code() == codes.ResourceExhausted:
		return refused // the message is larger than gRPC takes
	case st.Message() == proposalDropped:
		return busy
	}
	return unreachable
}

// freeing is what an operator does about a quota that is used up; docs/operations.md has the commands.
const freeing = "its quota is used up: compact, defragment each member, disarm the alarm, " +
	"and run it with --auto-compaction-retention"

// fail wraps err once, as what it is in the contract.
func fail(what string, is, err error) error {
	if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrNoSpace) {
		err = fmt.Errorf("%w (%s)", err, freeing)
	}
	return fmt.Errorf("etcd: %s: %w: %w", what, is, err)
}

// gaveUp is the error of a call whose context ended while it was retried.
func gaveUp(ctx context.Context, what string, last error) error {
	if last == nil {
		return fmt.Errorf("etcd: %s: %w: %w", what, registry.ErrUnavailable, ctx.Err())
	}
	return fmt.Errorf("etcd: %s: %w: %w (last: %w)", what, registry.ErrUnavailable, ctx.Err(), rpctypes.Error(last))
}

const (
	pauseMin = 50 * time.Millisecond
	pauseMax = 500 * time.Millisecond
)

// pause waits before attempt n+1, with jitter; it reports whether ctx still lives.
func pause(ctx context.Context, n int) bool {
	d := wait.Growing(n, pauseMin, pauseMax)
	return wait.For(ctx, d/2+rand.N(d/2))
}

// leaderRequired lets a member that has lost its leader refuse at once.
var leaderRequired = metadata.Pairs(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)

// withLeader does not add to metadata of the caller's: what he sent elsewhere is none of etcd's business.
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

// retry runs a request that may be repeated until it is served, refused for good, or ctx ends.
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
		return r.login.call(ctx, request)
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Growing(n, attemptMin, attemptMax))
	defer cancel()
	return r.login.call(ctx, request)
}
