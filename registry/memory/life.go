package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// deadlineOf is the deadline that an acknowledged heartbeat of that time gives.
func (s *session) deadlineOf(sent time.Time) time.Time {
	timeout := s.server.config.SessionTimeout
	return sent.Add(timeout - timeout/10)
}

// lastMoment is when the session gives up: a little before Deadline, so that a
// timer that is late does not make Done late.
func (s *session) lastMoment() time.Time {
	return s.Deadline().Add(-s.server.config.SessionTimeout / 50)
}

// keepAlive sends heartbeats until the session ends.
func (s *session) keepAlive() {
	interval := s.server.config.SessionTimeout / 4
	next := time.Now().Add(interval)
	for {
		last := s.lastMoment()
		if !s.sleepUntil(earlier(next, last)) {
			return
		}
		now := time.Now()
		if !now.Before(last) {
			s.lose(errSilent)
			return
		}
		next = now.Add(interval)
		switch err := s.beat(now, earlier(next, last)); {
		case errors.Is(err, errBroken):
			next = now
		case errors.Is(err, errRefused):
			s.awaitService(last)
			next = now
		}
	}
}

// beat sends one heartbeat and waits for the answer until giveUp.
func (s *session) beat(now, giveUp time.Time) error {
	ctx, cancel := context.WithDeadline(s.ctx, giveUp)
	defer cancel()
	alive := false
	_, err := s.link.call(ctx, &request{kind: kindHeartbeat, ended: s.done, serve: func() {
		if alive = s.life.alive; alive {
			s.server.renew(s.life)
		}
	}})
	if err != nil {
		return err
	}
	if !alive {
		s.lose(errExpired)
		return nil
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.deadline = s.deadlineOf(now)
	return nil
}

func (s *session) awaitService(last time.Time) {
	ctx, cancel := context.WithDeadline(s.ctx, last)
	defer cancel()
	_ = s.link.reachable(ctx, s.done)
}

func (s *session) sleepUntil(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// lose ends the session here. The first cause stays.
func (s *session) lose(cause error) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = fmt.Errorf("memory: %w: %s: %w", registry.ErrSessionLost, s.id, cause)
	close(s.done)
	s.cancel()
	for w := range s.watchers {
		w.detach()
	}
}

// spawn runs fn on a goroutine that Close joins. The context of fn ends with the
// session; when it has ended already fn runs in the caller.
func (s *session) spawn(fn func(ctx context.Context)) {
	s.server.mu.Lock()
	ended := s.err != nil
	if !ended {
		s.tasks.Go(func() { fn(s.ctx) })
	}
	s.server.mu.Unlock()
	if ended {
		fn(s.ctx)
	}
}

func (s *session) Close(ctx context.Context) error { return s.close(ctx, false) }

func (s *session) close(ctx context.Context, noWait bool) error {
	s.closing.Do(func() {
		s.lose(errEnded)
		s.tasks.Wait()
		s.closeErr = s.endAtServer(ctx, noWait)
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		delete(s.registry.sessions, s)
		delete(s.server.clients, s.id)
	})
	return s.closeErr
}

// endAtServer waits no longer than the session can live without heartbeats.
func (s *session) endAtServer(ctx context.Context, noWait bool) error {
	if s.life.endless {
		return nil
	}
	if ctx.Err() != nil {
		ctx, noWait = context.WithoutCancel(ctx), true
	}
	ctx, cancel := context.WithTimeout(ctx, s.server.config.SessionTimeout)
	defer cancel()
	for {
		noWait = noWait || s.registry.isClosed()
		_, err := s.link.call(ctx, &request{
			kind: kindClose, noWait: noWait, ended: s.registry.closed,
			serve: func() { s.server.end(s.life) },
		})
		if err == nil {
			return nil
		}
		if noWait || ctx.Err() != nil {
			return fmt.Errorf("memory: close session %s: %w: its ephemeral nodes vanish when it expires: %w",
				s.id, registry.ErrUnavailable, err)
		}
		if errors.Is(err, errRefused) {
			_ = s.link.reachable(ctx, s.registry.closed)
		}
	}
}
