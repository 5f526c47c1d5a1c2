package polled

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/wait"
	"github.com/elasticron/elasticron/registry/latch"
)

var errExpired = errors.New("it was ended at the store")

// A session is one life: a row in the store, by its ID.
type session struct {
	*lifetime.Lifetime

	client *client

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

func newSession(c *client) *session {
	return &session{Lifetime: lifetime.New(c.Name), client: c, watchers: map[*watcher]struct{}{}}
}

func (s *session) Limits() registry.Limits { return s.client.Limits }

// acknowledged is the Deadline that an answered heartbeat gives, and by how much Done comes before it. Others saw what
// was sent then later than it was sent, and wait a whole timeout from there.
func (c *client) acknowledged(sent time.Time) (deadline time.Time, lead time.Duration) {
	return sent.Add(c.SessionTimeout * 9 / 10), c.SessionTimeout / 50
}

// keepAlive sends heartbeats, and ends the sessions of others that send none.
func (s *session) keepAlive() {
	var seen registry.Revision
	others := sightings{}
	for pause := s.client.Poll; wait.For(s.Context(), pause); {
		began := time.Now()
		attempt, cancel := s.client.attempt(s.Context())
		rev, err := s.beat(attempt)
		if err == nil && !s.client.ear.knows(rev, s.client.Poll) && rev != seen {
			s.wakeAll() // somebody wrote something
		}
		if err == nil {
			seen = rev
		}
		if attempt.Err() == nil {
			others = s.expire(attempt, others)
		}
		cancel()
		pause = time.Until(began.Add(s.pause(err, others)))
	}
}

// pause is how long after a heartbeat with this outcome the next one is due. Where a bell tells what
// others write, it is rare, unless one was not answered or another session may have ended.
func (s *session) pause(err error, others sightings) time.Duration {
	if err != nil || !s.client.ear.hearing() {
		return s.client.Poll
	}
	pause := s.client.SessionTimeout / pollsInTimeout
	for _, seen := range others {
		pause = min(pause, max(time.Until(seen.since.Add(seen.Timeout)), s.client.Poll/pollsInTimeout))
	}
	return pause
}

// lookAround does for watchers what heartbeats do: what others wrote is seen a poll later.
func (s *session) lookAround() {
	for wait.For(s.Context(), s.pause(nil, nil)) {
		s.wakeAll()
	}
}

func (s *session) beat(ctx context.Context) (registry.Revision, error) {
	sent := time.Now()
	rev, err := s.client.store.Beat(ctx, s.ID())
	switch {
	case err == nil:
		s.Extend(s.client.acknowledged(sent))
	case errors.Is(err, registry.ErrSessionLost):
		s.Lose(errExpired)
	}
	return rev, err
}

// A sighting is another session's counter, and since when it stands there for all
// that is known here. The clock is the own one, and monotonic.
type sighting struct {
	Session

	since time.Time
}

// sightings are by session.
type sightings map[string]sighting

// expire ends the sessions whose counter has stood still for their timeout. It
// returns what it has seen, for the next time.
func (s *session) expire(ctx context.Context, before sightings) sightings {
	rows, err := s.client.store.Sessions(ctx)
	if err != nil {
		return before
	}
	// Later than the counters were read: their owners sent them earlier still.
	read := time.Now()
	now := make(sightings, len(rows))
	for _, row := range rows {
		seen := sighting{row, read}
		if last, known := before[row.ID]; known && last.Beat == row.Beat {
			seen.since = last.since
		}
		now[row.ID] = seen
		if time.Since(seen.since) > seen.Timeout { // a heartbeat that came meanwhile saves it
			_ = s.client.store.End(ctx, row.ID, row.Beat)
			s.wakeAll()
		}
	}
	return now
}

// audience returns the watchers of the session.
func (s *session) audience() []*watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.watchers))
}

// wakeAll makes the watchers of this session look at everything.
func (s *session) wakeAll() {
	for _, w := range s.audience() {
		w.recheckAll()
	}
}

func (s *session) Close(ctx context.Context) error {
	return s.CloseOnce(ctx, s.client.SessionTimeout, s.remove)
}

// remove ends the session at the store.
func (s *session) remove(ctx context.Context) error {
	defer s.client.sessions.Remove(s)
	s.End()
	if s.ID() == NoSession {
		return nil
	}
	err := s.client.retry(ctx, func(ctx context.Context) error { return s.client.store.End(ctx, s.ID(), AnyBeat) })
	if err != nil {
		return s.client.wrap("close session "+s.ID()+": its nodes vanish when it expires", err)
	}
	return nil
}

func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.Spawn)
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.Spawn)
}
