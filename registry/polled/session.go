package polled

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
)

var (
	errSilent  = errors.New("no heartbeat was answered in time")
	errExpired = errors.New("it was ended at the store")
	errEnded   = errors.New("closed by its owner")
)

// A session is one life: a row in the store, and here a context whose end is Done
// and whose cause is Err.
type session struct {
	client   *client
	id       string
	ctx      context.Context
	cancel   context.CancelCauseFunc
	tasks    sync.WaitGroup
	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	deadline time.Time
	silence  *time.Timer // ends the session shortly before deadline
	watchers map[*watcher]struct{}
}

var _ registry.Session = (*session)(nil)

func newSession(c *client) *session {
	s := &session{client: c, id: rand.Text(), watchers: map[*watcher]struct{}{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *session) ID() string              { return s.id }
func (s *session) Done() <-chan struct{}   { return s.ctx.Done() }
func (s *session) Err() error              { return context.Cause(s.ctx) }
func (s *session) Limits() registry.Limits { return s.client.Limits }

func (s *session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

// end ends the session here. The first cause stays.
func (s *session) end(cause error) {
	s.cancel(s.client.wrap("session "+s.id, fmt.Errorf("%w: %w", registry.ErrSessionLost, cause)))
}

// acknowledged moves Deadline. Others saw what was sent then later than it was
// sent, and wait a whole timeout from there. Done does not depend on the requests
// that follow: the timer runs whatever becomes of them.
func (s *session) acknowledged(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	timeout := s.client.SessionTimeout
	s.deadline = sent.Add(timeout * 9 / 10)
	last := time.Until(s.deadline) - timeout/50 // a timer may be late, Done may not
	if s.silence == nil {
		s.silence = time.AfterFunc(last, func() { s.end(errSilent) })
	} else {
		s.silence.Reset(last)
	}
}

// keepAlive sends heartbeats, and ends the sessions of others that send none.
func (s *session) keepAlive(ctx context.Context) {
	timer := time.NewTimer(s.client.Poll)
	defer timer.Stop()
	var seen registry.Revision
	others := sightings{}
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		attempt, cancel := s.client.attempt(ctx)
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
		timer.Reset(time.Until(began.Add(s.pause(err, others))))
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
func (s *session) lookAround(ctx context.Context) {
	timer := time.NewTimer(s.client.Poll)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.wakeAll()
			timer.Reset(s.pause(nil, nil))
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) beat(ctx context.Context) (registry.Revision, error) {
	sent := time.Now()
	rev, err := s.client.store.Beat(ctx, s.id)
	switch {
	case err == nil:
		s.acknowledged(sent)
	case errors.Is(err, registry.ErrSessionLost):
		s.end(errExpired)
	}
	return rev, err
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
	s.closing.Do(func() {
		s.mu.Lock() // from here on spawn starts nothing
		if s.silence != nil {
			s.silence.Stop()
		}
		s.end(errEnded)
		s.mu.Unlock()
		s.tasks.Wait()
		s.closeErr = s.remove(ctx)
		s.client.forget(s)
	})
	return s.closeErr
}

// remove ends the session at the store. It tries for as long as ctx, and the
// session, could last; for a moment also when ctx had ended before.
func (s *session) remove(ctx context.Context) error {
	if s.id == NoSession {
		return nil
	}
	wait := s.client.SessionTimeout
	if ctx.Err() != nil {
		ctx, wait = context.WithoutCancel(ctx), wait/20
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := s.client.retry(ctx, func(ctx context.Context) error { return s.client.store.End(ctx, s.id, AnyBeat) })
	if err != nil {
		return s.client.wrap("close session "+s.id+": its nodes vanish when it expires", err)
	}
	return nil
}

func (s *session) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, false, s.spawn)
}

func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return latch.Acquire(ctx, s, dir, value, true, s.spawn)
}
