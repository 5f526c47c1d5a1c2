package etcd

import (
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

func init() { settings.Register(urls, Open) }

// urls are etcd://host:port,host:port/namespace?setting=value.
var urls = settings.URLs[Config]{
	Common: (*Config).common,
	Own: settings.Table[Config]{
		"max-ops":   func(c *Config, v string) error { return settings.Count(&c.Limits.MaxOps, v) },
		"max-bytes": (*Config).setMaxBytes,
	},
}

// setMaxBytes lets a value have half of them.
func (c *Config) setMaxBytes(v string) error {
	if err := settings.Count(&c.Limits.MaxBytes, v); err != nil {
		return err
	}
	c.Limits.MaxValue = min(c.Limits.MaxBytes, max(registry.PortableLimits().MaxValue, c.Limits.MaxBytes/2))
	return nil
}
