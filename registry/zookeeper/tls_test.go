package zookeeper_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

// An authority signs certificates for tests.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, dir: filepath.Join(t.TempDir(), name)}
	require.NoError(t, os.Mkdir(a.dir, 0o700))
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func (a *authority) ca() string { return filepath.Join(a.dir, "ca.pem") }

// issue makes a certificate for the loopback address and returns its files.
func (a *authority) issue(name string) (cert, key string) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	require.NoError(a.t, err)
	private, err := x509.MarshalECPrivateKey(k)
	require.NoError(a.t, err)
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+"-key.pem", "EC PRIVATE KEY", private)
}

func TestTLS(t *testing.T) {
	bed := testbed.SharedZooKeeper(t)
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	serverCert, err := tls.LoadX509KeyPair(ours.issue("server"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	caPEM, err := os.ReadFile(ours.ca())
	require.NoError(t, err)
	require.True(t, clients.AppendCertsFromPEM(caPEM))
	front := bed.TLSClient(&tls.Config{
		Certificates: []tls.Certificate{serverCert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	cert, key := ours.issue("client")
	foreignCert, foreignKey := theirs.issue("client")

	t.Run("ByURL", func(t *testing.T) {
		reg, err := registry.Open(within(t, 20*time.Second), "zookeeper://"+strings.Join(front.Addrs(), ",")+
			"/shop?chroot=/secured&ca="+ours.ca()+"&cert="+cert+"&key="+key)
		require.NoError(t, err)
		defer reg.Close()
		s, err := reg.Open(within(t, 20*time.Second))
		require.NoError(t, err)
		commit(t, s, registry.CreateEphemeral("/node", nil))
		f := follow(t, s)
		require.NoError(t, f.w.Add("/node", registry.Self))
		f.until(10*time.Second, "the node", func() bool { return f.nodes["/node"].Owned })
		front.Drop()
		_, err = s.Get(within(t, 10*time.Second), "/node") // the next commit may be uncertain
		require.NoError(t, err)
		commit(t, s, registry.Set("/node", []byte("again"), 0))
		f.until(10*time.Second, "the change", func() bool { return string(f.nodes["/node"].Value) == "again" })
	})
	for name, c := range map[string]struct {
		change func(*zookeeper.Config)
		says   string
	}{
		"NoTLS":         {func(*zookeeper.Config) {}, "wants TLS"},
		"SystemCA":      {func(c *zookeeper.Config) { c.TLS = &tls.Config{} }, "certificate signed by unknown authority"},
		"WrongCA":       {func(c *zookeeper.Config) { c.CAFile = theirs.ca() }, "certificate signed by unknown authority"},
		"NoCertificate": {func(c *zookeeper.Config) { c.CAFile = ours.ca() }, ""},
		"WrongCertificate": {func(c *zookeeper.Config) {
			c.CAFile, c.CertFile, c.KeyFile = ours.ca(), foreignCert, foreignKey
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
			Servers: bed.Addrs(), Namespace: "shop", CAFile: ours.ca(), DialTimeout: 2 * time.Second,
		})
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorContains(t, err, bed.Addrs()[0]+": TLS: ")
	})
}
