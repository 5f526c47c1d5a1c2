package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// etcd applies the write that fills its space, and then answers that there is none: so
// a commit with that answer is one whose outcome nobody knows.
func TestNoSpaceIsUncertain(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	fills := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if _, isTxn := req.(*pb.TxnRequest); isTxn && err == nil {
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	}
	s, _ := open(t, bed, func(cfg *etcd.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(fills))
	})
	ctx := within(t, 10*time.Second)
	_, err := s.Commit(ctx, registry.Create("/a", nil))
	require.ErrorIs(t, err, registry.ErrUncertain)
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	nodes, err := s.Get(ctx, "/a")
	require.NoError(t, err)
	require.True(t, nodes[0].Exists())
}

// What may be repeated is not repeated for it: nothing frees space by itself.
func TestNoSpaceEndsOpenAtOnce(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	full := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, isGrant := req.(*pb.LeaseGrantRequest); isGrant {
			return rpctypes.ErrGRPCNoSpace
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	reg, _ := connect(t, bed, func(cfg *etcd.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(full))
	})
	_, err := reg.Open(context.Background())
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
}
