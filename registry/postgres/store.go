package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
)

// A store is one client of a database. Every request is one statement, and so atomic.
type store struct {
	cfg    Config
	conn   *pgx.ConnConfig // of the connection that listens
	dialer *dialer
	pool   *pgxpool.Pool
	pulse  *pgxpool.Pool // one connection, which keeps sessions alive whatever becomes of others
	spare  *pgxpool.Pool // one more, for heartbeats that are sent again

	mu         sync.Mutex
	unanswered time.Time // when the first silent heartbeat since the last answer was sent
}

var _ polled.Store = (*store)(nil)

// Begin may be cancelled: nobody has a session whose beginning was given up.
func (s *store) Begin(ctx context.Context, session string, timeout time.Duration) error {
	return ask(recallable(ctx), s.pulse, nil, "INSERT INTO elasticron.sessions (id, timeout) VALUES ($1, $2)", session, int64(timeout))
}

// secondAfter is the part of a session's timeout after which a heartbeat that has no answer is sent once more, on another
// connection: a silent one is given up only when slow answers would have come, and then it is late.
const secondAfter = 8

func (s *store) Beat(ctx context.Context, session string) (registry.Revision, error) {
	type answer struct {
		rev    registry.Revision
		err    error
		second bool
	}
	sent, given, answers := time.Now(), ctx, make(chan answer, 2)
	timer := time.NewTimer(s.cfg.SessionTimeout / secondAfter)
	defer timer.Stop()
	var beating sync.WaitGroup
	defer beating.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beat := func(pool *pgxpool.Pool) {
		beating.Go(func() {
			rev, err := beat(ctx, pool, session)
			answers <- answer{rev, err, pool == s.spare}
		})
	}
	beat(s.pulse)
	for pending := 1; ; {
		select {
		case <-timer.C:
			pending++
			s.spare.Reset() // what is idle there may be as silent
			beat(s.spare)
		case a := <-answers:
			pending--
			if came := a.err == nil || errors.Is(a.err, registry.ErrSessionLost); came || pending == 0 {
				s.answered(sent, came, a.second || errors.Is(given.Err(), context.DeadlineExceeded))
				return a.rev, a.err
			}
		}
	}
}

// answered learns from a heartbeat which connections may be dead: those on which nothing has come since one was sent that
// was silent, once there is an answer on another.
func (s *store) answered(sent time.Time, came, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if silent && s.unanswered.IsZero() {
		s.unanswered = sent.Add(s.cfg.SessionTimeout / (2 * secondAfter)) // what heard something right after it may have died with it
	}
	if came && !s.unanswered.IsZero() {
		s.pool.Reset()
		s.dialer.doubt(s.unanswered)
		s.unanswered = time.Time{}
	}
}

func beat(ctx context.Context, pool *pgxpool.Pool, session string) (registry.Revision, error) {
	revs, err := collect(ctx, pool, func(row pgx.Rows) (rev registry.Revision, err error) {
		err = row.Scan(&rev)
		return rev, err
	}, "SELECT elasticron.heartbeat("+patient+")", session)
	switch {
	case err != nil:
		return 0, err
	case len(revs) != 1 || revs[0] == 0:
		return 0, registry.ErrSessionLost
	}
	return revs[0], nil
}

// Sessions is asked between two heartbeats, which must not wait for it.
func (s *store) Sessions(ctx context.Context) ([]polled.Session, error) {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(recallable(ctx), s.cfg.SessionTimeout/4)
	defer cancel()
	all, err := collect(ctx, s.pulse, func(row pgx.Rows) (one polled.Session, err error) {
		var timeout int64
		err = row.Scan(&one.ID, &one.Beat, &timeout)
		one.Timeout = time.Duration(timeout)
		return one, err
	}, "SELECT id, beat, timeout FROM elasticron.sessions")
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.answered(sent, false, true)
	}
	return all, err
}

func (s *store) End(ctx context.Context, session string, beat int64) error {
	_, err := collect(ctx, s.pool, func(pgx.Rows) (none struct{}, err error) { return none, nil },
		"SELECT elasticron.finish("+patient+", $2)", session, beat)
	return err
}

