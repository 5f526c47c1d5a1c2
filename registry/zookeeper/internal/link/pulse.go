package link

import "time"

// A sent request is one that is not answered.
type sent struct {
	xid, op int32
	at      time.Time
	tick    int
	path    string // of a read that arms a watch
	beat    bool   // nobody waits for the answer; else the client does
	// reads takes the answer to several reads, or why there is none: the client knows nothing of them.
	reads func(code int32, body []byte, err error)
}

// pulse sends heartbeats, and gives a connection up that does not answer. Time is counted in ticks that this process
// has lived through: one that was stopped for a while finds the answers waiting.
func (c *conn) pulse() {
	ticker := time.NewTicker(c.l.timeout() / beatsPerTimeout)
	defer ticker.Stop()
	limit := c.l.stallAfter()
	for {
		select {
		case <-ticker.C:
		case <-c.over.Done():
			return
		}
		if !c.beat(limit) {
			c.fail(errStalled)
			return
		}
	}
}

func (c *conn) beat(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	// What was sent since the last tick has not lived through a whole one. A server that answers, if late, is busy; so is one
	// of whose answer more and more comes, as long as the session can wait for what is behind it: at the next tick it must
	// have T/4 and half a tick left.
	oldest, enough := c.tick-limit+2, c.l.timeout()/marginPart+c.l.timeout()/(2*beatsPerTimeout)
	if c.heard < oldest && len(c.pending) > 0 && c.pending[0].tick < oldest &&
		(c.moved < oldest || c.l.remaining() < enough) {
		return false
	}
	if c.tick++; c.tick%writeEvery == 0 {
		c.heartbeat(opMulti)
	} else {
		c.heartbeat(opSync)
	}
	return true
}

// heartbeat asks for what the leader must answer: a sync, or a multi that only checks
// the root, which changes nothing and is a write all the same. c.mu is held.
func (c *conn) heartbeat(op int32) {
	const root, anyVersion = "/", -1
	xid := c.number()
	f := newFrame(xid, op)
	if op == opSync {
		f.text(root)
	} else {
		f.header(opCheck, 0)
		f.text(root)
		f.int32(anyVersion)
		f.header(opError, 1)
	}
	c.pending = append(c.pending, sent{xid: xid, op: op, at: time.Now(), tick: c.tick, beat: true})
	c.queue(f.frame())
}

// wrote takes the answer to a multi into account. One that was refused may be a server's own word, with which it asked
// nobody, or the leader's that there is no such session, which a server does not always know to have ended.
func (c *conn) wrote(s sent, code int32, body []byte) {
	refusal := multiRefusal(body)
	asked := refusal == 0 || s.beat && refusal == errNoAuth // of the root; it was asked all the same
	switch {
	case code == errEnded || refusal == errEnded:
		c.l.expire()
	case code == 0 && asked && s.at.Sub(c.lastWrite) > c.l.timeout()/64: // so many need not be looked at
		c.lastWrite = s.at
		c.l.acknowledged(s.at, true)
	}
}

// goodbye ends the session on this connection.
func (c *conn) goodbye() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue(newFrame(xidGoodbye, opClose).frame())
}

// Close is the client's way to give a connection up.
func (c *conn) Close() error {
	c.fail(errClosed)
	return nil
}

// The client's deadlines do not count: the handshake's is set in ask, and pulse gives up what does not answer.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// number is the next of the requests that the client knows nothing of. c.mu is held.
func (c *conn) number() int32 {
	c.own++
	return int32(c.own & 0x7fffffff)
}
