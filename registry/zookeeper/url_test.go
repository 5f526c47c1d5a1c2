package zookeeper

import (
	"context"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

func TestURL(t *testing.T) {
	base := Config{
		Servers: []string{"a:2181"}, Namespace: "shop", SessionTimeout: 6 * time.Second,
		DialTimeout: 5 * time.Second, Limits: registry.Limits{MaxOps: 500, MaxBytes: 768 << 10, MaxValue: 256 << 10},
	}
	with := func(change func(*Config)) Config {
		c := base
		change(&c)
		return c
	}
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	t.Setenv("SHOP_PASSWORD", "env s3cret")
	for raw, want := range map[string]Config{
		"zookeeper://a:2181/shop": base,
		"zookeeper://a/shop":      base,
		"zookeeper://a/shop/":     base,
		"zookeeper://a:1,b,c:2/team/shop": with(func(c *Config) {
			c.Servers, c.Namespace = []string{"a:1", "b:2181", "c:2"}, "team/shop"
		}),
		"zookeeper://[::1]:9/shop": with(func(c *Config) { c.Servers = []string{"[::1]:9"} }),
		"zookeeper://[::1]/shop":   with(func(c *Config) { c.Servers = []string{"[::1]:2181"} }),
		"zookeeper://a/shop?session-timeout=2500ms&dial-timeout=1s": with(func(c *Config) {
			c.SessionTimeout, c.DialTimeout = 2500*time.Millisecond, time.Second
		}),
		"zookeeper://a/shop?chroot=/apps/eu":  with(func(c *Config) { c.Chroot = "/apps/eu" }),
		"zookeeper://a/shop?chroot=/apps/eu/": with(func(c *Config) { c.Chroot = "/apps/eu" }),
		"zookeeper://a/shop?chroot=/":         base,
		"zookeeper://a/shop?tls=true":         with(func(c *Config) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }),
		"zookeeper://a/shop?tls=false":        base,
		"zookeeper://a/shop?username=eva&password-file=" + secret: with(func(c *Config) {
			c.Username, c.Password, c.PasswordFile = "eva", "s3cret", secret
		}),
		"zookeeper://a/shop?username=eva&password-env=SHOP_PASSWORD": with(func(c *Config) {
			c.Username, c.Password = "eva", "env s3cret"
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
	t.Setenv("ELASTICRON_ZOOKEEPER_USERNAME", "eva")
	t.Setenv("ELASTICRON_ZOOKEEPER_PASSWORD", "s3cret")
	u, err := url.Parse("zookeeper://a/shop")
	require.NoError(t, err)
	got, err := urls.Parse(u)
	require.NoError(t, err)
	require.Equal(t, "eva:s3cret", got.digest())

	u, err = url.Parse("zookeeper://a/shop?username=max&password-file=/some/file")
	require.NoError(t, err)
	got, err = urls.Parse(u)
	require.NoError(t, err)
	require.Equal(t, "max", got.Username, "the URL goes before the environment")
	require.Empty(t, got.Password, "the file goes before the environment")
	require.Empty(t, Config{}.digest())
}

// Each mistake is one line that names the fix, and nothing is dialled.
func TestBadURL(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	t.Setenv("ELASTICRON_ZOOKEEPER_USERNAME", "")
	t.Setenv("EMPTY", "")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const known = "ca cert chroot dial-timeout key password-env password-file session-timeout tls username"
	for raw, want := range map[string]string{
		"zookeeper://a":                        `no namespace; name one, for example zookeeper://host:2181/shop`,
		"zookeeper:///shop":                    `no servers; give the client addresses of the ensemble, for example 127.0.0.1:2181`,
		"zookeeper:a/shop":                     `zookeeper: is not followed by //; write zookeeper://host:port/namespace`,
		"zookeeper://a/elasticron":             `namespace "elasticron" is reserved for Elasticron's own state; choose another name`,
		"zookeeper://a/shop/../x":              `namespace "shop/../x" cannot be a path: invalid request: path "/shop/../x" has a segment ".."`,
		"zookeeper://a,,b/shop":                `server "" is not host:port`,
		"zookeeper://a/shop#x":                 `the URL has a fragment (#…); write zookeeper://host:port/namespace`,
		"zookeeper://a/shop?timeout=3s":        `unknown setting "timeout"; known: ` + known,
		"zookeeper://a/shop?password=x":        `a password does not belong in a URL; use password-file or ELASTICRON_ZOOKEEPER_PASSWORD`,
		"zookeeper://a/shop?session-timeout=6": `setting session-timeout="6": not a positive duration such as 6s`,
		// Finding C 21.
		"zookeeper://a/shop?session-timeout=1ms":                              `session timeout 1ms is too short: a pause of the process would end the session; give at least 500ms`,
		"zookeeper://a/shop?session-timeout=1h":                               `session timeout 1h0m0s is too long: nobody takes over from an instance that has died until it is over; give at most 10m0s`,
		"zookeeper://a:99999/shop":                                            `server "a:99999" is not host:port with a port of 1 to 65535`,
		"zookeeper://a/shop?tls=maybe":                                        `setting tls="maybe": not true or false`,
		"zookeeper://a/shop?username=eva":                                     `a username without a password; give one in a file or in ELASTICRON_ZOOKEEPER_PASSWORD`,
		"zookeeper://a/shop?username=eva&password-env=SECRET&password-file=f": `a password and a password file; give one of them`,
		"zookeeper://a/shop?password-file=x":                                  `a password without a username; give the username too`,
		"zookeeper://a/shop?password-env=EMPTY":                               `setting password-env: there is no environment variable of that name, or it is empty`,
		"zookeeper://a/shop?username=a:b":                                     `username "a:b" has a colon, which ends a name in ZooKeeper's digests`,
		"zookeeper://a/shop?key=x":                                            `a certificate needs its key; give both the cert and the key file`,
		"zookeeper://a/shop?chroot=x":                                         `chroot: invalid request: path "x" does not start with /`,
		"zookeeper://a/shop?chroot=/zookeeper/x":                              `chroot /zookeeper/x belongs to ZooKeeper itself; choose another node`,
		"zookeeper://a/shop?ca=" + write("ca", "x"):                           `CA file ` + dir + `/ca holds no certificate in PEM form`,
		"zookeeper://a/shop?username=e&password-file=x":                       `password file: open x: no such file or directory`,
		"zookeeper://a/shop?chroot=" + strings.Repeat("/aaaaaaaaa", 40): `limits {MaxOps:500 MaxBytes:786432 MaxValue:262144}, with a chroot of 400 bytes, ` +
			`may need requests of 1018496 bytes, and less than 1000000 fit; lower a limit or shorten the chroot`,
	} {
		t.Run(raw, func(t *testing.T) {
			_, err := registry.Open(context.Background(), raw)
			require.EqualError(t, err, "zookeeper: invalid request: "+want)
			require.ErrorIs(t, err, registry.ErrInvalid)
		})
	}
}

func TestBadConfig(t *testing.T) {
	base := Config{Servers: []string{"a"}, Namespace: "shop"}
	for want, change := range map[string]func(*Config){
		"dial timeout -1s is negative; give a positive duration":                                              func(c *Config) { c.DialTimeout = -time.Second },
		"session timeout -1s is too short: a pause of the process would end the session; give at least 500ms": func(c *Config) { c.SessionTimeout = -time.Second },
		"limits {MaxOps:-1 MaxBytes:0 MaxValue:0} are negative; leave a field at zero for its default":        func(c *Config) { c.Limits.MaxOps = -1 },
		`server "a:1/shop" is not host:port`:                                                                  func(c *Config) { c.Servers = []string{"a:1/shop"} },
		"a password without a username; give the username too":                                                func(c *Config) { c.Password = "s3cret" },
	} {
		cfg := base
		change(&cfg)
		_, err := cfg.complete()
		require.EqualError(t, err, "zookeeper: invalid request: "+want)
	}
}

// Whatever the limits allow can be sent.
func TestLargestCommitFits(t *testing.T) {
	cfg, err := Config{Servers: []string{"a"}, Namespace: "shop", Chroot: "/" + strings.Repeat("c", 255), Username: "eva", Password: "x"}.complete()
	require.NoError(t, err)
	r := newRegistry(cfg)
	s := newSession(r)
	var ops []registry.Op
	left := cfg.Limits.MaxBytes
	for i := range cfg.Limits.MaxOps {
		path := "/" + strings.Repeat("p", 250) + string(rune('a'+i%26))
		n := min(cfg.Limits.MaxValue, left-len(path)*(cfg.Limits.MaxOps-i))
		ops = append(ops, registry.CreateEphemeral(path, make([]byte, n)))
		left -= len(path) + n
	}
	require.Zero(t, left)
	require.Less(t, encodedSize(s.requests(ops)), link.MaxRequest)
}

// encodedSize is the length of a multi on the wire.
func encodedSize(requests []any) int {
	const header, length, number = 9, 4, 4
	size := 2*number + header
	for _, r := range requests {
		size += header
		switch r := r.(type) {
		case *zk.CreateRequest:
			size += length + len(r.Path) + length + len(r.Data) + length + number
			for _, acl := range r.Acl {
				size += number + length + len(acl.Scheme) + length + len(acl.ID)
			}
		case *zk.SetDataRequest:
			size += length + len(r.Path) + length + len(r.Data) + number
		}
	}
	return size
}

func TestTree(t *testing.T) {
	for _, tc := range []struct {
		tree     tree
		path, at string
	}{
		{"", "/", "/"}, {"", "/a/b", "/a/b"}, {"/x/y", "/", "/x/y"}, {"/x/y", "/a", "/x/y/a"}, {"/x", "/zookeeper", "/x/zookeeper"},
	} {
		require.Equal(t, tc.at, tc.tree.at(tc.path))
		path, inside := tc.tree.path(tc.at)
		require.True(t, inside)
		require.Equal(t, tc.path, path)
	}
	for _, at := range []string{"/", "/x", "/x/yz", "/z"} {
		_, inside := tree("/x/y").path(at)
		require.False(t, inside, at)
	}
	require.True(t, tree("").reserves("/zookeeper/config"))
	require.False(t, tree("").reserves("/zookeepers"))
	require.False(t, tree("/x").reserves("/zookeeper"))
	require.Equal(t, []string{"a", "b"}, tree("").names("/", []string{"a", "zookeeper", "b"}))
	require.Equal(t, []string{"zookeeper"}, tree("").names("/a", []string{"zookeeper"}))
	require.Equal(t, []string{"zookeeper"}, tree("/x").names("/", []string{"zookeeper"}))
}
