package etcd

import (
	"context"
	"testing"

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
