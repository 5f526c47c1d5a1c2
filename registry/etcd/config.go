package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/registry"
)

const (
	defaultSessionTimeout = 6 * time.Second
	defaultDialTimeout    = 5 * time.Second
	defaultPort           = "2379"

	// reserved is the namespace below which Elasticron keeps its own state.
	reserved = "elasticron"
)

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
	// more (its minimum is 1.5 election timeouts).
	SessionTimeout time.Duration

	// Username and Password log in to a cluster with authentication.
	Username string
	Password string
	// PasswordFile is read at Open when Password is empty; a line break at its
	// end is dropped.
	PasswordFile string

	// TLS, when set, secures every connection. It is cloned.
	TLS *tls.Config
	// CAFile, CertFile and KeyFile are PEM files, read at Open: the authority that
	// signed the servers (the system's when empty) and the certificate shown to
	// them. Any of them switches TLS on.
	CAFile   string
	CertFile string
	KeyFile  string

	// DialTimeout bounds Open, 5 s when zero.
	DialTimeout time.Duration

	// Limits of a commit; a zero field is that of registry.PortableLimits, which a
	// cluster as installed allows. For more, etcd must run with --max-txn-ops of
	// at least 3 × MaxOps + 8 and --max-request-bytes of 4 × MaxBytes.
	Limits registry.Limits

	// DialOptions are added to those of the client. To observe or disturb
	// requests use grpc.WithChainUnaryInterceptor and WithChainStreamInterceptor:
	// the ones without Chain would replace the client's own.
	DialOptions []grpc.DialOption
}

// complete fills in defaults and reports what is wrong, in one line each.
func (c Config) complete() (Config, error) {
	if err := c.check(); err != nil {
		return c, fmt.Errorf("etcd: %w: %w", registry.ErrInvalid, err)
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSessionTimeout
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = defaultDialTimeout
	}
	portable := registry.PortableLimits()
	c.Limits.MaxOps = orDefault(c.Limits.MaxOps, portable.MaxOps)
	c.Limits.MaxBytes = orDefault(c.Limits.MaxBytes, portable.MaxBytes)
	c.Limits.MaxValue = orDefault(c.Limits.MaxValue, portable.MaxValue)

	endpoints := make([]string, len(c.Endpoints))
	for i, ep := range c.Endpoints {
		complete, err := completeEndpoint(ep)
		if err != nil {
			return c, fmt.Errorf("etcd: %w: %w", registry.ErrInvalid, err)
		}
		endpoints[i] = complete
	}
	c.Endpoints = endpoints
	if err := c.completeSecrets(); err != nil {
		return c, fmt.Errorf("etcd: %w: %w", registry.ErrInvalid, err)
	}
	return c, nil
}

func (c Config) check() error {
	switch {
	case len(c.Endpoints) == 0:
		return errors.New("no endpoints; give the client addresses of the cluster, for example 127.0.0.1:2379")
	case c.SessionTimeout < 0:
		return fmt.Errorf("session timeout %v is negative; give one second or more", c.SessionTimeout)
	case c.DialTimeout < 0:
		return fmt.Errorf("dial timeout %v is negative; give a positive duration", c.DialTimeout)
	case c.Limits.MaxOps < 0, c.Limits.MaxBytes < 0, c.Limits.MaxValue < 0:
		return fmt.Errorf("limits %+v are negative; leave a field at zero for the portable limit", c.Limits)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("a certificate needs its key; give both the cert and the key file")
	case c.Username == "" && (c.Password != "" || c.PasswordFile != ""):
		return errors.New("a password without a username; give the username too")
	case c.Username != "" && c.Password == "" && c.PasswordFile == "":
		return errors.New("a username without a password; give one in a file or in " + passwordEnv)
	}
	return checkNamespace(c.Namespace)
}

func checkNamespace(ns string) error {
	switch first, _, _ := strings.Cut(ns, "/"); {
	case ns == "":
		return errors.New("no namespace; name one, for example etcd://host:2379/shop")
	case first == reserved:
		return fmt.Errorf("namespace %q is reserved for Elasticron's own state; choose another name", ns)
	}
	if err := registry.ValidatePath("/" + ns); err != nil {
		return fmt.Errorf("namespace %q cannot be a path: %w", ns, err)
	}
	return nil
}

func completeEndpoint(ep string) (string, error) {
	scheme, host, found := strings.Cut(ep, "://")
	if !found {
		scheme, host = "", ep
	}
	switch scheme {
	case "", "http", "https":
	default:
		return "", fmt.Errorf("endpoint %q has the scheme %q; write host:port, http://host:port or https://host:port", ep, scheme)
	}
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return "", fmt.Errorf("endpoint %q is not host:port", ep)
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), defaultPort
		if strings.Contains(name, ":") && host == name {
			return "", fmt.Errorf("endpoint %q is not host:port; write an IPv6 address in brackets", ep)
		}
	}
	if name == "" || port == "" {
		return "", fmt.Errorf("endpoint %q is not host:port", ep)
	}
	host = net.JoinHostPort(name, port)
	if found {
		return scheme + "://" + host, nil
	}
	return host, nil
}

// completeSecrets reads the files that Config names.
func (c *Config) completeSecrets() error {
	if c.Password == "" && c.PasswordFile != "" {
		raw, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return fmt.Errorf("password file: %w", err)
		}
		if c.Password = strings.TrimRight(string(raw), "\r\n"); c.Password == "" {
			return fmt.Errorf("password file %s is empty", c.PasswordFile)
		}
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
	}
	if c.CAFile == "" && c.CertFile == "" {
		return nil
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return fmt.Errorf("CA file: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("CA file %s holds no certificate in PEM form", c.CAFile)
		}
	}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return fmt.Errorf("certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
		}
		c.TLS.Certificates = []tls.Certificate{cert}
	}
	return nil
}

// leaseSeconds is the session timeout as etcd counts it.
func (c Config) leaseSeconds() int64 {
	return int64((c.SessionTimeout + time.Second - 1) / time.Second)
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}
