package etcd

import (
	"context"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

func TestURL(t *testing.T) {
	portable := registry.PortableLimits()
	base := Config{
		Endpoints: []string{"a:2379"}, Namespace: "shop", SessionTimeout: 6 * time.Second,
		DialTimeout: 5 * time.Second, Limits: portable,
	}
	with := func(change func(*Config)) Config {
		c := base
		change(&c)
		return c
	}
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	for raw, want := range map[string]Config{
		"etcd://a:2379/shop": base,
		"etcd://a/shop":      base,
		"etcd://a/shop/":     base,
		"etcd://a:1,b,c:2/team/shop": with(func(c *Config) {
			c.Endpoints, c.Namespace = []string{"a:1", "b:2379", "c:2"}, "team/shop"
		}),
		"etcd://[::1]:9/shop": with(func(c *Config) { c.Endpoints = []string{"[::1]:9"} }),
		"etcd://[::1]/shop":   with(func(c *Config) { c.Endpoints = []string{"[::1]:2379"} }),
		"etcd://a/shop?session-timeout=2500ms&dial-timeout=1s": with(func(c *Config) {
			c.SessionTimeout, c.DialTimeout = 2500*time.Millisecond, time.Second
		}),
		"etcd://a/shop?tls=true":  with(func(c *Config) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }),
		"etcd://a/shop?tls=false": base,
		"etcd://a/shop?max-ops=2000&max-bytes=8388608": with(func(c *Config) {
			c.Limits = registry.Limits{MaxOps: 2000, MaxBytes: 8 << 20, MaxValue: 4 << 20}
		}),
		"etcd://a/shop?max-bytes=1000": with(func(c *Config) { c.Limits.MaxBytes, c.Limits.MaxValue = 1000, 1000 }),
		"etcd://a/shop?username=eva&password-file=" + secret: with(func(c *Config) {
			c.Username, c.Password, c.PasswordFile = "eva", "s3cret", secret
		}),
	} {
		t.Run(raw, func(t *testing.T) {
			u, err := url.Parse(raw)
			require.NoError(t, err)
			got, err := urls.Parse(u)
			require.NoError(t, err)
			got, err = got.complete()
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(tls.Config{})))
		})
	}
}

func TestLoginByEnvironment(t *testing.T) {
	t.Setenv("ELASTICRON_ETCD_USERNAME", "eva")
	t.Setenv("ELASTICRON_ETCD_PASSWORD", "s3cret")
	u, err := url.Parse("etcd://a/shop")
	require.NoError(t, err)
	got, err := urls.Parse(u)
	require.NoError(t, err)
	require.Equal(t, "eva", got.Username)
	require.Equal(t, "s3cret", got.Password)

	u, err = url.Parse("etcd://a/shop?username=max&password-file=/some/file")
	require.NoError(t, err)
	got, err = urls.Parse(u)
	require.NoError(t, err)
	require.Equal(t, "max", got.Username, "the URL goes before the environment")
	require.Empty(t, got.Password, "the file goes before the environment")
}

