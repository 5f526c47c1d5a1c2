package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// A bell is a store that listens.
type bell struct{ *store }

var _ polled.Bell = (*bell)(nil)

// Listen has a connection of its own.
func (b *bell) Listen(ctx context.Context, heard func(polled.Step)) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer b.hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN elasticron"); err != nil {
		return classify(err)
	}
	first := polled.Step{Unknown: true}
	if err := conn.QueryRow(ctx, "SELECT revision FROM elasticron.clock").Scan(&first.Revision); err != nil {
		return classify(err)
	}
	heard(first)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return classify(err)
		}
		step, err := parseStep(n.Payload)
		if err != nil {
			return err
		}
		heard(step)
	}
}

// parseStep reads what function ring of schema.sql tells: the revision and paths, a line each.
func parseStep(payload string) (step polled.Step, err error) {
	lines := strings.Split(payload, "\n")
	rev, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || rev <= 0 {
		return step, errors.New("a notification on channel elasticron that is not ours: " + strconv.Quote(payload))
	}
	step = polled.Step{Revision: registry.Revision(rev), Paths: lines[1:]}
	step.Unknown = len(lines) > 1 && lines[1] == "*"
	return step, nil
}

// probeTime is how long a notification may take through a pooler.
const probeTime = time.Second

// hearsThrough listens on conn, and has another connection notify it.
func (s *store) hearsThrough(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if _, err := conn.Exec(ctx, "LISTEN elasticron_probe"); err != nil {
		return false, classify(err)
	}
	probe := rand.Text() // others try too
	if err := ask(ctx, s.pool, nil, "SELECT pg_notify('elasticron_probe', $1)", probe); err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	for {
		switch n, err := conn.WaitForNotification(wait); {
		case err != nil:
			return false, ctx.Err()
		case n.Payload == probe:
			return true, nil
		}
	}
}
