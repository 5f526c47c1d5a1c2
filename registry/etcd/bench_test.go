package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/etcd"
)

// BenchmarkRegistry compares the adapter with clientv3, on one member in this
// process that does not sync to disk: the harder comparison for the adapter. The
// raw transactions compare what create-if-absent needs and nothing else.
func BenchmarkRegistry(b *testing.B) {
	conformance.Bench(b, func(tb testing.TB) conformance.BenchHarness { return newBenchHarness(tb, false) })
}

// BenchmarkRegistryStrict lets the raw transactions compare the parent too, twice
// as the tree of the contract demands: it is there, and it is not ephemeral. What
// is left is the adapter's own cost.
func BenchmarkRegistryStrict(b *testing.B) {
	conformance.Bench(b, func(tb testing.TB) conformance.BenchHarness { return newBenchHarness(tb, true) })
}

// benchLimits are larger than those of an etcd as it is installed.
var benchLimits = registry.Limits{MaxOps: 400, MaxBytes: 4 << 20, MaxValue: 1 << 20}

const benchTimeout = time.Minute

type benchHarness struct {
	bed    *testbed.Etcd
	strict bool
}

func newBenchHarness(tb testing.TB, strict bool) *benchHarness {
	tb.Helper()
	// Nothing is compacted meanwhile: 13 minutes of commits are more than the 2 GiB of an etcd as it is installed.
	roomy := func(c *embed.Config) { c.QuotaBackendBytes = 8 << 30 }
	return &benchHarness{testbed.StartEtcd(tb, testbed.Options{Limits: benchLimits, Tune: roomy}), strict}
}

func (h *benchHarness) Close() { h.bed.Close() }

func (h *benchHarness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	// A full machine ends no session: the raw lease is as long.
	reg, err := etcd.Open(ctx, etcd.Config{
		Endpoints: h.bed.Endpoints(), Namespace: "bench", SessionTimeout: benchTimeout, Limits: benchLimits,
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, reg.Close()) })
	return reg
}

func (h *benchHarness) Raw(ctx context.Context, tb testing.TB) conformance.BenchClient {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: h.bed.Endpoints(), Context: context.WithoutCancel(ctx)})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, client.Close()) })
	lease, err := client.Grant(ctx, int64(benchTimeout.Seconds()))
	require.NoError(tb, err)
	alive, err := client.KeepAlive(context.WithoutCancel(ctx), lease.ID)
	require.NoError(tb, err)
	go func() {
		for range alive { // the client warns who does not read them
		}
	}()
	return &rawEtcd{client, lease.ID, h.strict}
}

// rawEtcd is clientv3 with the least that is correct: one transaction that
// compares CreateRevision with 0 for each key, and puts.
type rawEtcd struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	strict bool
}

var errRefused = errors.New("a condition does not hold")

func (r *rawEtcd) CreateEphemeral(ctx context.Context, path string, value []byte) error {
	return r.createAll(ctx, []string{path}, value, clientv3.WithLease(r.lease))
}

func (r *rawEtcd) Create(ctx context.Context, paths []string, value []byte) error {
	return r.createAll(ctx, paths, value)
}

func (r *rawEtcd) createAll(ctx context.Context, paths []string, value []byte, opts ...clientv3.OpOption) error {
	var wanted []clientv3.Cmp
	if dir := path.Dir(paths[0]); r.strict && dir != "/" {
		wanted = append(wanted, clientv3.Compare(clientv3.Version(dir), ">", 0), clientv3.Compare(clientv3.LeaseValue(dir), "=", 0))
	}
	puts := make([]clientv3.Op, len(paths))
	for i, key := range paths {
		wanted = append(wanted, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
		puts[i] = clientv3.OpPut(key, string(value), opts...)
	}
	return r.commit(ctx, wanted, puts)
}

func (r *rawEtcd) commit(ctx context.Context, wanted []clientv3.Cmp, puts []clientv3.Op) error {
	resp, err := r.client.Txn(ctx).If(wanted...).Then(puts...).Commit()
	if err == nil && !resp.Succeeded {
		err = errRefused
	}
	return err
}

// Set keeps the lease of a key: a plain put would make an ephemeral node persistent.
func (r *rawEtcd) Set(ctx context.Context, paths []string, value []byte) error {
	wanted := make([]clientv3.Cmp, len(paths))
	puts := make([]clientv3.Op, len(paths))
	for i, key := range paths {
		wanted[i] = clientv3.Compare(clientv3.Version(key), ">", 0)
		puts[i] = clientv3.OpPut(key, string(value), clientv3.WithIgnoreLease())
	}
	return r.commit(ctx, wanted, puts)
}

func (r *rawEtcd) Watch(ctx context.Context, key string) (func(context.Context) error, error) {
	events := r.client.Watch(ctx, key, clientv3.WithCreatedNotify())
	next := func(ctx context.Context) error {
		select {
		case resp, open := <-events:
			if !open {
				return fmt.Errorf("watch of %s has ended", key)
			}
			return resp.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return next, next(ctx)
}
