package zookeeper

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const (
	usernameEnv = "ELASTICRON_ZOOKEEPER_USERNAME"
	passwordEnv = "ELASTICRON_ZOOKEEPER_PASSWORD"
)

func init() {
	registry.Register("zookeeper", func(ctx context.Context, u *url.URL) (registry.Registry, error) {
		cfg, err := parseURL(u)
		if err != nil {
			return nil, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
		}
		r, err := Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return r, nil
	})
}

// parameters are the settings of a URL.
var parameters = settings.Table[Config]{
	"session-timeout": func(c *Config, v string) error { return settings.Duration(&c.SessionTimeout, v) },
	"dial-timeout":    func(c *Config, v string) error { return settings.Duration(&c.DialTimeout, v) },
	"chroot":          func(c *Config, v string) error { return settings.Text(&c.Chroot, strings.TrimRight(v, "/")) },
	"username":        func(c *Config, v string) error { return settings.Text(&c.Username, v) },
	"password-file":   func(c *Config, v string) error { return settings.Text(&c.PasswordFile, v) },
	"password-env":    func(c *Config, v string) error { return settings.Secret(&c.Password, v) },
	"ca":              func(c *Config, v string) error { return settings.Text(&c.CAFile, v) },
	"cert":            func(c *Config, v string) error { return settings.Text(&c.CertFile, v) },
	"key":             func(c *Config, v string) error { return settings.Text(&c.KeyFile, v) },
	"tls":             func(c *Config, v string) error { return settings.TLS(&c.TLS, v) },
}

// parseURL reads zookeeper://host:port,host:port/namespace?setting=value. What it
// leaves open of the login comes from the environment.
func parseURL(u *url.URL) (cfg Config, err error) {
	if cfg.Servers, cfg.Namespace, err = settings.Split(u); err != nil {
		return cfg, err
	}
	if err := parameters.Apply(&cfg, u.RawQuery, passwordEnv); err != nil {
		return cfg, err
	}
	login := cfg.login().FromEnvironment(usernameEnv, passwordEnv)
	cfg.Username, cfg.Password = login.Username, login.Password
	return cfg, nil
}
