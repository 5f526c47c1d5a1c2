package etcd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const defaultPort = "2379"

func init() { settings.Register(urls, Open) }

// Config says how to reach an etcd cluster and how its sessions live. The zero
// value lacks Endpoints and Namespace, which have no default.
type Config struct {
	// Endpoints are the client addresses of the members, as host:port,
	// http://host:port or https://host:port. The port is 2379 when missing.
	Endpoints []string

	// Namespace is what Registry.Namespace returns, for example "shop" or
	// "team/shop". It is not put before any path. "elasticron" is reserved.
	Namespace string

	// SessionTimeout is how long a session outlives its last heartbeat, 6 s when
	// zero. etcd counts whole seconds: it is rounded up, and a cluster may grant
	// more (its minimum is 1.5 election timeouts). 500 ms to 10 min may be asked for.
	SessionTimeout time.Duration

	// Username and Password log in to a cluster with authentication.
	Username string
	Password string
	// PasswordFile, instead of Password, is read at Open; a line break at its end is dropped.
	PasswordFile string

	// TLS, when set, secures every connection. It is cloned.
	TLS *tls.Config
	// CAFile, CertFile and KeyFile are PEM files, read at Open: the authority that signed the servers (the system's
	// when empty) and the certificate shown to them. Any of them switches TLS on.
	CAFile   string
	CertFile string
	KeyFile  string

	// DialTimeout bounds Open, 5 s when zero. An attempt to connect to a member, TLS included, may take as long, but no
	// longer than a third of SessionTimeout; it has a second at least.
	DialTimeout time.Duration

	// Limits of a commit; a zero field is that of registry.PortableLimits, which a cluster as installed allows. For
	// more, etcd must run with --max-txn-ops of at least 3 × MaxOps + 8 and --max-request-bytes of 4 × MaxBytes.
	Limits registry.Limits

	// DialOptions are added to those of the client. To observe or disturb requests use grpc.WithChainUnaryInterceptor
	// and WithChainStreamInterceptor: the ones without Chain would replace the client's own.
	DialOptions []grpc.DialOption
}

// common is what settings reads, checks and completes.
func common(c *Config) settings.Common {
	return settings.Common{
		Adapter: "etcd", Example: "etcd://host:2379/shop", Address: completeEndpoint,
		Hosts: &c.Endpoints, Namespace: &c.Namespace, SessionTimeout: &c.SessionTimeout, DialTimeout: &c.DialTimeout,
		Username: &c.Username, Password: &c.Password, PasswordFile: &c.PasswordFile,
		TLS: &c.TLS, CAFile: &c.CAFile, CertFile: &c.CertFile, KeyFile: &c.KeyFile,
	}
}

// urls are etcd://host:port,host:port/namespace?setting=value.
var urls = settings.URLs[Config]{
	Common: common,
	Own: settings.Table[Config]{
		"max-ops":   func(c *Config, v string) error { return settings.Count(&c.Limits.MaxOps, v) },
		"max-bytes": setMaxBytes,
	},
}

// setMaxBytes lets a value have half of them.
func setMaxBytes(c *Config, v string) error {
	if err := settings.Count(&c.Limits.MaxBytes, v); err != nil {
		return err
	}
	c.Limits.MaxValue = min(c.Limits.MaxBytes, max(registry.PortableLimits().MaxValue, c.Limits.MaxBytes/2))
	return nil
}

// complete fills in defaults and reports what is wrong, in one line each.
func (c Config) complete() (Config, error) {
	if err := cmp.Or(c.check(), common(&c).Complete()); err != nil {
		return c, fmt.Errorf("etcd: %w: %w", registry.ErrInvalid, err)
	}
	c.Limits = settings.FillLimits(c.Limits, registry.PortableLimits())
	return c, nil
}

func (c Config) check() error {
	if len(c.Endpoints) == 0 {
		return errors.New("no endpoints; give the client addresses of the cluster, for example 127.0.0.1:2379")
	}
	return settings.Limits(c.Limits)
}

func completeEndpoint(ep string) (string, error) {
	scheme, host, found := strings.Cut(ep, "://")
	if !found {
		scheme, host = "", ep
	}
	switch scheme {
	case "", "http", "https":
	default:
		return "", fmt.Errorf("endpoint %q has the scheme %q; write host:port, http://host:port or https://host:port",
			settings.WithoutLogin(ep), scheme)
	}
	host, err := settings.Address("endpoint", ep, host, defaultPort)
	if err != nil || !found {
		return host, err
	}
	return scheme + "://" + host, nil
}

// leaseSeconds is the session timeout as etcd counts it.
func (c Config) leaseSeconds() int64 {
	return int64((c.SessionTimeout + time.Second - 1) / time.Second)
}
