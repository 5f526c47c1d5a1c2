package zookeeper_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

func TestTLS(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	ours, theirs := harness.NewAuthority(t, "ours"), harness.NewAuthority(t, "theirs")
	serverCert, err := tls.LoadX509KeyPair(ours.Issue("server"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	caPEM, err := os.ReadFile(ours.CA())
	require.NoError(t, err)
	require.True(t, clients.AppendCertsFromPEM(caPEM))
	front := bed.TLSClient(&tls.Config{
		Certificates: []tls.Certificate{serverCert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	cert, key := ours.Issue("client")
	foreignCert, foreignKey := theirs.Issue("client")

	t.Run("ByURL", func(t *testing.T) {
		reg, err := registry.Open(within(t, 20*time.Second), "zookeeper://"+strings.Join(front.Addrs(), ",")+
			"/shop?chroot=/secured&ca="+ours.CA()+"&cert="+cert+"&key="+key)
		require.NoError(t, err)
		defer reg.Close()
		s, err := reg.Open(within(t, 20*time.Second))
		require.NoError(t, err)
		commit(t, s, registry.CreateEphemeral("/node", nil))
		f := follow(t, s)
		require.NoError(t, f.Watcher.Add("/node", registry.Self))
		f.Until(10*time.Second, "the node", func() bool { return f.Nodes["/node"].Owned })
		front.Drop()
		_, err = s.Get(within(t, 10*time.Second), "/node") // the next commit may be uncertain
		require.NoError(t, err)
		commit(t, s, registry.Set("/node", []byte("again"), 0))
		f.Until(10*time.Second, "the change", func() bool { return string(f.Nodes["/node"].Value) == "again" })
	})
	for name, c := range map[string]struct {
		change func(*zookeeper.Config)
		says   string
	}{
		"NoTLS":         {func(*zookeeper.Config) {}, "wants TLS"},
		"SystemCA":      {func(c *zookeeper.Config) { c.TLS = &tls.Config{} }, "certificate signed by unknown authority"},
		"WrongCA":       {func(c *zookeeper.Config) { c.CAFile = theirs.CA() }, "certificate signed by unknown authority"},
		"NoCertificate": {func(c *zookeeper.Config) { c.CAFile = ours.CA() }, ""},
		"WrongCertificate": {func(c *zookeeper.Config) {
			c.CAFile, c.CertFile, c.KeyFile = ours.CA(), foreignCert, foreignKey
		}, ""}, // TLS 1.3 tells the client so late that the connection may be broken first
	} {
		t.Run(name, func(t *testing.T) {
			cfg := zookeeper.Config{Servers: front.Addrs(), Namespace: "shop", DialTimeout: 2 * time.Second}
			c.change(&cfg)
			_, err := zookeeper.Open(within(t, 20*time.Second), cfg)
			require.ErrorIs(t, err, registry.ErrUnavailable)
			require.ErrorContains(t, err, front.Addrs()[0]+": ")
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	t.Run("TLSToAServerWithout", func(t *testing.T) {
		_, err := zookeeper.Open(within(t, 20*time.Second), zookeeper.Config{
			Servers: bed.Addrs(), Namespace: "shop", CAFile: ours.CA(), DialTimeout: 2 * time.Second,
		})
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorContains(t, err, bed.Addrs()[0]+": TLS: ")
	})
}
