package etcd_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

func TestOpenUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	require.NoError(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, user := range map[string]string{"NoLogin": "", "Login": "eva"} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			cfg := etcd.Config{
				Endpoints: []string{closed.Addr().String(), silent.Addr().String()}, Namespace: "shop", DialTimeout: 2 * time.Second,
			}
			if user != "" {
				cfg.Username, cfg.Password = user, "s3cret"
			}
			_, err := etcd.Open(context.Background(), cfg)
			require.ErrorIs(t, err, registry.ErrUnavailable)
			require.Less(t, time.Since(start), 3*time.Second)
			text := err.Error()
			require.Contains(t, text, "no answer within 2s")
			require.Contains(t, text, closed.Addr().String()+": dial tcp "+closed.Addr().String()+": connect: connection refused")
			require.Contains(t, text, silent.Addr().String()+": ")
			require.NotContains(t, text, "\n")
			require.NotContains(t, text, "s3cret")
		})
	}
	t.Run("Canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		_, err := etcd.Open(ctx, etcd.Config{Endpoints: []string{silent.Addr().String()}, Namespace: "shop", DialTimeout: time.Minute})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(start), 5*time.Second)
	})
}

func TestOpenOneOfSeveral(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	reg, err := registry.Open(within(t, 10*time.Second), "etcd://"+closed.Addr().String()+","+strings.Join(bed.Endpoints(), ",")+"/team/shop")
	require.NoError(t, err)
	defer reg.Close()
	require.Equal(t, "team/shop", reg.Namespace())
}

func TestOpenSessionWaits(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	reg, client := connect(t, bed)
	heal := client.Refuse()
	_, err := reg.Open(within(t, 300*time.Millisecond))
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	time.AfterFunc(300*time.Millisecond, heal)
	s, err := reg.Open(within(t, 10*time.Second))
	require.NoError(t, err)
	require.NoError(t, s.Err())
}

// A connection may take as long as the setting says, up to a third of a session's timeout.
func TestASlowConnection(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	slow := func(ctx context.Context, addr string) (net.Conn, error) {
		late := time.NewTimer(1500 * time.Millisecond)
		defer late.Stop()
		select {
		case <-late.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	reg, err := etcd.Open(within(t, 20*time.Second), etcd.Config{
		Endpoints: bed.Endpoints(), Namespace: "shop", DialTimeout: 10 * time.Second, SessionTimeout: 6 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(slow)},
	})
	require.NoError(t, err)
	require.NoError(t, reg.Close())
}
