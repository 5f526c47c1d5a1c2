package zookeeper_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// BenchmarkRegistry compares the adapter with the bare client, on one server whose
// data is in memory where possible, and which is let to compile what it runs, as
// ZooKeeper is installed; those of the tests are made to start quickly. Its heap holds
// the million nodes that are made.
func BenchmarkRegistry(b *testing.B) {
	conformance.Bench(b, func(tb testing.TB) conformance.BenchHarness {
		return &benchHarness{testbed.StartZooKeeper(tb, testbed.ZooKeeperOptions{Java: []string{"-XX:TieredStopAtLevel=4", "-Xms4g", "-Xmx4g"}})}
	})
}

// benchTimeout is long: 128 large commits under way hold heartbeats up, which are
// answered in order.
const benchTimeout = time.Minute

type benchHarness struct{ bed *testbed.ZooKeeper }

func (h *benchHarness) Close() { h.bed.Close() }

func (h *benchHarness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	reg, err := zookeeper.Open(ctx, zookeeper.Config{Servers: h.bed.Addrs(), Namespace: "bench", SessionTimeout: benchTimeout})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, reg.Close()) })
	return reg
}

func (h *benchHarness) Raw(ctx context.Context, tb testing.TB) conformance.BenchClient {
	tb.Helper()
	connected := make(chan struct{}, 1)
	conn, events, err := zk.Connect(h.bed.Addrs(), benchTimeout, zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				select {
				case connected <- struct{}{}:
				default:
				}
			}
		}))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		conn.Close()
		for range events {
			continue
		}
	})
	select {
	case <-connected:
	case <-ctx.Done():
		require.NoError(tb, ctx.Err())
	}
	return rawZooKeeper{conn}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// rawZooKeeper is the bare client: create and multi refuse by themselves.
type rawZooKeeper struct{ conn *zk.Conn }

var worldACL = zk.WorldACL(zk.PermAll)

func (r rawZooKeeper) CreateEphemeral(_ context.Context, path string, value []byte) error {
	_, err := r.conn.Create(path, value, zk.FlagEphemeral, worldACL)
	return err
}

func (r rawZooKeeper) Create(_ context.Context, paths []string, value []byte) error {
	ops := make([]any, len(paths))
	for i, path := range paths {
		ops[i] = &zk.CreateRequest{Path: path, Data: value, Acl: worldACL}
	}
	_, err := r.conn.Multi(ops...)
	return err
}

func (r rawZooKeeper) Set(_ context.Context, paths []string, value []byte) error {
	if len(paths) == 1 {
		_, err := r.conn.Set(paths[0], value, -1)
		return err
	}
	ops := make([]any, len(paths))
	for i, path := range paths {
		ops[i] = &zk.SetDataRequest{Path: path, Data: value, Version: -1}
	}
	_, err := r.conn.Multi(ops...)
	return err
}

// Watch arms the watch again by reading what has changed, as a careful user does.
func (r rawZooKeeper) Watch(_ context.Context, path string) (func(context.Context) error, error) {
	_, _, fired, err := r.conn.GetW(path)
	next := func(ctx context.Context) (err error) {
		select {
		case e := <-fired:
			if e.Err != nil {
				return fmt.Errorf("watch of %s: %w", path, e.Err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		_, _, fired, err = r.conn.GetW(path)
		return err
	}
	return next, err
}
