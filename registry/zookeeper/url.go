package zookeeper

import (
	"strings"

	"github.com/elasticron/elasticron/registry/internal/settings"
)

func init() { settings.Register(urls, Open) }

// urls are zookeeper://host:port,host:port/namespace?setting=value.
var urls = settings.URLs[Config]{
	Common: (*Config).common,
	Own: settings.Table[Config]{
		"chroot": func(c *Config, v string) error { return settings.Text(&c.Chroot, strings.TrimRight(v, "/")) },
	},
}
