package postgres

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const (
	defaultMaxConns = 5
	leastConns      = 2 // one is for heartbeats alone
	defaultPort     = "5432"
)

// Config says which database keeps the registry, how to reach it and how sessions
// live. Hosts, Database and Namespace have no default.
type Config struct {
	// Hosts are the addresses of the server, and of the standbys that may be promoted, as host:port.
	// All are asked at the same time, and the one that takes writes is used. The port is 5432 when missing.
	Hosts []string

	// Database keeps the registry, in a schema of its own, named elasticron.
	Database string

	// Namespace is what Registry.Namespace returns, for example "shop" or "team/shop". It is not
	// put before any path: several share a database. "elasticron" is reserved.
	Namespace string

	// Username and Password log in. Without a name it is that of the process's user.
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

	// SessionTimeout is how long a session outlives its last heartbeat, 6 s when zero, 500 ms to 10 min.
	SessionTimeout time.Duration

	// DialTimeout bounds Open, and each connection that is made later; 5 s when zero.
	DialTimeout time.Duration

	// MaxConns is how many connections a registry holds at most, besides the one that listens and one more
	// where heartbeats wait: 5 when zero, at least 2.
	MaxConns int
}

// common is what settings reads, checks and completes.
func common(c *Config) settings.Common {
	return settings.Common{
		Adapter: "postgres", Example: "postgres://host:5432/database/shop", Address: settings.HostPort("host", defaultPort),
		Hosts: &c.Hosts, Database: &c.Database, Namespace: &c.Namespace,
		SessionTimeout: &c.SessionTimeout, DialTimeout: &c.DialTimeout,
		Username: &c.Username, Password: &c.Password, PasswordFile: &c.PasswordFile, Trusts: true,
		TLS: &c.TLS, CAFile: &c.CAFile, CertFile: &c.CertFile, KeyFile: &c.KeyFile,
	}
}

// complete fills in defaults and reports what is wrong, in one line each.
func (c Config) complete() (Config, error) {
	if err := cmp.Or(c.check(), common(&c).Complete()); err != nil {
		return c, fmt.Errorf("postgres: %w: %w", registry.ErrInvalid, err)
	}
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	return c, nil
}

func (c Config) check() error {
	switch {
	case len(c.Hosts) == 0:
		return errors.New("no host; give the address of the server, for example 127.0.0.1:5432")
	case c.Database == "":
		return errors.New("no database; name one, for example postgres://host:5432/database/shop")
	case strings.ContainsRune(c.Database, 0):
		return fmt.Errorf("database %q cannot be a name", c.Database)
	case c.MaxConns != 0 && c.MaxConns < leastConns:
		return fmt.Errorf("%d connections are too few; give at least %d", c.MaxConns, leastConns)
	}
	return nil
}
