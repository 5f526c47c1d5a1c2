package etcd

import (
	"cmp"
	"context"
	"errors"
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
}

func newLogin(auth pb.AuthClient, cfg Config) *login {
	l := &login{auth: auth, turn: semaphore.NewWeighted(1)}
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
	defer l.turn.Release(1)
	if token := l.token.Load(); token != nil {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	answer, err := l.auth.Authenticate(ctx, l.user, callOptions...)
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
		return nil, err
	}
	token := answer.GetToken()
	l.token.Store(&token)
	return &token, nil
}

// refused forgets a token, unless another has taken its place.
func (l *login) refused(token *string) { l.token.CompareAndSwap(token, nil) }

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
		err = request(show(ctx, token))
		if token != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) {
			err = rpctypes.ErrGRPCInvalidAuthToken // the service asked for none before
		}
		if err == nil || judge(err) != stale {
			return err
		}
		if l.refused(token); !again {
			return err
		}
	}
}
