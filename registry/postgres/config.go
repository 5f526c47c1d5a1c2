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
	defaultSessionTimeout = 6 * time.Second
	defaultDialTimeout    = 5 * time.Second
	defaultMaxConns       = 5
	leastConns            = 2 // one is for heartbeats alone
	defaultPort           = "5432"
)

// Config says which database keeps the registry, how to reach it and how sessions
// live. Hosts, Database and Namespace have no default.
type Config struct {
	// Hosts are the addresses of the server, and of the standbys that may be promoted, as host:port.
	// The one that takes writes is used. The port is 5432 when missing.
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
	// CAFile, CertFile and KeyFile are PEM files, read at Open: the authority that signed the
	// servers (the system's when empty) and the certificate shown to them. Any of them switches
	// TLS on.
	CAFile   string
	CertFile string
	KeyFile  string

	// SessionTimeout is how long a session outlives its last heartbeat, 6 s when zero, 500 ms to
	// 10 min.
	SessionTimeout time.Duration

	// DialTimeout bounds Open, and each connection that is made later; 5 s when zero.
	DialTimeout time.Duration

	// MaxConns is how many connections a registry holds at most, besides the one that listens: 5
	// when zero, at least 2.
	MaxConns int
}

// complete fills in defaults and reports what is wrong, in one line each.
func (c Config) complete() (Config, error) {
	c, err := c.completed()
	if err != nil {
		return c, fmt.Errorf("postgres: %w: %w", registry.ErrInvalid, err)
	}
	return c, nil
}

func (c Config) completed() (Config, error) {
	if err := c.check(); err != nil {
		return c, err
	}
	c.SessionTimeout = cmp.Or(c.SessionTimeout, defaultSessionTimeout)
	c.DialTimeout = cmp.Or(c.DialTimeout, defaultDialTimeout)
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	hosts := make([]string, len(c.Hosts))
	for i, host := range c.Hosts {
		complete, err := settings.Address{Noun: "host", Given: host, Host: host}.Complete(defaultPort)
		if err != nil {
			return c, err
		}
		hosts[i] = complete
	}
	c.Hosts = hosts
	var err error
	if c.Password, err = c.login().Resolve(); err != nil {
		return c, err
	}
	c.TLS, err = c.certificates().Resolve(c.TLS)
	return c, err
}

func (c Config) check() error {
	switch {
	case len(c.Hosts) == 0:
		return errors.New("no host; give the address of the server, for example 127.0.0.1:5432")
	case c.Database == "":
		return errors.New("no database; name one, for example postgres://host:5432/database/shop")
	case strings.ContainsRune(c.Database, 0):
		return fmt.Errorf("database %q cannot be a name", c.Database)
	case c.DialTimeout < 0:
		return fmt.Errorf("dial timeout %v is negative; give a positive duration", c.DialTimeout)
	case c.MaxConns != 0 && c.MaxConns < leastConns:
		return fmt.Errorf("%d connections are too few; give at least %d", c.MaxConns, leastConns)
	case c.Username == "" && (c.Password != "" || c.PasswordFile != ""):
		return errors.New("a password without a username; give the username too")
	case c.Password != "" && c.PasswordFile != "":
		return errors.New("a password and a password file; give one of them")
	}
	if err := settings.SessionTimeout(c.SessionTimeout); err != nil {
		return err
	}
	if err := c.certificates().Check(); err != nil {
		return err
	}
	return settings.Namespace(c.Namespace, "postgres://host:5432/database/shop")
}

func (c Config) login() settings.Login {
	return settings.Login{Username: c.Username, Password: c.Password, PasswordFile: c.PasswordFile}
}

func (c Config) certificates() settings.Certificates {
	return settings.Certificates{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
}
