package link

import (
	"strconv"
	"time"

	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

// A server answers pings and reads by itself, also when it is cut off from the others and the session has ended there.
// So Deadline is the earlier of two instants, and neither moves by such answers:
//
//   - T after the leader heard of the session, less T/4. A follower must ask its leader
//     for the answer to a sync, to a write, and to a reconnect. With the question of a
//     reconnect the leader counts T anew; of other requests it is told with the
//     follower's pings, every half tick. T is two ticks at least: T/4 covers what a
//     follower that crashes or is cut off had not told. (Not covered is one that was
//     stopped for longer, and is cut off within half a tick of its first answers.)
//   - T after a quorum heard of it, less T/8. A leader that has lost its quorum answers
//     all but writes for syncLimit ticks, and so do the followers that it still has. A
//     write is answered once a majority has it, and tells whether the session lives.
//     Whoever leads next is followed by one of these, who left the old leader after
//     that, and lets every session live for T from then on. So the next leader ends none
//     less than T after such a write was sent; T/8 is for clocks that run at different
//     rates. A new session is such a write too; a reconnect is none.
//
// T of the second instant is what was granted when the session was made, T of the first the least that any of its
// connections was granted.
//
// A heartbeat every T/8 is a sync and a write in turn: both instants are 5/8 T ahead at least, at half the writes. Done
// is closed T/20 before Deadline, since timers are late and never early.
const (
	beatsPerTimeout  = 8
	writeEvery       = 2 // heartbeats
	marginPart       = 4
	quorumMarginPart = 8
	leadPart         = 20
	// An endpoint that accepts a connection has T/5 to answer, or T/2 when it is the only one.
	handshakePart      = 5
	handshakePartAlone = 2
	// A request that is not answered for so many heartbeats means a dead connection.
	stallBeats      = 3
	stallBeatsAlone = 5

	minAttempt = 200 * time.Millisecond
)

// establish takes note of a connection on which the service has confirmed the session. sent is when that was asked.
// first says that no server has been asked yet whether it is new enough, ok that the session lives.
func (l *Link) establish(c *conn, a connectAnswer, sent time.Time) (first, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := l.id == 0
	l.id, l.password = a.session, a.password
	if fresh {
		l.created = a.timeout
	}
	if fresh || a.timeout < l.timeout() { // of more than at first a leader that comes to power does not know
		l.granted.Store(int64(a.timeout))
	}
	deadline := l.deadline(sent, fresh)
	if fresh {
		l.Begin(strconv.FormatUint(uint64(l.id), 16), deadline, l.lead())
	}
	if !l.extend(deadline) {
		return false, false
	}
	l.current = c
	return !l.probed, true
}

// online opens the way for requests.
func (l *Link) online(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probed = true
	if l.current == c && l.Err() == nil && c.over.Err() == nil { // else offline has been here, or will be
		select {
		case <-l.up:
		default:
			close(l.up)
		}
	}
	l.servers.tried(c.server, nil)
}

// offline closes it: the connection has broken.
func (l *Link) offline(c *conn, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers.tried(c.server, reason)
	if l.current != c {
		return
	}
	select {
	case <-l.up:
		l.up = make(chan struct{})
	default:
	}
}

// connected returns a channel that is closed once there is a connection.
func (l *Link) connected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// acknowledged takes an answered request into account that the leader has heard of,
// and a quorum too if byQuorum is true.
func (l *Link) acknowledged(sent time.Time, byQuorum bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extend(l.deadline(sent, byQuorum))
}

// extend moves Deadline, and reports whether the session lives. Deadline does not go back: where a reconnect was granted
// less time than had been promised, Done comes sooner. l.mu is held.
func (l *Link) extend(deadline time.Time) bool {
	if !l.Extend(deadline, l.lead()) || l.early != nil && !l.early.Stop() {
		return false
	}
	l.ends = deadline
	if l.early = nil; deadline.Before(l.Deadline()) {
		l.early = time.AfterFunc(time.Until(deadline)-l.lead(), func() { l.Lose(lifetime.ErrSilent) })
	}
	return true
}

// remaining is how long the session lives without another answer.
func (l *Link) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.ends)
}

// deadline is the session's after such a request. l.mu is held.
func (l *Link) deadline(sent time.Time, byQuorum bool) time.Time {
	l.byLeader = later(l.byLeader, sent)
	if byQuorum {
		l.byQuorum = later(l.byQuorum, sent)
	}
	t := l.timeout()
	deadline := l.byLeader.Add(t - t/marginPart)
	if d := l.byQuorum.Add(l.created - l.created/quorumMarginPart); d.Before(deadline) {
		deadline = d
	}
	return deadline
}

// lead is by how much Done comes before the deadline.
func (l *Link) lead() time.Duration { return l.timeout() / leadPart }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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

// giveUp ends the session, and makes Open fail with err.
func (l *Link) giveUp(err error) {
	l.mu.Lock()
	if l.fatal == nil {
		l.fatal = err
	}
	l.mu.Unlock()
	l.Lose(err)
}

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
		return stallBeatsAlone
	}
	return stallBeats
}