// Each mistake is one line that names the fix, and nothing is dialed.
func TestBadURL(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	t.Setenv("ELASTICRON_ETCD_USERNAME", "")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for raw, want := range map[string]string{
		"etcd://a":                        `etcd: invalid request: no namespace; name one, for example etcd://host:2379/shop`,
		"etcd://a/":                       `etcd: invalid request: no namespace; name one, for example etcd://host:2379/shop`,
		"etcd:///shop":                    `etcd: invalid request: no endpoints; give the client addresses of the cluster, for example 127.0.0.1:2379`,
		"etcd:a/shop":                     `etcd: invalid request: etcd: is not followed by //; write etcd://host:port/namespace`,
		"etcd://a/elasticron":             `etcd: invalid request: namespace "elasticron" is reserved for Elasticron's own state; choose another name`,
		"etcd://a/elasticron/x":           `etcd: invalid request: namespace "elasticron/x" is reserved for Elasticron's own state; choose another name`,
		"etcd://a/shop/../x":              `etcd: invalid request: namespace "shop/../x" cannot be a path: invalid request: path "/shop/../x" has a segment ".."`,
		"etcd://a,,b/shop":                `etcd: invalid request: endpoint "" is not host:port`,
		"etcd://a/shop#x":                 `etcd: invalid request: the URL has a fragment (#…); write etcd://host:port/namespace`,
		"etcd://a/shop?timeout=3s":        `etcd: invalid request: unknown setting "timeout"; known: ca cert dial-timeout key max-bytes max-ops password-env password-file session-timeout tls username`,
		"etcd://a/shop?password=x":        `etcd: invalid request: a password does not belong in a URL; use password-file or ELASTICRON_ETCD_PASSWORD`,
		"etcd://a/shop?session-timeout=":  `etcd: invalid request: setting session-timeout="": not a positive duration such as 6s`,
		"etcd://a/shop?session-timeout=6": `etcd: invalid request: setting session-timeout="6": not a positive duration such as 6s`,
		// Finding C 21.
		"etcd://a/shop?session-timeout=1ms":                              `etcd: invalid request: session timeout 1ms is too short: a pause of the process would end the session; give at least 500ms`,
		"etcd://a/shop?session-timeout=1h":                               `etcd: invalid request: session timeout 1h0m0s is too long: nobody takes over from an instance that has died until it is over; give at most 10m0s`,
		"etcd://a:99999/shop":                                            `etcd: invalid request: endpoint "a:99999" is not host:port with a port of 1 to 65535`,
		"etcd://a/shop?max-ops=many":                                     `etcd: invalid request: setting max-ops="many": not a positive number`,
		"etcd://a/shop?tls=maybe":                                        `etcd: invalid request: setting tls="maybe": not true or false`,
		"etcd://a/shop?tls=true&tls=true":                                `etcd: invalid request: setting "tls" occurs 2 times`,
		"etcd://a/shop?username=eva":                                     `etcd: invalid request: a username without a password; give one in a file or in ELASTICRON_ETCD_PASSWORD`,
		"etcd://a/shop?username=eva&password-env=SECRET&password-file=f": `etcd: invalid request: a password and a password file; give one of them`,
		"etcd://a/shop?password-file=x":                                  `etcd: invalid request: a password without a username; give the username too`,
		"etcd://a/shop?cert=x":                                           `etcd: invalid request: a certificate needs its key; give both the cert and the key file`,
		"etcd://a/shop?ca=" + dir + "/no":                                `etcd: invalid request: CA file: open ` + dir + `/no: no such file or directory`,
		"etcd://a/shop?ca=" + write("ca", "x"):                           `etcd: invalid request: CA file ` + dir + `/ca holds no certificate in PEM form`,
		"etcd://a/shop?username=e&password-file=" + write("empty", "\n"): `etcd: invalid request: password file ` + dir + `/empty is empty`,
	} {
		t.Run(raw, func(t *testing.T) {
			_, err := registry.Open(context.Background(), raw)
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, registry.ErrInvalid)
		})
	}
}

func TestBadEndpoint(t *testing.T) {
	for ep, want := range map[string]string{
		"ftp://a:1":        `endpoint "ftp://a:1" has the scheme "ftp"; write host:port, http://host:port or https://host:port`,
		"a:1/shop":         `endpoint "a:1/shop" is not host:port`,
		"eva:x@a:1":        `endpoint "…@a:1" has a login, which is set elsewhere; write host:port`,
		"ftp://eva:x@a:1":  `endpoint "ftp://…@a:1" has the scheme "ftp"; write host:port, http://host:port or https://host:port`,
		"http://eva:p@x@a": `endpoint "http://…@a" has a login, which is set elsewhere; write host:port`,
		"http://":          `endpoint "http://" is not host:port`,
		":2379":            `endpoint ":2379" is not host:port`,
		"a:":               `endpoint "a:" is not host:port`,
		"::1":              `endpoint "::1" is not host:port; write an IPv6 address in brackets`,
		"http://a: 1":      `endpoint "http://a: 1" is not host:port`,
	} {
		_, err := completeEndpoint(ep)
		require.EqualError(t, err, want, ep)
	}
}
