package main

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

// onPostgres is the registry in a database.
const onPostgres = "postgres"

// A postgresServer is the one server of a part.
type postgresServer struct {
	*pgserver.Server

	version string
}

var _ servers = (*postgresServer)(nil)

func startPostgres(ctx context.Context, n int) (servers, error) {
	if n != 1 {
		return nil, fmt.Errorf("chaos: %d PostgreSQL servers: give -servers 1", n)
	}
	srv, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		return nil, err
	}
	version, err := srv.Version(ctx)
	if err != nil {
		_ = srv.Close()
		return nil, err
	}
	return &postgresServer{srv, version}, nil
}

func openPostgres(ctx context.Context, addrs []string) (registry.Registry, error) {
	return postgres.Open(ctx, postgres.Config{
		Hosts: addrs, Database: "postgres", Namespace: namespace, Username: pgserver.User, SessionTimeout: sessionTimeout,
	})
}

func (p *postgresServer) Addrs() []string                          { return []string{p.Addr()} }
func (p *postgresServer) Way() string                              { return "PostgreSQL " + p.version + ", child processes" }
func (p *postgresServer) Restart(ctx context.Context, _ int) error { return p.Server.Restart(ctx) }
func (p *postgresServer) RestartAll(ctx context.Context) error     { return p.Server.Restart(ctx) }
func (p *postgresServer) Pause(int) error                          { return p.Server.Pause() }
func (p *postgresServer) Leader(context.Context) (int, error)      { return 0, nil }

func (p *postgresServer) Kill(int) error {
	p.Server.Kill()
	return nil
}

func (p *postgresServer) Resume(int) error {
	p.Server.Resume()
	return nil
}
