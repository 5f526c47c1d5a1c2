package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elasticron/elasticron/registry/polled"
)

// Choose returns the address that is chosen when names are looked up so.
func Choose(ctx context.Context, c Config, lookup func(context.Context, string) ([]string, error)) (addr string, err error) {
	if c, err = c.complete(); err != nil {
		return "", err
	}
	cfg, err := connConfig(c, newDialer(c.DialTimeout))
	if err != nil {
		return "", err
	}
	cfg.LookupFunc = lookup
	if err := choose(ctx, cfg); err != nil {
		return "", err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return "", err
	}
	addr = lineOf(conn).Conn.RemoteAddr().String()
	return addr, conn.Close(ctx)
}

// Ages returns for how long the pools keep connections, at most; 0 for ever.
func Ages(ctx context.Context, c Config) (all []time.Duration, err error) {
	s, _, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	return []time.Duration{s.pool.Config().MaxConnLifetime, s.pulse.Config().MaxConnLifetime, s.spare.Config().MaxConnLifetime}, s.Close()
}

// OpenStore opens a store; doubt has it find that a heartbeat was answered on another connection alone.
func OpenStore(ctx context.Context, c Config) (_ polled.Store, doubt func(), err error) {
	if c, err = c.complete(); err != nil {
		return nil, nil, err
	}
	s, _, err := open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { s.answered(time.Now().Add(-c.SessionTimeout/(2*secondAfter)), true, true) }, nil
}
