package memory

import (
	"context"
	"errors"
)

var (
	errRefused = errors.New("connection refused")
	errBroken  = errors.New("connection broken before the answer came")
	errExpired = errors.New("expired at the server")
)

// A kind of request, an index of the counters.
type kind int

const (
	kindGet kind = iota
	kindChildren
	kindSync
	kindCommit
	kindWatch
	kindHeartbeat
	kindOpen
	kindClose
	kinds
)

// A link is one client's way to the server. Server.mu guards it.
type link struct {
	side

	hits int
}

// A request is on its way to the server or back.
type request struct {
	kind   kind
	serve  func()          // runs under Server.mu; at once, later, or never
	ended  <-chan struct{} // gives the request up
	noWait bool            // sends it once, ended or not, and waits for nothing
	served bool
}

func (l *link) refuses() bool       { return l.faults.refuse+l.server.faults.refuse > 0 }
func (l *link) losesRequests() bool { return l.faults.loseRequests+l.server.faults.loseRequests > 0 }
func (l *link) losesAnswers() bool  { return l.faults.loseAnswers+l.server.faults.loseAnswers > 0 }
func (l *link) connection() int     { return l.epoch + l.server.epoch }

// call carries r to the server and waits for the answer. When it fails, sent
// tells whether the server may have served it, or still will.
func (l *link) call(ctx context.Context, r *request) (sent bool, err error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	select {
	case <-r.ended:
		if !r.noWait {
			return false, errBroken
		}
	default:
	}
	if l.refuses() {
		l.hits++
		return false, errRefused
	}
	connection := l.connection()
	l.count(r.kind)
	l.deliver(r)
	if r.served && l.losesAnswers() {
		l.hits++
	}
	for !r.served || l.losesAnswers() {
		if r.noWait || l.connection() != connection {
			return true, errBroken
		}
		if err := l.await(ctx, r.ended); err != nil {
			return true, err
		}
	}
	if l.connection() != connection {
		return true, errBroken
	}
	if r.noWait {
		return true, nil
	}
	return true, l.comeLate(ctx, r.ended)
}

// comeLate holds back what the server sends for as long as a fault says. It fails as await
// does, and when the connection breaks.
func (l *link) comeLate(ctx context.Context, ended <-chan struct{}) error {
	if l.faults.delay == 0 {
		return nil
	}
	l.hits++
	late, cancel := context.WithTimeout(ctx, l.faults.delay)
	defer cancel()
	for connection := l.connection(); l.connection() == connection; {
		if err := l.await(late, ended); err != nil && late.Err() != nil {
			return ctx.Err() // nil: its time has come
		} else if err != nil {
			return err
		}
	}
	return errBroken
}

func (l *link) count(k kind) {
	l.counts[k]++
	l.server.counts[k]++
}

func (l *link) deliver(r *request) {
	switch {
	case l.losesRequests():
		l.hits++
	case *l.server.paused > 0:
		l.hits++
		l.server.queue = append(l.server.queue, r)
	default:
		r.serve()
		r.served = true
	}
}

// await gives mu away until a fault has begun or ended. It fails when ctx or the session has.
func (l *link) await(ctx context.Context, ended <-chan struct{}) error {
	s := l.server
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ended:
		return errBroken
	}
}

// reachable waits until connections are accepted.
func (l *link) reachable(ctx context.Context, ended <-chan struct{}) error {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	for l.refuses() {
		if err := l.await(ctx, ended); err != nil {
			return err
		}
	}
	return nil
}
