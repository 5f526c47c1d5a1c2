package core_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// onEtcd runs the test on an embedded etcd of its own, in real time.
func onEtcd(t *testing.T, test func(b *bed)) {
	bed1 := testbed.StartEtcd(t, testbed.Options{})
	test(&bed{
		T: t, ns: freshNamespace(),
		client: func(t *testing.T, ns string) registry.Registry {
			reg, err := etcd.Open(t.Context(), etcd.Config{
				Endpoints: bed1.Endpoints(), Namespace: ns, SessionTimeout: 2 * time.Second,
			})
			require.NoError(t, err)
			return reg
		},
		expire: func(id string) {
			lease, err := strconv.ParseInt(id, 16, 64)
			require.NoError(t, err)
			_, err = bed1.Admin().Revoke(context.Background(), clientv3.LeaseID(lease))
			require.NoError(t, err)
		},
	})
}
