package zookeeper_test

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
	"github.com/elasticron/elasticron/registry/zookeeper"
)

func TestConformance(t *testing.T) {
	for name, o := range map[string]testbed.ZooKeeperOptions{"OneServer": {}, "ThreeServers": {Members: 3}} {
		t.Run(name, func(t *testing.T) { prove(t, o) })
	}
}

// The oldest and the newest server that are promised.
func TestConformanceOfOtherVersions(t *testing.T) {
	for _, version := range []string{"3.5.10", "3.9.3"} {
		t.Run(version, func(t *testing.T) { prove(t, testbed.ZooKeeperOptions{Version: version}) })
	}
}

func prove(t *testing.T, o testbed.ZooKeeperOptions) {
	var served string
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		bed := testbed.StartZooKeeper(tb, o)
		served = fmt.Sprintf("served by %d × ZooKeeper %s, %s", bed.Members(), bed.Version(), bed.Way())
		return newHarness(bed)
	})
	t.Log(served)
}

func newHarness(bed *testbed.ZooKeeper) conformance.Harness {
	cfg := harness.Config{
		Bed: bed, Timeout: harness.SuiteTimeout,
		Deny: bed.Deny,
		Connect: func(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) (registry.Registry, harness.Way) {
			tb.Helper()
			client := bed.Client()
			reg, err := zookeeper.Open(ctx, zookeeper.Config{Servers: client.Addrs(), Namespace: namespace, SessionTimeout: timeout})
			require.NoError(tb, err)
			return reg, client
		},
		Expire: func(id string) error {
			n, err := strconv.ParseUint(id, 16, 64)
			if err != nil {
				return err
			}
			return bed.Expire(int64(n))
		},
		// The server's tick of half a second, and a busy machine.
		Grace: 1500 * time.Millisecond,
	}
	if bed.Members() > 1 {
		// Time for a restart and an election; a new leader lets every session live for
		// a full timeout more.
		cfg.Timeout *= 2
		cfg.Grace += cfg.Timeout
	}
	return harness.New(cfg)
}
