// Package settings is what the configurations of the adapters have in common: the shape of a URL, its settings, the
// login, files for TLS, and what a namespace and an address look like. An adapter points at its fields, adds the
// settings that are its own, and is known to registry.Open:
//
//	func init() { settings.Register(urls, Open) }
//
//	var urls = settings.URLs[Config]{
//		Common: func(c *Config) settings.Common { return settings.Common{Hosts: &c.Hosts} }, // and all others
//		Own: settings.Table[Config]{
//			"max-conns": func(c *Config, v string) error { return settings.Count(&c.MaxConns, v) },
//		},
//	}
//
// # Errors
//
// Each mistake is one line that names the setting and the fix. They wrap nothing: the adapter says whose they are and
// that they are registry.ErrInvalid. No error repeats a password.
//
// # Concurrency
//
// Nothing here has state.
package settings
