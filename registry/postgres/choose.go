package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// askAgain is how long after a refusal an address is asked again, while another has not answered yet.
const askAgain = 200 * time.Millisecond

// A choice is made among the addresses of all hosts. They are asked at the same time: the client library asks one after the
// other, and one that is silently dead would take all the time there is.
type choice struct {
	ctx    context.Context
	end    context.CancelFunc
	asking sync.WaitGroup

	mu      sync.Mutex
	pending int // addresses that have answered nothing yet
	errs    []error
	chosen  *pgx.ConnConfig
}

// choose leaves the one address in cfg that takes writes. While one is silent the others are asked again: a standby may
// be promoted.
func choose(ctx context.Context, cfg *pgx.ConnConfig) error {
	hosts := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	c, limit := &choice{pending: len(hosts)}, time.Now().Add(cfg.ConnectTimeout)
	c.ctx, c.end = context.WithTimeout(ctx, cfg.ConnectTimeout*3/4) // whoever waits for a connection learns why there is none
	defer c.end()
	for _, h := range hosts {
		c.asking.Go(func() { c.resolve(cfg, h, len(hosts) == 1) })
	}
	c.asking.Wait()
	if c.chosen != nil {
		*cfg = *c.chosen
		cfg.ConnectTimeout = max(time.Until(limit), time.Millisecond) // 0 is for ever
		return nil
	}
	slices.SortFunc(c.errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	all := errors.Join(c.errs...)
	if refused(all) != nil && slices.ContainsFunc(c.errs, func(err error) bool { return refused(err) == nil }) {
		return undecided{all}
	}
	return all
}

// resolve asks each address of a host. One that is alone is chosen.
func (c *choice) resolve(cfg *pgx.ConnConfig, h *pgconn.FallbackConfig, alone bool) {
	addrs, err := cfg.LookupFunc(c.ctx, h.Host)
	if err != nil {
		c.fail(err)
		return
	}
	c.mu.Lock()
	c.pending += len(addrs) - 1
	c.mu.Unlock()
	for _, addr := range addrs {
		one := cfg.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks = h.Host, h.Port, h.TLSConfig, nil
		one.LookupFunc = func(context.Context, string) ([]string, error) { return []string{addr}, nil }
		if alone && len(addrs) == 1 {
			c.choose(one)
			return
		}
		c.asking.Go(func() { c.ask(one) })
	}
}

// ask connects until it succeeds or the choice is made.
func (c *choice) ask(one *pgx.ConnConfig) {
	for first := true; ; first = false {
		conn, err := pgx.ConnectConfig(c.ctx, one)
		if err == nil {
			c.choose(one)
			_ = conn.Close(context.Background())
			return
		}
		if first {
			c.fail(cmp.Or(errors.Unwrap(err), err)) // without what all have in common
		}
		if errors.Is(classify(err), registry.ErrDenied) || !wait.For(c.ctx, askAgain) {
			return
		}
	}
}

func (c *choice) choose(one *pgx.ConnConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chosen == nil {
		c.chosen = one
	}
	c.end()
}

func (c *choice) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
	if c.pending--; c.pending == 0 {
		c.end()
	}
}
