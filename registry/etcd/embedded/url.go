package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
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

func parseURL(u *url.URL) (server Config, client etcd.Config, err error) {
	if u.Host != "" || u.Opaque != "" {
		return server, client, fmt.Errorf("the folder %q is relative; write it from the root: embedded:///var/lib/…?namespace=…", u.Host+u.Opaque+u.Path)
	}
	if dir := path.Clean("/" + u.Path); dir != "/" {
		server.Dir = dir
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return server, client, errors.New("the URL's settings cannot be read; write ?name=value&name=value")
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "namespace":
			client.Namespace = value
		case "addr":
			server.Addr = value
		case "session-timeout":
			if client.SessionTimeout, err = time.ParseDuration(value); err != nil || client.SessionTimeout <= 0 {
				return server, client, fmt.Errorf("setting session-timeout=%q: not a positive duration such as 6s", value)
			}
		default:
			return server, client, fmt.Errorf("unknown setting %q; known: addr namespace session-timeout", name)
		}
	}
	if client.Namespace == "" {
		return server, client, errors.New("no namespace; name one: embedded:///folder?namespace=shop")
	}
	return server, client, nil
}
