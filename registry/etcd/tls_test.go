package etcd_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

func TestTLS(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	ours, theirs := harness.NewAuthority(t, "ours"), harness.NewAuthority(t, "theirs")
	serverCert, err := tls.LoadX509KeyPair(ours.Issue("server"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	caPEM, err := os.ReadFile(ours.CA())
	require.NoError(t, err)
	require.True(t, clients.AppendCertsFromPEM(caPEM))
	front, err := testbed.NewTLSProxy(bed.Endpoints()[0], &tls.Config{
		Certificates: []tls.Certificate{serverCert}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	require.NoError(t, err)
	defer front.Close()
	cert, key := ours.Issue("client")
	foreignCert, foreignKey := theirs.Issue("client")

	t.Run("ByURL", func(t *testing.T) {
		reg, err := registry.Open(within(t, 20*time.Second), "etcd://"+front.Addr()+"/shop?ca="+ours.CA()+"&cert="+cert+"&key="+key)
		require.NoError(t, err)
		defer reg.Close()
		s, err := reg.Open(within(t, 20*time.Second))
		require.NoError(t, err)
		commit(t, s, registry.CreateEphemeral("/secured", nil))
		f := follow(t, s)
		require.NoError(t, f.Watcher.Add("/secured", registry.Self))
		f.Until(10*time.Second, "the node", func() bool { return f.Nodes["/secured"].Owned })
	})
	for name, c := range map[string]struct {
		change func(*etcd.Config)
		says   string
	}{
		"NoTLS":    {func(*etcd.Config) {}, "(does the server want TLS?)"},
		"SystemCA": {func(c *etcd.Config) { c.TLS = &tls.Config{} }, "certificate signed by unknown authority"},
		"WrongCA":  {func(c *etcd.Config) { c.CAFile = theirs.CA() }, "certificate signed by unknown authority"},
		// Finding C 21: it was a broken pipe.
		"NoCertificate": {func(c *etcd.Config) { c.CAFile = ours.CA() }, "(does the server want a client certificate? give cert and key)"},
		"WrongCertificate": {func(c *etcd.Config) {
			c.CAFile, c.CertFile, c.KeyFile = ours.CA(), foreignCert, foreignKey
		}, "(does the server trust the authority of the client certificate?)"}, // TLS 1.3 tells the client so late that the pipe may be broken first
	} {
		t.Run(name, func(t *testing.T) {
			cfg := etcd.Config{Endpoints: []string{front.Addr()}, Namespace: "shop", DialTimeout: 2 * time.Second}
			c.change(&cfg)
			_, err := etcd.Open(within(t, 20*time.Second), cfg)
			require.ErrorIs(t, err, registry.ErrUnavailable)
			require.ErrorContains(t, err, front.Addr()+": ")
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	t.Run("TLSToAServerWithout", func(t *testing.T) {
		_, err := etcd.Open(within(t, 20*time.Second), etcd.Config{
			Endpoints: bed.Endpoints(), Namespace: "shop", CAFile: ours.CA(), DialTimeout: 2 * time.Second,
		})
		require.ErrorContains(t, err, "(does the server speak TLS?)")
	})
}
