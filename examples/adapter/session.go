package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

var (
	errSilent  = errors.New("no heartbeat was answered in time")
	errExpired = errors.New("expired by another client")
	errEnded   = errors.New("closed by its owner")
)

// A session is one life: a row in the database, and here a context whose end is
// Done and whose cause is Err.
type session struct {
	registry *Registry
	id       string
	ctx      context.Context
	cancel   context.CancelCauseFunc
	tasks    sync.WaitGroup
	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	deadline time.Time
	silence  *time.Timer // ends the session shortly before deadline
}

var _ registry.Session = (*session)(nil)

func newSession(r *Registry) *session {
	s := &session{registry: r, id: rand.Text()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *session) ID() string            { return s.id }
func (s *session) Done() <-chan struct{} { return s.ctx.Done() }
func (s *session) Err() error            { return context.Cause(s.ctx) }

func (s *session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

// end ends the session here. The first cause stays.
func (s *session) end(cause error) {
	s.cancel(fmt.Errorf("sqlite: %w: %s: %w", registry.ErrSessionLost, s.id, cause))
}

// acknowledged moves Deadline. Others saw what was sent then later than it was
// sent, and wait a whole timeout from there.
func (s *session) acknowledged(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = sent.Add(s.registry.timeout * 9 / 10)
	last := time.Until(s.deadline) - s.registry.timeout/50 // a timer may be late, Done may not
	if s.silence == nil {
		s.silence = time.AfterFunc(last, func() { s.end(errSilent) })
	} else {
		s.silence.Reset(last)
	}
}

// keepAlive sends heartbeats, and ends the sessions of others that send none. Done
// does not depend on it: the timer runs whatever becomes of a request.
func (s *session) keepAlive(ctx context.Context) {
	tick := time.NewTicker(min(s.registry.timeout/4, 500*time.Millisecond))
	defer tick.Stop()
	var seen registry.Revision
	var others map[string]sighting
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		attempt, cancel := context.WithTimeout(ctx, s.registry.timeout/2)
		if rev, err := s.beat(attempt); err == nil && rev != seen {
			seen = rev
			s.wakeWatchers() // somebody wrote something
		}
		others = s.expire(attempt, others)
		cancel()
	}
}

// beat returns the revision of the database.
func (s *session) beat(ctx context.Context) (rev registry.Revision, err error) {
	sent := time.Now()
	err = s.registry.db.QueryRowContext(ctx,
		"UPDATE sessions SET beat = beat + 1 WHERE id = ? RETURNING (SELECT revision FROM clock)", s.id).Scan(&rev)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		s.end(errExpired)
	case err == nil:
		s.acknowledged(sent)
	}
	return rev, err
}

// A sighting is another session's counter, and since when it stands there for all
// we know.
type sighting struct {
	beat    int64
	timeout time.Duration
	since   time.Time
}

// expire deletes the sessions whose counter has stood still for their timeout. It
// returns what it has seen, for the next time.
func (s *session) expire(ctx context.Context, before map[string]sighting) map[string]sighting {
	now := map[string]sighting{}
	err := s.registry.each(ctx, func(rows *sql.Rows) error {
		id, saw := "", sighting{since: time.Now()}
		err := rows.Scan(&id, &saw.beat, &saw.timeout)
		if last := before[id]; last.beat == saw.beat {
			saw = last
		}
		now[id] = saw
		return err
	}, "SELECT id, beat, timeout FROM sessions")
	if err != nil {
		return before
	}
	for id, saw := range now {
		if time.Since(saw.since) > saw.timeout { // a beat that came meanwhile saves it
			_, _ = s.registry.db.ExecContext(ctx, "DELETE FROM sessions WHERE id = ? AND beat = ?", id, saw.beat)
		}
	}
	return now
}

// spawn runs fn on a goroutine that Close joins; after the end in the caller.
func (s *session) spawn(fn func(ctx context.Context)) {
	s.mu.Lock()
	alive := s.ctx.Err() == nil
	if alive {
		s.tasks.Go(func() { fn(s.ctx) })
	}
	s.mu.Unlock()
	if !alive {
		fn(s.ctx)
	}
}

func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.mu.Lock() // from here on spawn starts nothing
		s.silence.Stop()
		s.end(errEnded)
		s.mu.Unlock()
		s.tasks.Wait()
		s.closeErr = s.delete(ctx)
		s.registry.mu.Lock()
		defer s.registry.mu.Unlock()
		delete(s.registry.sessions, s)
	})
	return s.closeErr
}

// delete ends the session in the database. It tries for as long as ctx, and the
// session, could last; for a moment also when ctx had ended before.
func (s *session) delete(ctx context.Context) error {
	wait := s.registry.timeout
	if ctx.Err() != nil {
		ctx, wait = context.WithoutCancel(ctx), wait/20
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := retry(ctx, func() error {
		_, err := s.registry.db.ExecContext(ctx, "DELETE FROM sessions WHERE id = ?", s.id)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: close session %s: its nodes vanish when it expires: %w", s.id, err)
	}
	return nil
}

func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.spawn)
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.spawn)
}
