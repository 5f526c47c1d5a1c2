package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elasticron/elasticron/registry"
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

// settings are the parameters of a URL.
var settings = map[string]func(c *Config, value string) error{
	"session-timeout": func(c *Config, v string) error { return setDuration(&c.SessionTimeout, v) },
	"dial-timeout":    func(c *Config, v string) error { return setDuration(&c.DialTimeout, v) },
	"max-ops":         func(c *Config, v string) error { return setCount(&c.Limits.MaxOps, v) },
	"max-bytes":       func(c *Config, v string) error { return setCount(&c.Limits.MaxBytes, v) },
	"username":        func(c *Config, v string) error { c.Username = v; return nil },
	"password-file":   func(c *Config, v string) error { c.PasswordFile = v; return nil },
	"ca":              func(c *Config, v string) error { c.CAFile = v; return nil },
	"cert":            func(c *Config, v string) error { c.CertFile = v; return nil },
	"key":             func(c *Config, v string) error { c.KeyFile = v; return nil },
	"tls":             setTLS,
}

// parseURL reads etcd://host:port,host:port/namespace?setting=value.
func parseURL(u *url.URL) (Config, error) {
	cfg := Config{Namespace: strings.Trim(u.Path, "/")}
	if u.Opaque != "" {
		return cfg, fmt.Errorf("%s: is not followed by //; write etcd://host:port/namespace", u.Scheme)
	}
	if u.Fragment != "" {
		return cfg, fmt.Errorf("the URL has a fragment (#…); write etcd://host:port/namespace")
	}
	if u.Host != "" {
		cfg.Endpoints = strings.Split(u.Host, ",")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return cfg, fmt.Errorf("the URL's settings cannot be read; write ?name=value&name=value")
	}
	for name, values := range query {
		set, known := settings[name]
		switch {
		case name == "password":
			return cfg, fmt.Errorf("a password does not belong in a URL; use password-file or %s", passwordEnv)
		case !known:
			return cfg, fmt.Errorf("unknown setting %q; known: %s", name, strings.Join(settingNames(), " "))
		case len(values) > 1:
			return cfg, fmt.Errorf("setting %q occurs %d times", name, len(values))
		}
		if err := set(&cfg, values[0]); err != nil {
			return cfg, fmt.Errorf("setting %s=%q: %w", name, values[0], err)
		}
	}
	if cfg.Limits.MaxBytes > 0 {
		cfg.Limits.MaxValue = min(cfg.Limits.MaxBytes, max(registry.PortableLimits().MaxValue, cfg.Limits.MaxBytes/2))
	}
	fromEnvironment(&cfg)
	return cfg, nil
}

// fromEnvironment fills in the login that the URL leaves open.
func fromEnvironment(c *Config) {
	if c.Username == "" {
		c.Username = os.Getenv(usernameEnv)
	}
	if c.Username != "" && c.PasswordFile == "" {
		c.Password = os.Getenv(passwordEnv)
	}
}

func setTLS(c *Config, v string) error {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("not true or false")
	}
	if on {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

func setDuration(d *time.Duration, v string) error {
	parsed, err := time.ParseDuration(v)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("not a positive duration such as 6s")
	}
	*d = parsed
	return nil
}

func setCount(n *int, v string) error {
	parsed, err := strconv.Atoi(v)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("not a positive number")
	}
	*n = parsed
	return nil
}

func settingNames() []string {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
