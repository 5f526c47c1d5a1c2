package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

func init() { registry.Register("embedded", open) }

// owner is a Registry whose server ends with it.
type owner struct {
	*etcd.Registry
	server *Server
}

func (o owner) Close() error {
	return errors.Join(o.Registry.Close(), o.server.Close())
}

// open serves embedded:///folder?namespace=name.
func open(ctx context.Context, u *url.URL) (registry.Registry, error) {
	server, client, err := parseURL(u)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w: %w", registry.ErrInvalid, err)
	}
	srv, err := Start(ctx, server)
	if err != nil {
		return nil, err
	}
	reg, err := srv.Registry(ctx, client)
	if err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	return owner{Registry: reg, server: srv}, nil
}

type configs struct {
	server *Config
	client *etcd.Config
}

// parameters are the settings of a URL.
var parameters = settings.Table[configs]{
	"namespace":       func(c *configs, v string) error { return settings.Text(&c.client.Namespace, v) },
	"addr":            func(c *configs, v string) error { return settings.Text(&c.server.Addr, v) },
	"session-timeout": func(c *configs, v string) error { return settings.Duration(&c.client.SessionTimeout, v) },
}

func parseURL(u *url.URL) (server Config, client etcd.Config, err error) {
	if u.Host != "" || u.Opaque != "" {
		return server, client, fmt.Errorf("the folder %q is relative; write it from the root: embedded:///var/lib/…?namespace=…", u.Host+u.Opaque+u.Path)
	}
	if dir := path.Clean("/" + u.Path); dir != "/" {
		server.Dir = dir
	}
	if err := parameters.Apply(&configs{&server, &client}, u.RawQuery, ""); err != nil {
		return server, client, err
	}
	if client.Namespace == "" {
		return server, client, errors.New("no namespace; name one: embedded:///folder?namespace=shop")
	}
	return server, client, nil
}
