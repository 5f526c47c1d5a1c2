package core

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/failpoint"
)

// openWait bounds one attempt to open a session.
const openWait = 10 * time.Second

// run is the scheduler's one goroutine over all sessions.
func (s *Scheduler) run() {
	defer close(s.done)
	defer s.events.Close()
	defer s.left.Store(true)
	defer s.joinJobs()
	defer s.clock.Close()
	if w, warns := s.reg.(interface{ Warnings() []string }); warns { // found when it was opened
		for _, problem := range w.Warnings() {
			s.emit(event.Warning{Problem: "registry: " + problem})
		}
	}
	var lostAt time.Time
	for {
		ses := s.open(!lostAt.IsZero())
		if ses == nil {
			s.finish()
			return
		}
		if !lostAt.IsZero() {
			s.emit(event.SessionRegained{Session: ses.ID(), Outage: time.Since(lostAt)})
		}
		err := s.live(ses)
		if err == nil {
			s.end(ses, ErrStopped, time.Time{})
			s.finish()
			return
		}
		lostAt = time.Now()
		s.emit(event.SessionLost{Err: err})
		s.end(ses, err, ses.Deadline())
	}
}

func (s *Scheduler) joinJobs() {
	for _, j := range s.all() {
		j.places.Wait()
		j.calls.joined.Wait()
	}
}

// open opens a session, however long it takes, and lets every job join. It returns
// nil when the scheduler stops first. again: there was one before.
func (s *Scheduler) open(again bool) *session.Session {
	pause := 100 * time.Millisecond
	var told unopened
	for s.halt.Err() == nil {
		ses, err := s.tryOpen()
		if err == nil {
			s.mu.Lock()
			s.session, s.openErr = ses, nil
			for _, j := range s.jobs {
				j.join(ses)
			}
			jobs := append([]*job(nil), s.jobs...)
			s.mu.Unlock()
			for _, j := range jobs {
				j.Waits("")
			}
			s.bump()
			return ses
		}
		s.mu.Lock()
		s.openErr = err
		s.mu.Unlock()
		if again {
			told.tell(s, err)
		}
		s.bump()
		for _, j := range s.all() {
			j.Waits("a session with the registry")
		}
		settle.Pause(s.halt, pause)
		pause = min(2*pause, 2*time.Second)
	}
	return nil
}

// An unopened is what was told of a session that cannot be opened.
type unopened struct {
	text string // of the last error
	at   time.Time
	wait time.Duration
}

// tell warns of an error that is new, and of one that lasts after a minute, two, four, and so on. Before the first
// session Start returns it. Later nobody else says that a password has changed, or a certificate has expired.
func (u *unopened) tell(s *Scheduler, err error) {
	if s.halt.Err() != nil {
		return
	}
	now, text := time.Now(), err.Error()
	switch since := now.Sub(u.at); {
	case u.at.IsZero(), text != u.text && since >= 10*time.Second:
		u.wait = time.Minute
	case since >= u.wait:
		u.wait *= 2
	default:
		return
	}
	u.text, u.at = text, now
	s.emit(event.Warning{Problem: "no session with the registry can be opened, so that no job runs here", Err: err})
}

func (s *Scheduler) tryOpen() (*session.Session, error) {
	ctx, cancel := context.WithTimeout(s.halt, openWait)
	defer cancel()
	return session.Open(ctx, s.reg, func(problem string, err error) {
		s.emit(event.Warning{Problem: problem, Err: err})
	})
}

// drainAfter is how long Stop waits for running items before it gives all others away. Runs that end sooner cost no
// commits but their own.
const drainAfter = time.Second

// live waits until the session is lost, which it returns, or all has ended after Stop.
func (s *Scheduler) live(ses *session.Session) error {
	stop := s.halt.Done()
	var drains <-chan time.Time
	for {
		changed := s.state.next()
		s.mu.Lock()
		stopping, hurry := s.stopping, s.hurry
		s.mu.Unlock()
		if stopping {
			stop = nil
			quiet := true
			for _, j := range s.all() {
				quiet = j.pause(hurry) && quiet
			}
			if quiet {
				return nil
			}
			if drains == nil {
				drains = time.After(drainAfter)
			}
		}
		select {
		case <-drains:
			drains = make(chan time.Time) // once
			for _, j := range s.all() {
				j.withdraw()
			}
		case <-ses.Done():
			return ses.Err()
		case err := <-ses.Given:
			return err
		case <-changed:
		case <-stop:
		}
	}
}

// end ends the session here and at the service. One that is lost stands there until the
// functions that run under it have returned, and no longer than to its deadline: until
// then nobody else may own what they work on.
func (s *Scheduler) end(ses *session.Session, cause error, deadline time.Time) {
	failpoint.Hit(failpoint.SessionDone)
	ses.Cancel(cause)
	s.mu.Lock()
	s.session = nil
	s.mu.Unlock()
	for _, j := range s.all() {
		j.leave(cause)
	}
	if !failpoint.Mutant(failpoint.SessionEndedEarly) {
		s.awaitFunctions(deadline)
	}
	failpoint.Hit(failpoint.BeforeClose)
	_ = ses.End(cause) // what is left ends by expiry
}

func (s *Scheduler) awaitFunctions(deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		changed := s.state.next()
		idle := true
		for _, j := range s.all() {
			idle = idle && j.places.Idle()
		}
		if idle {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// finish tells of the end of every job.
func (s *Scheduler) finish() {
	for _, j := range s.all() {
		j.finish()
	}
}

// Stop begins no more fires, waits for running items to end, records their ends
// and leaves the registry. What is owed but has not begun stays owed: whoever owns the
// item next makes it up. After a second others take over what does not run here,
// of a job with MonitorOff once nothing of it runs. When ctx ends first the items' contexts are cancelled
// with ErrStopped; those that do not return within a second are named in a
// *RunningError. They keep what they own until they return: the session stays
// open for them, and Stop may be called again to wait on. It is idempotent and
// legal before Start.
func (s *Scheduler) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	started := s.started
	s.mu.Unlock()
	if first {
		s.cancel()
		if !started {
			close(s.done)
		}
		s.bump()
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.hurry = true
	s.mu.Unlock()
	s.bump()
	// Cancelled items have a moment to return; once they have, only the registry is
	// waited for, and every request to it is bounded.
	for _, wait := range []time.Duration{stopGrace, stopPatience} {
		timer := time.NewTimer(wait)
		select {
		case <-s.done:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if items := s.stillRunning(); len(items) > 0 {
			return &RunningError{Items: items, Err: context.Cause(ctx)}
		}
	}
	if s.left.Load() {
		return errors.Join(errors.New("core: stop: the registry was left; a listener (WithListener) has not returned, and what follows is not told yet"), context.Cause(ctx))
	}
	return errors.Join(errors.New("core: stop: the registry does not answer; what this instance owns is freed when its session expires"), context.Cause(ctx))
}

const (
	// stopGrace is how long Stop waits for cancelled items to return.
	stopGrace = time.Second
	// stopPatience is how long it waits for a registry that does not answer.
	stopPatience = 10 * time.Second
)

// Done is closed when the scheduler has stopped and everything is joined.
func (s *Scheduler) Done() <-chan struct{} { return s.done }

func (s *Scheduler) stillRunning() []string {
	var names []string
	for _, j := range s.all() {
		names = append(names, j.stillRunning()...)
	}
	return names
}
