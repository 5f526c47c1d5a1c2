package etcd

import (
	"context"
	"fmt"
	"net/url"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

const (
	usernameEnv = "ELASTICRON_ETCD_USERNAME"
	passwordEnv = "ELASTICRON_ETCD_PASSWORD"
)

func init() {
	registry.Register("etcd", func(ctx context.Context, u *url.URL) (registry.Registry, error) {
		cfg, err := parseURL(u)
		if err != nil {
			return nil, fmt.Errorf("etcd: %w: %w", registry.ErrInvalid, err)
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
	"max-ops":         func(c *Config, v string) error { return settings.Count(&c.Limits.MaxOps, v) },
	"max-bytes":       func(c *Config, v string) error { return settings.Count(&c.Limits.MaxBytes, v) },
	"username":        func(c *Config, v string) error { return settings.Text(&c.Username, v) },
	"password-file":   func(c *Config, v string) error { return settings.Text(&c.PasswordFile, v) },
	"password-env":    func(c *Config, v string) error { return settings.Secret(&c.Password, v) },
	"ca":              func(c *Config, v string) error { return settings.Text(&c.CAFile, v) },
	"cert":            func(c *Config, v string) error { return settings.Text(&c.CertFile, v) },
	"key":             func(c *Config, v string) error { return settings.Text(&c.KeyFile, v) },
	"tls":             func(c *Config, v string) error { return settings.TLS(&c.TLS, v) },
}

// parseURL reads etcd://host:port,host:port/namespace?setting=value. What it
// leaves open of the login comes from the environment.
func parseURL(u *url.URL) (cfg Config, err error) {
	if cfg.Endpoints, cfg.Namespace, err = settings.Split(u); err != nil {
		return cfg, err
	}
	if err := parameters.Apply(&cfg, u.RawQuery, passwordEnv); err != nil {
		return cfg, err
	}
	if cfg.Limits.MaxBytes > 0 {
		cfg.Limits.MaxValue = min(cfg.Limits.MaxBytes, max(registry.PortableLimits().MaxValue, cfg.Limits.MaxBytes/2))
	}
	login := cfg.login().FromEnvironment(usernameEnv, passwordEnv)
	cfg.Username, cfg.Password = login.Username, login.Password
	return cfg, nil
}
