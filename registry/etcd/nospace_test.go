package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
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
	require.ErrorContains(t, err, "compact, defragment each member, disarm the alarm")
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
	require.ErrorContains(t, err, "compact, defragment each member, disarm the alarm")
}

// A member whose quota is used up refuses writes, and sessions live on: what docs/operations.md says helps.
func TestAQuotaThatIsUsedUp(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) { c.QuotaBackendBytes = 4 << 20 }})
	reg, _ := connect(t, bed)
	s, err := reg.Open(within(t, 10*time.Second))
	require.NoError(t, err)
	ctx := within(t, time.Minute)
	commit(t, s, registry.Create("/a", nil), registry.CreateEphemeral("/e", nil))
	value := make([]byte, 256<<10)
	for err == nil { // each is kept
		_, err = s.Commit(ctx, registry.Set("/a", value, registry.AnyVersion))
	}
	require.ErrorIs(t, err, registry.ErrUncertain)
	require.ErrorContains(t, err, "its quota is used up")
	_, err = reg.Open(ctx)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorContains(t, err, "its quota is used up")
	outlives(t, s)
	_, err = s.Get(ctx, "/a")
	require.NoError(t, err)

	require.NoError(t, bed.Compact())
	_, err = bed.Admin().Defragment(ctx, bed.Endpoints()[0])
	require.NoError(t, err)
	_, err = s.Commit(ctx, registry.Set("/a", nil, registry.AnyVersion))
	require.ErrorIs(t, err, rpctypes.ErrNoSpace, "void: it needs no more")
	_, err = bed.Admin().AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(t, err)
	commit(t, s, registry.Set("/a", nil, registry.AnyVersion))
	require.NoError(t, s.Err())
}
