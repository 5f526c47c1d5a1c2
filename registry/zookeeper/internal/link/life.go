package link

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// The session timeout T is divided: a ping every T/8; a margin of T/4 before the
// instant at which the service may end the session, which covers what a follower
// that crashed had not told its leader (half a tick, and T is two at least); Done
// closed T/20 before Deadline, since timers are late and never early.
const (
	pingsPerTimeout = 8
	marginPart      = 4
	leadPart        = 20
	// An endpoint that accepts a connection has T/5 to answer, or T/2 when it
	// is the only one.
	handshakePart      = 5
	handshakePartAlone = 2
	// A request that is not answered for so many pings means a dead connection.
	stallPings      = 3
	stallPingsAlone = 5

	minAttempt = 200 * time.Millisecond
)

// establish takes note of a connection on which the service has confirmed the
// session. sent is when that was asked. first says that no server has been asked yet
// whether it is new enough, ok that the session lives.
func (l *Link) establish(c *conn, a connectAnswer, sent time.Time) (first, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || (l.id != 0 && l.tooLate()) {
		return false, false
	}
	fresh := l.id == 0
	l.id, l.password = a.session, a.password
	l.granted.Store(int64(a.timeout))
	if fresh {
		l.deadline = sent.Add(a.timeout - a.timeout/marginPart)
		l.alarm = time.AfterFunc(l.untilAlarm(), l.ring)
	} else {
		l.advance(sent)
	}
	l.current = c
	return !l.probed, true
}

// online opens the way for requests.
func (l *Link) online(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probed = true
	if l.current == c && l.err == nil && !c.isOver() { // else offline has been here, or will be
		select {
		case <-l.up:
		default:
			close(l.up)
		}
	}
	l.servers.reached(c.server)
	l.log.Debug("zookeeper: connected", "server", c.server, "session", l.idText())
}

// offline closes it: the connection has broken.
func (l *Link) offline(c *conn, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers.failed(c.server, reason)
	l.broke = fmt.Errorf("%s: %w", c.server, reason)
	if l.current != c {
		return
	}
	select {
	case <-l.up:
		l.up = make(chan struct{})
		l.log.Debug("zookeeper: connection lost", "server", c.server, "session", l.idText(), "reason", reason)
	default:
	}
}

// connected returns a channel that is closed once there is a connection.
func (l *Link) connected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// untilAlarm is the time left until Done must be closed. l.mu is held.
func (l *Link) untilAlarm() time.Duration { return time.Until(l.deadline) - l.timeout()/leadPart }

// tooLate: somebody may have acted on the deadline already. l.mu is held.
func (l *Link) tooLate() bool { return l.untilAlarm() <= 0 }

// acknowledged takes an answered request into account.
func (l *Link) acknowledged(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.tooLate() {
		l.advance(sent)
	}
}

// advance moves the deadline forward. The alarm looks again when it rings. l.mu is held.
func (l *Link) advance(sent time.Time) {
	if d := sent.Add(l.timeout() - l.timeout()/marginPart); d.After(l.deadline) {
		l.deadline = d
	}
}

func (l *Link) ring() {
	l.mu.Lock()
	if left := l.untilAlarm(); left > 0 && l.err == nil {
		l.alarm.Reset(left)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.lose(errSilent)
}

// lose ends the session here, once; the first reason stays.
func (l *Link) lose(reason error) {
	if l.markLost(reason) {
		l.cut(reason)
	}
}

// cut breaks the connection, if there is one.
func (l *Link) cut(reason error) {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.fail(reason)
	}
}

// leave notes that the service has ended the session.
func (l *Link) leave() { l.leaving.Do(func() { close(l.left) }) }

// markLost reports whether this call ended the session. The client then finds its
// way to the grave, and is buried there.
func (l *Link) markLost(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = fmt.Errorf("zookeeper: %w: session %s: %w", registry.ErrSessionLost, l.idText(), reason)
	if l.alarm != nil {
		l.alarm.Stop()
	}
	if !errors.Is(reason, errWasClosed) {
		l.log.Debug("zookeeper: session lost", "session", l.idText(), "reason", reason)
	}
	close(l.done)
	l.end()
	l.work.Go(l.bury)
	return true
}

// giveUp ends the session, and makes Open fail with err.
func (l *Link) giveUp(err error) {
	l.mu.Lock()
	if l.fatal == nil {
		l.fatal = err
	}
	l.mu.Unlock()
	l.lose(err)
}

// mayAsk reports whether the client may ask a server for session: a new one only
// as long as there was none.
func (l *Link) mayAsk(session int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return session == l.id
}

// idText is the session's name for people. l.mu is held.
func (l *Link) idText() string { return strconv.FormatUint(uint64(l.id), 16) } //nolint:gosec // the bits matter, not the sign

// timeout is what was granted, or asked for as long as nothing was.
func (l *Link) timeout() time.Duration {
	if granted := l.granted.Load(); granted > 0 {
		return time.Duration(granted)
	}
	return l.cfg.SessionTimeout
}

// handshakeTime is how long a server may take to confirm the session.
func (l *Link) handshakeTime() time.Duration {
	if l.servers.alone() {
		return max(l.timeout()/handshakePartAlone, minAttempt)
	}
	return max(l.timeout()/handshakePart, minAttempt)
}

// attemptTime is how long it may take to reach a server.
func (l *Link) attemptTime() time.Duration {
	limit := l.handshakeTime()
	if l.cfg.DialTimeout > 0 {
		limit = min(limit, l.cfg.DialTimeout)
	}
	return limit
}

func (l *Link) stallAfter() int {
	if l.servers.alone() {
		return stallPingsAlone
	}
	return stallPings
}
