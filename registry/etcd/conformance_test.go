package etcd_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/etcd"
)

func TestConformance(t *testing.T) {
	t.Run("OneMember", func(t *testing.T) { prove(t, testbed.StartEtcd, 1) })
	t.Run("ThreeMembers", func(t *testing.T) { prove(t, testbed.StartEtcd, 3) })
}

// What people run is often older than the client: Debian's etcd-server is 3.4.
func TestConformanceOfAnOlderServer(t *testing.T) { prove(t, testbed.StartEtcdProcess, 1) }

func prove(t *testing.T, start func(testing.TB, testbed.Options) *testbed.Etcd, members int) {
	var served string
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		bed := start(tb, testbed.Options{Members: members})
		if status, err := bed.Admin().Status(tb.Context(), bed.Endpoints()[0]); err == nil {
			served = fmt.Sprintf("served by %d × etcd %s", members, status.Version)
		}
		return newHarness(bed)
	})
	t.Log(served)
}

func newHarness(bed *testbed.Etcd) conformance.Harness {
	cfg := harness.Config{
		Bed: bed, Timeout: sessionTimeout, Forget: bed.Compact, Forgot: bed.Compacted,
		Lacks: map[string]string{"Deny": "these servers run without users; auth_test.go tries one that has them"},
		Connect: func(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) (registry.Registry, harness.Way) {
			tb.Helper()
			client := bed.Client()
			reg, err := etcd.Open(ctx, etcd.Config{
				Endpoints: client.Endpoints(), Namespace: namespace, SessionTimeout: timeout, DialOptions: client.DialOptions(),
			})
			require.NoError(tb, err)
			return reg, client
		},
		Expire: func(id string) error {
			lease, err := strconv.ParseInt(id, 16, 64)
			if err != nil {
				return err
			}
			return bed.Revoke(lease)
		},
		// The server's half-second expiry loop, and a busy machine.
		Grace: 1500 * time.Millisecond,
	}
	if bed.Members() > 1 {
		// Time for a restart and an election; a new leader lets every lease live for a
		// full timeout more.
		cfg.Timeout *= 2
		cfg.Grace += cfg.Timeout
	}
	return harness.New(cfg)
}
