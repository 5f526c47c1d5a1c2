package core_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// services are the real ones. Every test of onEach runs on each.
var services = []struct {
	name  string
	start func(t *testing.T) service
}{
	{"etcd", startEtcd},
	{"zookeeper", startZooKeeper},
}

// A service is a real one, as a test sees it.
type service struct {
	// client returns a registry on a client of its own, and its way there.
	client func(t *testing.T, ns string, timeout time.Duration) (registry.Registry, way)
	// expire ends a session at the service without telling its client.
	expire func(t *testing.T, sessionID string)
	// readOnly takes the right to write a node away from everybody. ZooKeeper only.
	readOnly func(t *testing.T, path string) (allow func())
	// late is how long after its timeout the service may end a session.
	late time.Duration
}

// A way is one client's to a service.
type way interface {
	Blackhole(d testbed.Direction) (heal func())
	Hits() int
	// Sent counts commits and all other requests but heartbeats since the last call.
	Sent() (commits, others int)
}

// onServices runs a test on every real service, beside other tests.
func onServices(t *testing.T, test func(t *testing.T, s service)) {
	t.Helper()
	t.Parallel()
	sideBySide(t, test)
}

func sideBySide(t *testing.T, test func(t *testing.T, s service)) {
	t.Helper()
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s.start(t))
		})
	}
}

// bed is where instances of a job run on the service.
func (s service) bed(t *testing.T) *bed {
	t.Helper()
	return &bed{
		T: t, ns: freshNamespace(),
		client: func(t *testing.T, ns string) registry.Registry {
			reg, _ := s.client(t, ns, sessionTimeout)
			return reg
		},
		expire: func(id string) { s.expire(t, id) },
	}
}

const sessionTimeout = harness.SessionTimeout

func startEtcd(t *testing.T) service {
	cluster := testbed.StartEtcd(t, testbed.Options{})
	return service{
		late: 500 * time.Millisecond,
		client: func(t *testing.T, ns string, timeout time.Duration) (registry.Registry, way) {
			t.Helper()
			c := cluster.Client()
			reg, err := etcd.Open(t.Context(), etcd.Config{
				Endpoints: c.Endpoints(), Namespace: ns, SessionTimeout: timeout, DialOptions: c.DialOptions(),
			})
			require.NoError(t, err)
			return reg, etcdWay{c}
		},
		expire: func(t *testing.T, id string) {
			t.Helper()
			lease, err := strconv.ParseInt(id, 16, 64)
			require.NoError(t, err)
			_, err = cluster.Admin().Revoke(context.Background(), clientv3.LeaseID(lease))
			require.NoError(t, err)
		},
	}
}

type etcdWay struct{ *testbed.Client }

func (w etcdWay) Sent() (commits, others int) {
	for method, n := range w.Requests() {
		switch method {
		case "/etcdserverpb.KV/Txn":
			commits += n
		case "/etcdserverpb.Lease/LeaseKeepAlive":
		default:
			others += n
		}
	}
	return commits, others
}

var roots atomic.Int64

// startZooKeeper uses the run's one server, below a root of the test's own.
func startZooKeeper(t *testing.T) service {
	bed := testbed.SharedZooKeeper(t)
	root := fmt.Sprintf("/core-%d-%d", os.Getpid(), roots.Add(1))
	return service{
		late: 500 * time.Millisecond, // a tick
		client: func(t *testing.T, ns string, timeout time.Duration) (registry.Registry, way) {
			t.Helper()
			c := bed.Client()
			reg, err := zookeeper.Open(t.Context(), zookeeper.Config{
				Servers: c.Addrs(), Namespace: ns, Chroot: root, SessionTimeout: timeout,
			})
			require.NoError(t, err)
			return reg, zookeeperWay{c}
		},
		expire: func(t *testing.T, id string) {
			t.Helper()
			n, err := strconv.ParseUint(id, 16, 64)
			require.NoError(t, err)
			require.NoError(t, bed.Expire(int64(n)))
		},
		readOnly: func(t *testing.T, path string) func() {
			t.Helper()
			conn, events, err := zk.Connect(bed.Addrs(), 10*time.Second, zk.WithLogInfo(false))
			require.NoError(t, err)
			t.Cleanup(func() {
				conn.Close()
				for range events {
					continue
				}
			})
			_, err = conn.SetACL(root+path, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
			require.NoError(t, err)
			return func() {
				_, err := conn.SetACL(root+path, zk.WorldACL(zk.PermAll), -1)
				require.NoError(t, err)
			}
		},
	}
}

type zookeeperWay struct{ *testbed.ZooKeeperClient }

func (w zookeeperWay) Sent() (commits, others int) {
	for op, n := range w.Requests() {
		switch op {
		case "multi", "setData", "create": // these two where a commit has no other operation
			commits += n
		case "ping", "heartbeat":
		default:
			others += n
		}
	}
	w.ResetRequests()
	return commits, others
}
