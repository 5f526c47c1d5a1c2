package etcd

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// loginTime is more than a busy service needs for a login, and less than a member that hangs would hold all others up.
const loginTime = 5 * time.Second

// A login gives requests and streams the token of a user, one for all, and asks for the next once the service has
// refused it. etcd's own client asks for one with each stream, which takes a busy server longer than a heartbeat may
// take, and shows the token that was refused, for which servers before 3.5 refuse to give another, without end.
type login struct {
	auth  pb.AuthClient
	user  *pb.AuthenticateRequest // nil: nobody logs in
	turn  *semaphore.Weighted     // of who asks
	token atomic.Pointer[string]  // nil: none is known to be good. Empty: the service asks for none
	beats atomic.Bool             // the service has refused a heartbeat for its token

	// A login that takes longer holds up no other: a member that hangs, or a login that a service loses, costs one.
	patience time.Duration
}

func newLogin(auth pb.AuthClient, cfg Config) *login {
	l := &login{auth: auth, turn: semaphore.NewWeighted(1), patience: max(cfg.SessionTimeout/4, time.Second)}
	if cfg.Username != "" {
		l.user = &pb.AuthenticateRequest{Name: cfg.Username, Password: cfg.Password}
	}
	return l
}

// get returns the token, for which it may have to ask.
func (l *login) get(ctx context.Context) (*string, error) {
	if token := l.token.Load(); token != nil || l.user == nil {
		return token, nil
	}
	if err := l.turn.Acquire(ctx, 1); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	release := sync.OnceFunc(func() { l.turn.Release(1) })
	defer release()
	if token := l.token.Load(); token != nil {
		return token, nil
	}
	defer time.AfterFunc(l.patience, release).Stop()
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	answer, err := l.auth.Authenticate(ctx, l.user, callOptions...)
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
		return nil, err
	}
	token := answer.GetToken()
	l.token.CompareAndSwap(nil, &token) // who has asked later may have been told sooner
	return &token, nil
}

// forBeat is the token for a heartbeat. Older servers look at none there, and a password is checked slowly on purpose: so
// a heartbeat waits for a login only where one was refused.
func (l *login) forBeat(ctx context.Context) (*string, error) {
	if l.beats.Load() {
		return l.get(ctx)
	}
	return l.token.Load(), nil
}

// refused reports whether err refuses a token, and not its user, and forgets it then, unless another has taken its place.
// Nothing was done.
func (l *login) refused(token *string, err error) bool {
	asked := l.user != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) // for one, as it did not before
	if !asked && judge(err) != stale {
		return false
	}
	l.token.CompareAndSwap(token, nil)
	return true
}

// show adds the token, if there is one, to what goes with a request or a stream.
func show(ctx context.Context, token *string) context.Context {
	if token == nil || *token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, *token)
}

// call makes a request that shows the token, and makes it again with the next one if that is refused: the service has
// not done it then.
func (l *login) call(ctx context.Context, request func(context.Context) error) (err error) {
	for again := true; ; again = false {
		token, failed := l.get(ctx)
		if failed != nil {
			return cmp.Or(err, failed) // a request that was refused leaves nothing uncertain
		}
		if err = request(show(ctx, token)); !l.refused(token, err) {
			return err
		}
		if judge(err) != stale {
			err = rpctypes.ErrGRPCInvalidAuthToken // which it is from now on
		}
		if !again {
			return err
		}
	}
}
