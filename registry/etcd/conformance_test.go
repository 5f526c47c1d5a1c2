package etcd_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
	t.Run("OneMember", func(t *testing.T) { prove(t, testbed.StartEtcd, testbed.Options{Users: true}) })
	t.Run("ThreeMembers", func(t *testing.T) { prove(t, testbed.StartEtcd, testbed.Options{Members: 3}) })
}

// What people run is often older than the client: Debian's etcd-server is 3.4.
func TestConformanceOfAnOlderServer(t *testing.T) {
	prove(t, testbed.StartEtcdProcess, testbed.Options{})
}

func prove(t *testing.T, start func(testing.TB, testbed.Options) *testbed.Etcd, o testbed.Options) {
	var served string
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		bed := start(tb, o)
		if status, err := bed.Admin().Status(tb.Context(), bed.Endpoints()[0]); err == nil {
			served = fmt.Sprintf("served by %d × etcd %s", bed.Members(), status.Version)
		}
		return newHarness(bed)
	})
	t.Log(served)
}

// subtree is the keys of a node and of what is up to three levels below it.
func subtree(path string) []testbed.Range {
	key := etcd.NodeKey(path)
	ranges := []testbed.Range{{From: key, To: key + "\x00"}}
	depth := strings.Count(path, "/")
	for below := depth + 1; below <= depth+3; below++ {
		prefix := strings.Replace(key, fmt.Sprintf("/%d/", depth), fmt.Sprintf("/%d/", below), 1)
		ranges = append(ranges, testbed.Range{From: prefix + "/", To: prefix + "0"}) // '0' follows '/'
	}
	return ranges
}

func newHarness(bed *testbed.Etcd) conformance.Harness {
	cfg := harness.Config{
		Bed: bed, Timeout: harness.SuiteTimeout, Forget: bed.Compact, Forgot: bed.Compacted,
		Connect: func(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) (registry.Registry, harness.Way) {
			tb.Helper()
			client := bed.Client()
			cfg := etcd.Config{
				Endpoints: client.Endpoints(), Namespace: namespace, SessionTimeout: timeout, DialOptions: client.DialOptions(),
			}
			if bed.Users() {
				cfg.Username, cfg.Password = testbed.EtcdUser, testbed.EtcdPassword
			}
			reg, err := etcd.Open(ctx, cfg)
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
	if bed.Users() {
		cfg.Deny = func(path string) (func(), error) { return bed.Deny(subtree(path)...) }
	} else {
		cfg.Lacks = map[string]string{"Deny": "these servers run without users"}
	}
	if bed.Members() > 1 {
		// Time for a restart and an election; a new leader lets every lease live for a
		// full timeout more.
		cfg.Timeout *= 2
		cfg.Grace += cfg.Timeout
	}
	return harness.New(cfg)
}
