package etcd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

const sessionTimeout = harness.SessionTimeout

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the tests of both services use.
var (
	within     = harness.Within
	commit     = harness.Commit
	eventually = harness.Eventually
	follow     = harness.Follow
)

// connect opens a registry on a client of its own.
func connect(t testing.TB, bed *testbed.Etcd, change ...func(*etcd.Config)) (*etcd.Registry, *testbed.Client) {
	t.Helper()
	client := bed.Client()
	cfg := etcd.Config{
		Endpoints: client.Endpoints(), DialOptions: client.DialOptions(),
		Namespace: "test", SessionTimeout: sessionTimeout,
	}
	for _, c := range change {
		c(&cfg)
	}
	reg, err := etcd.Open(within(t, 20*time.Second), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	return reg, client
}

// open opens a session on a client of its own.
func open(t testing.TB, bed *testbed.Etcd, change ...func(*etcd.Config)) (registry.Session, *testbed.Client) {
	t.Helper()
	reg, client := connect(t, bed, change...)
	s, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	return s, client
}
