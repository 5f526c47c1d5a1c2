package core

import (
	"context"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/dispatch"
)

// run is the scheduler's one goroutine over all lives.
func (s *Scheduler) run() {
	defer close(s.done)
	defer s.events.Close()
	defer s.runs.Wait()
	defer s.clock.Close()
	var lostAt time.Time
	for {
		l := s.open()
		if l == nil {
			s.finish()
			break
		}
		if !lostAt.IsZero() {
			dispatch.Emit(s.events, event.SessionRegained{Session: l.session.ID(), Outage: time.Since(lostAt)})
		}
		err := s.live(l)
		s.leaveLife()
		if err == nil {
			_ = l.end(ErrStopped) // what is left ends by expiry
			s.finish()
			break
		}
		lostAt = time.Now()
		dispatch.Emit(s.events, event.SessionLost{Err: err})
		_ = l.end(err) // it is lost; ending it at the server only hastens what comes
	}
}

// open opens a session, however long it takes, and lets every job join. It returns
// nil when the scheduler stops first.
func (s *Scheduler) open() *life {
	pause := 100 * time.Millisecond
	for s.halt.Err() == nil {
		l, err := s.tryOpen()
		if err == nil {
			s.mu.Lock()
			s.life, s.openErr = l, nil
			jobs := append([]*job(nil), s.jobs...)
			for _, j := range jobs {
				l.join(j)
			}
			s.mu.Unlock()
			for _, j := range jobs {
				j.waits("")
			}
			s.bump()
			return l
		}
		s.mu.Lock()
		s.openErr = err
		jobs := append([]*job(nil), s.jobs...)
		s.mu.Unlock()
		s.bump()
		for _, j := range jobs {
			j.waits("a session with the registry")
		}
		sleep(s.halt, pause)
		pause = min(2*pause, 2*time.Second)
	}
	return nil
}

func (s *Scheduler) tryOpen() (*life, error) {
	ctx, cancel := context.WithTimeout(s.halt, openWait)
	defer cancel()
	ses, err := s.reg.Open(ctx)
	if err != nil {
		return nil, err
	}
	l, err := newLife(s, ses)
	if err != nil {
		_ = ses.Close(ctx)
		return nil, err
	}
	return l, nil
}

// live waits until the session is lost, which it returns, or all has ended after Stop.
func (s *Scheduler) live(l *life) error {
	stop := s.halt.Done()
	for {
		changed := s.state.next()
		s.mu.Lock()
		stopping, hurry := s.stopping, s.hurry
		s.mu.Unlock()
		if stopping {
			stop = nil
			for _, m := range l.all() {
				m.pause()
				if hurry {
					m.stop(ErrStopped)
				}
			}
			if l.quiet() {
				return nil
			}
		}
		select {
		case <-l.session.Done():
			return l.session.Err()
		case <-changed:
		case <-stop:
		}
	}
}

// leaveLife forgets the life; its jobs start again in the next.
func (s *Scheduler) leaveLife() {
	s.mu.Lock()
	s.life = nil
	jobs := append([]*job(nil), s.jobs...)
	s.mu.Unlock()
	for _, j := range jobs {
		j.mu.Lock()
		ended := j.phase == PhaseStopped || j.phase == PhaseFailed
		j.mu.Unlock()
		if !ended {
			j.enter(PhaseStarting, nil)
		}
	}
}

// finish tells of the end of every job.
func (s *Scheduler) finish() {
	s.mu.Lock()
	jobs := append([]*job(nil), s.jobs...)
	s.mu.Unlock()
	for _, j := range jobs {
		j.mu.Lock()
		m, ended := j.member, j.phase == PhaseStopped || j.phase == PhaseFailed
		j.mu.Unlock()
		if !ended && m != nil {
			j.enter(PhaseStopped, nil)
			dispatch.Emit(s.events, event.Stopped{Job: j.local.Name, Instance: m.id.String(), Reason: event.StopCalled})
		}
	}
}
