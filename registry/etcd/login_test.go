package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An onceOnly lets log in once.
type onceOnly struct {
	pb.AuthClient
	logins int
}

func (o *onceOnly) Authenticate(context.Context, *pb.AuthenticateRequest, ...grpc.CallOption) (*pb.AuthenticateResponse, error) {
	if o.logins++; o.logins > 1 {
		return nil, status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	return &pb.AuthenticateResponse{Token: "first"}, nil
}

// The service has certainly not done what it refused, though nobody can log in any more.
func TestARefusedTokenLeavesNothingUncertain(t *testing.T) {
	l := newLogin(&onceOnly{}, Config{Username: "eva", Password: "s3cret"})
	requests := 0
	err := l.call(t.Context(), func(context.Context) error {
		requests++
		return rpctypes.ErrGRPCInvalidAuthToken
	})
	require.Equal(t, 1, requests)
	require.Equal(t, stale, judge(err))
	err = l.call(t.Context(), func(context.Context) error { requests++; return nil })
	require.Equal(t, 1, requests)
	require.Equal(t, unreachable, judge(err))
}

// A hanging lets the first who logs in wait.
type hanging struct {
	pb.AuthClient
	logins atomic.Int64
}

func (h *hanging) Authenticate(ctx context.Context, _ *pb.AuthenticateRequest, _ ...grpc.CallOption) (*pb.AuthenticateResponse, error) {
	if h.logins.Add(1) == 1 {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &pb.AuthenticateResponse{Token: "second"}, nil
}

// A member that hangs holds up who has asked it; others ask too, a quarter of the session's timeout later.
func TestALoginAtAMemberThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &hanging{}
		l := newLogin(service, Config{Username: "eva", Password: "s3cret", SessionTimeout: 6 * time.Second})
		first := make(chan error, 1)
		go func() { _, err := l.get(t.Context()); first <- err }()
		synctest.Wait()
		begun := time.Now()
		token, err := l.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "second", *token)
		require.Equal(t, 1500*time.Millisecond, time.Since(begun))
		require.Equal(t, unreachable, judge(<-first))
		require.EqualValues(t, 2, service.logins.Load())
	})
}

// One whose answer was late does not take the place of a newer one.
func TestALateLoginIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogin(&lateFirst{}, Config{Username: "eva", Password: "s3cret", SessionTimeout: 4 * time.Second})
		first := make(chan *string, 1)
		go func() { token, _ := l.get(t.Context()); first <- token }()
		synctest.Wait()
		_, err := l.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "first", *<-first)
		require.Equal(t, "second", *l.token.Load())
	})
}

// A lateFirst answers the first who logs in late.
type lateFirst struct {
	pb.AuthClient
	logins atomic.Int64
}

func (h *lateFirst) Authenticate(context.Context, *pb.AuthenticateRequest, ...grpc.CallOption) (*pb.AuthenticateResponse, error) {
	if h.logins.Add(1) == 1 {
		<-time.After(3 * time.Second)
		return &pb.AuthenticateResponse{Token: "first"}, nil
	}
	return &pb.AuthenticateResponse{Token: "second"}, nil
}
