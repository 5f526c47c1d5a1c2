package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// acknowledged is the deadline that an acknowledged heartbeat of that time gives, and by how
// much Done comes before it.
func (s *Server) acknowledged(sent time.Time) (deadline time.Time, lead time.Duration) {
	timeout := s.config.SessionTimeout
	return sent.Add(timeout - timeout/10), timeout / 50
}

// keepAlive sends heartbeats until the session ends.
func (s *session) keepAlive() {
	interval := s.server.config.SessionTimeout / 4
	for pause := interval; wait.For(s.Context(), pause); {
		sent := time.Now()
		switch err := s.beat(sent, interval); {
		case errors.Is(err, errBroken):
			pause = 0
		case errors.Is(err, errRefused):
			_ = s.link.reachable(s.Context(), s.Done())
			pause = 0
		default:
			pause = time.Until(sent.Add(interval))
		}
	}
}

// beat sends one heartbeat and waits for the answer, no longer than until the next is due.
func (s *session) beat(now time.Time, interval time.Duration) error {
	ctx, cancel := context.WithTimeout(s.Context(), interval)
	defer cancel()
	alive := false
	_, err := s.link.call(ctx, &request{kind: kindHeartbeat, ended: s.Done(), serve: func() {
		if alive = s.life.alive; alive {
			s.server.renew(s.life)
		}
	}})
	switch {
	case err != nil:
	case alive:
		s.Extend(s.server.acknowledged(now))
	default:
		s.Lose(errExpired)
	}
	return err
}

func (s *session) Close(ctx context.Context) error {
	return s.CloseOnce(func() error {
		defer s.registry.forget(s)
		return s.endAtServer(ctx)
	})
}

// endAtServer waits no longer than the session can live without heartbeats, and sends one
// request that it does not wait for once the registry is closed, or ctx had ended.
func (s *session) endAtServer(ctx context.Context) error {
	end := func() { s.server.end(s.life) }
	if s.life.endless {
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		end()
		return nil
	}
	once, reg := ctx.Err() != nil, s.registry
	ctx, cancel := lifetime.Farewell(ctx, s.server.config.SessionTimeout)
	defer cancel()
	for {
		noWait := once || reg.ctx.Err() != nil
		_, err := s.link.call(ctx, &request{kind: kindClose, noWait: noWait, ended: reg.ctx.Done(), serve: end})
		if err == nil {
			return nil
		}
		if noWait || ctx.Err() != nil {
			return fmt.Errorf("memory: close session %s: %w: its ephemeral nodes vanish when it expires: %w",
				s.ID(), registry.ErrUnavailable, err)
		}
		if errors.Is(err, errRefused) {
			_ = s.link.reachable(ctx, reg.ctx.Done())
		}
	}
}
