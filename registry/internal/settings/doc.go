// Package settings is what the configurations of the adapters have in common:
// the shape of a URL, its settings, the login, files for TLS, and what a
// namespace and an address look like. An adapter keeps a table of its settings
// and adds what is its own:
//
//	var table = settings.Table[Config]{
//		"dial-timeout": func(c *Config, v string) error { return settings.Duration(&c.DialTimeout, v) },
//	}
//	hosts, namespace, err := settings.Split(u)
//	...
//	err = table.Apply(&cfg, u.RawQuery, "ELASTICRON_ETCD_PASSWORD")
//
// # Errors
//
// Each mistake is one line that names the setting and the fix. They wrap nothing:
// the adapter says whose they are and that they are registry.ErrInvalid. No error
// repeats a password.
//
// # Concurrency
//
// Nothing here has state.
package settings