func (s *store) Read(ctx context.Context, paths, dirs []string) ([]polled.Node, error) {
	const columns = "SELECT path, value, version, created, modified, owner FROM elasticron.nodes WHERE "
	return collect(recallable(ctx), s.pool, func(row pgx.Rows) (n polled.Node, err error) {
		err = row.Scan(&n.Path, &n.Value, &n.Version, &n.Created, &n.Modified, &n.Owner)
		return n, err
	}, columns+"path = ANY ($1) UNION ALL "+columns+"parent = ANY ($2)", array(paths), array(dirs))
}

func (s *store) Commit(ctx context.Context, session string, ops []registry.Op) (rev registry.Revision, err error) {
	n := len(ops)
	kinds, paths, parents := make([]int32, n), make([]string, n), make([]string, n)
	values, versions := make([][]byte, n), make([]int64, n)
	for i, op := range ops {
		kinds[i], paths[i], parents[i], versions[i] = int32(op.Kind), op.Path, path.Dir(op.Path), int64(op.Version)
		values[i] = append([]byte{}, op.Value...) // nil would be NULL
	}
	var refused int
	var reason *string
	err = ask(ctx, s.pool, func(row pgx.Rows) error { return row.Scan(&rev, &refused, &reason) },
		"SELECT revision, refused, reason FROM elasticron.step("+patient+", $2, $3, $4, $5, $6)",
		session, kinds, paths, parents, values, versions)
	if err == nil && reason != nil {
		err = refusal(refused, *reason)
	}
	return rev, err
}

// patience is how long Close waits for the server to be told.
const patience = 500 * time.Millisecond

func (s *store) Close() error {
	impatient := time.AfterFunc(patience, s.dialer.cut)
	defer impatient.Stop()
	var closing sync.WaitGroup
	closing.Go(s.pulse.Close)
	closing.Go(s.spare.Close)
	s.pool.Close()
	closing.Wait()
	s.dialer.cut()
	return nil
}

// patient is the first argument of a function that may wait for a lock. The server waits on for who has given up, so it has
// a limit: what is asked again and again would take all its connections.
const (
	patient = patiently + "$1::text END"

	patiently = "CASE WHEN set_config('lock_timeout', '5s', true) <> '' THEN "
)

// recalls is in the context of a statement that may be cancelled: of a read, or of the beginning of a session.
type recalls struct{}

func recallable(ctx context.Context) context.Context { return context.WithValue(ctx, recalls{}, true) }

// ask sends a statement and hands over each row of the answer.
func ask(ctx context.Context, pool *pgxpool.Pool, scan func(row pgx.Rows) error, query string, args ...any) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return unreached(ctx, err)
	}
	defer conn.Release()
	marks, line := conn.Conn().PgConn().CustomData(), lineOf(conn.Conn())
	delete(marks, warned)
	line.recalls = ctx.Value(recalls{}) != nil
	rows, err := conn.Query(ctx, query, args...)
	if err == nil {
		for rows.Next() && err == nil && scan != nil {
			err = scan(rows)
		}
		rows.Close()
		err = cmp.Or(rows.Err(), err)
	}
	switch {
	case err == nil && marks[warned] != nil: // the only warning that there is after these statements
		return errUnreplicated
	case ctx.Err() != nil && conn.Conn().IsClosed():
		_ = line.Close() // the client library would wait for the server, and keep others waiting
	case conn.Conn().IsClosed() || readOnly(err):
		// So are all that were open when a server ended or became a standby.
		pool.Reset()
	}
	return classify(err)
}

// collect is ask for what may be repeated: once, when the connection was broken.
func collect[T any](ctx context.Context, pool *pgxpool.Pool, scan func(row pgx.Rows) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	attempt := func() error {
		all = nil
		return ask(ctx, pool, func(row pgx.Rows) error {
			one, err := scan(row)
			all = append(all, one)
			return err
		}, query, args...)
	}
	err := attempt()
	if err != nil && ctx.Err() == nil && broken(err) {
		err = attempt()
	}
	return all, err
}

// unreached is the error of who got no connection. When his patience has ended he cannot tell that
// from an answer that did not come.
func unreached(ctx context.Context, err error) error {
	if no := refused(err); no != nil {
		return no
	}
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", registry.ErrUnavailable, flat{err})
}

// array is never NULL.
func array(paths []string) []string {
	if paths == nil {
		return []string{}
	}
	return paths
}
