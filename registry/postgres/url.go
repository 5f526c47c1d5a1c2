package postgres

import "github.com/elasticron/elasticron/registry/internal/settings"

func init() { settings.Register(urls, Open) }

// urls are postgres://host:port,host:port/database/namespace?setting=value.
var urls = settings.URLs[Config]{
	Common: (*Config).common,
	Own: settings.Table[Config]{
		"max-conns": func(c *Config, v string) error { return settings.Count(&c.MaxConns, v) },
	},
}
