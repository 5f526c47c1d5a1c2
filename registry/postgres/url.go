package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const (
	usernameEnv = "ELASTICRON_POSTGRES_USERNAME"
	passwordEnv = "ELASTICRON_POSTGRES_PASSWORD"
)

func init() {
	registry.Register("postgres", func(ctx context.Context, u *url.URL) (registry.Registry, error) {
		cfg, err := parseURL(u)
		if err != nil {
			return nil, fmt.Errorf("postgres: %w: %w", registry.ErrInvalid, err)
		}
		return Open(ctx, cfg)
	})
}

// parameters are the settings of a URL.
var parameters = settings.Table[Config]{
	"session-timeout": func(c *Config, v string) error { return settings.Duration(&c.SessionTimeout, v) },
	"dial-timeout":    func(c *Config, v string) error { return settings.Duration(&c.DialTimeout, v) },
	"max-conns":       func(c *Config, v string) error { return settings.Count(&c.MaxConns, v) },
	"username":        func(c *Config, v string) error { return settings.Text(&c.Username, v) },
	"password-file":   func(c *Config, v string) error { return settings.Text(&c.PasswordFile, v) },
	"password-env":    func(c *Config, v string) error { return settings.Secret(&c.Password, v) },
	"ca":              func(c *Config, v string) error { return settings.Text(&c.CAFile, v) },
	"cert":            func(c *Config, v string) error { return settings.Text(&c.CertFile, v) },
	"key":             func(c *Config, v string) error { return settings.Text(&c.KeyFile, v) },
	"tls":             func(c *Config, v string) error { return settings.TLS(&c.TLS, v) },
}

// parseURL reads postgres://host:port,host:port/database/namespace?setting=value. What it
// leaves open of the login comes from the environment.
func parseURL(u *url.URL) (cfg Config, err error) {
	hosts, path, err := settings.Split(u)
	if err != nil {
		return cfg, err
	}
	cfg.Hosts = hosts
	cfg.Database, cfg.Namespace, _ = strings.Cut(path, "/")
	if err := parameters.Apply(&cfg, u.RawQuery, passwordEnv); err != nil {
		return cfg, err
	}
	login := cfg.login().FromEnvironment(usernameEnv, passwordEnv)
	cfg.Username, cfg.Password = login.Username, login.Password
	return cfg, nil
}
