package link

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

var (
	errForeign = errors.New("the client asked for a session of its own")
	errStalled = errors.New("the server does not answer")
	errClosed  = errors.New("connection closed")
)

const (
	readBuffer = 64 << 10
	keepFrame  = 1 << 20   // a larger buffer is not kept
	maxUnsent  = 128 << 10 // what may wait to be written
)

// A conn is what the client takes for its connection. It reads and writes whole frames, and adds and takes away some of
// its own. The client writes from one goroutine and reads from one other.
type conn struct {
	net.Conn

	l      *Link
	server string

	// For the reader.
	in        *bufio.Reader
	frame     []byte
	rest      []byte    // of the frame, not yet read by the client
	greeted   bool      // the server has confirmed the session
	lastWrite time.Time // when the newest answered write that counted was sent

	mu         sync.Mutex
	room       *sync.Cond // unsent has shrunk, or all is over
	asked      time.Time  // when the session was asked for; zero: not yet
	introduced bool       // what must come before every request is on its way
	unsent     []byte
	spare      []byte // a buffer for unsent
	writing    bool   // somebody writes to the socket
	pending    []sent // requests that are not answered, in their order
	own        uint32 // requests sent so far that are not the client's
	tick       int    // heartbeats that were due so far
	heard      int    // the tick of the latest answer or event
	moved      int    // the tick of the latest bytes, which may be a part of one
	wake       chan struct{}
	over       context.Context
	end        context.CancelFunc
}

func newConn(l *Link, raw net.Conn, server string) *conn {
	c := &conn{
		Conn: raw, l: l, server: server, wake: make(chan struct{}, 1),
	}
	c.in = bufio.NewReaderSize(incoming{c}, readBuffer)
	c.over, c.end = context.WithCancel(context.Background())
	c.room = sync.NewCond(&c.mu)
	return c
}

// fail ends the connection, once.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	first := c.over.Err() == nil
	c.end()
	c.room.Broadcast()
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	if !first {
		return
	}
	_ = c.Conn.Close()
	c.l.offline(c, reason)
	for _, s := range pending {
		if s.reads != nil {
			s.reads(0, nil, reason)
		}
	}
}

// Write takes one frame of the client's. It never fails: the client learns of a
// broken connection by reading, and treats only that well.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over.Err() != nil:
	case c.asked.IsZero():
		c.ask(b)
	default:
		c.request(b)
	}
	return len(b), nil
}

// ask passes the client's connect request on, and tells the server of the newest
// answer, which need not have been one of the client's. c.mu is held.
func (c *conn) ask(b []byte) {
	const zxidAt, sessionAt = 4 + 4, 4 + 4 + 8 + 4
	if len(b) < sessionAt+8 || c.l.Number() != getInt64(b[sessionAt:]) { // a new one only as long as there was none
		c.l.work.Go(func() { c.fail(errForeign) }) // which needs c.mu
		return
	}
	b = bytes.Clone(b)
	binary.BigEndian.PutUint64(b[zxidAt:], uint64(c.l.zxid.Load()))
	c.asked = time.Now()
	_ = c.Conn.SetReadDeadline(c.asked.Add(c.l.handshakeTime()))
	c.queue(b)
}

// request passes one of its requests on. c.mu is held.
func (c *conn) request(b []byte) {
	xid, op := getInt32(b[4:]), getInt32(b[8:])
	s := sent{xid: xid, op: op, at: time.Now(), tick: c.tick}
	if op != opPing { // heartbeats ask more than these
		s.path = c.l.watches.arms(op, b[12:])
		c.pending = append(c.pending, s)
	}
	if c.unsent = append(c.unsent, b...); len(c.pending) == 1 {
		c.send() // nothing else is under way that it could share a system call with
	} else {
		wait.Wake(c.wake)
	}
	for len(c.unsent) > maxUnsent && c.over.Err() == nil {
		c.room.Wait()
	}
}

// reads asks for several nodes, and calls answer once, from a goroutine of the connection. It reports whether it could.
func (c *conn) reads(paths []string, answer func(code int32, body []byte, err error)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Err() != nil || !c.introduced {
		return false
	}
	xid := c.number()
	c.pending = append(c.pending, sent{xid: xid, op: opMultiRead, at: time.Now(), tick: c.tick, reads: answer})
	c.queue(readsFrame(xid, paths))
	return true
}

// queue leaves b to flush. c.mu is held.
func (c *conn) queue(b []byte) {
	c.unsent = append(c.unsent, b...)
	wait.Wake(c.wake)
}

// flush writes what is queued until the connection ends. What comes while it writes shares the next system call.
func (c *conn) flush() {
	for {
		select {
		case <-c.wake:
		case <-c.over.Done():
			return
		}
		runtime.Gosched()
		c.mu.Lock()
		c.send()
		c.mu.Unlock()
	}
}

// send writes what is queued. Where another goroutine is writing already, that one goes on with it. c.mu is held, but
// not during a write.
func (c *conn) send() {
	if c.writing {
		return
	}
	c.writing = true
	for len(c.unsent) > 0 && c.over.Err() == nil {
		data := c.unsent
		c.unsent, c.spare = c.spare[:0], nil
		c.room.Broadcast()
		c.mu.Unlock()
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.l.timeout()))
		if _, err := c.Conn.Write(data); err != nil {
			c.fail(err)
		}
		c.mu.Lock()
		if cap(data) <= keepFrame {
			c.spare = data
		}
	}
	c.writing = false
}

// Read gives the client the next bytes of a frame that is meant for it.
func (c *conn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if err := c.next(); err != nil {
			c.fail(err)
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// incoming is what comes on a connection: a frame may take long.
type incoming struct{ c *conn }

func (i incoming) Read(p []byte) (int, error) {
	n, err := i.c.Conn.Read(p)
	i.c.mu.Lock()
	defer i.c.mu.Unlock()
	i.c.moved = i.c.tick
	return n, err
}

// next reads one frame and leaves it in rest, unless it is not the client's.
func (c *conn) next() error {
	if cap(c.frame) > keepFrame {
		c.frame = nil
	}
	frame, err := readFrame(c.in, c.frame)
	if err != nil {
		return c.readError(err)
	}
	c.frame = frame
	if !c.greeted {
		c.rest = c.frame
		return c.welcome(c.frame[4:])
	}
	return c.take(c.frame[4:])
}

// readError says what an error of the socket means.
func (c *conn) readError(err error) error {
	if timeout := net.Error(nil); !c.greeted && errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("it accepts connections and does not answer within %v", c.l.handshakeTime())
	}
	if errors.Is(err, io.EOF) && !c.greeted {
		return errors.New("it closed the connection instead of granting a session (not serving, or it wants TLS)")
	}
	return err
}

// welcome takes the answer to the connect request.
func (c *conn) welcome(b []byte) error {
	a, err := parseConnectAnswer(b)
	if err != nil || a.session == 0 {
		return err // 0: the client knows what that means
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.greeted = true
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	first, ok := c.l.establish(c, a, asked)
	if !ok {
		return errClosed
	}
	c.introduce(first)
	c.l.work.Go(c.pulse)
	if !first {
		c.l.online(c)
	}
	return nil
}

// introduce sends what must come before every request: the credentials, on the first connection questions that only
// servers since 3.6, and since 3.5, understand, and the watches. A server that does not understand a question closes the
// connection: so the one that it need not understand is asked once. On a later connection a write follows at once: that
// the server knows the session does not say that a quorum knows the server.
func (c *conn) introduce(first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.l.cfg.Digest != "" {
		f := newFrame(xidAuth, opAuth)
		f.int32(0)
		f.text("digest")
		f.text(c.l.cfg.Digest)
		c.queue(f.frame())
	}
	if first && !c.l.askedMany.Swap(true) {
		c.queue(readsFrame(xidMany, []string{"/"}))
	}
	if first {
		f := newFrame(xidVersion, opUnwatch)
		f.text("/")
		f.int32(3) // of any kind; there is none
		c.queue(f.frame())
	}
	for _, f := range c.l.watches.renewals(c.l.zxid.Load()) {
		c.queue(f)
	}
	if !first {
		c.heartbeat(opMulti)
	}
	c.introduced = true
}

// take looks at one frame of an established session.
func (c *conn) take(b []byte) error {
	if len(b) < headerBytes {
		return fmt.Errorf("%w: an answer of %d bytes", errMalformed, len(b))
	}
	xid, zxid, code := getInt32(b), getInt64(b[4:]), getInt32(b[12:])
	c.mu.Lock()
	c.heard = c.tick
	c.mu.Unlock()
	switch {
	case xid == xidEvent:
		return c.event(b[headerBytes:])
	case xid == xidAuth && code != 0:
		c.l.giveUp(fmt.Errorf("zookeeper: %w: %s refused the user and password (digest)", registry.ErrDenied, c.server))
		return errClosed
	case xid == xidMany && code == errUnknown:
		return errClosed // the server is about to close it
	case xid == xidMany:
		c.l.readsMany.Store(code == 0)
		return nil
	case xid == xidVersion:
		return c.versionKnown(code)
	case xid == xidGoodbye:
		c.l.leave()
		return errClosed
	case xid < 0:
		return nil
	}
	return c.takeAnswer(xid, zxid, code, b[headerBytes:])
}

// takeAnswer looks at the answer to a request.
func (c *conn) takeAnswer(xid int32, zxid int64, code int32, body []byte) error {
	s, err := c.answered(xid, zxid, code)
	if err != nil {
		return err
	}
	if s.op == opMulti || s.op == opSetData || s.op == opCreate {
		c.wrote(s, code, body)
	}
	switch {
	case s.reads != nil:
		s.reads(code, body, nil)
		return nil
	case s.beat:
		if s.op == opSync && code == 0 {
			c.l.acknowledged(s.at, false)
		}
		return nil
	case code != 0:
	case s.op == opCreate:
		c.frame = withNumber(c.frame, zxid)
	case s.op == opMulti && len(body) >= multiHeader && multiRefusal(body) == 0:
		c.frame = withRevision(c.frame, zxid)
	}
	c.rest = c.frame
	return nil
}

func (c *conn) versionKnown(code int32) error {
	if code == errUnknown {
		c.l.giveUp(fmt.Errorf("zookeeper: %w: the server %s is older than ZooKeeper 3.5; use 3.5 to 3.9",
			registry.ErrInvalid, c.server))
		return errClosed
	}
	c.l.online(c)
	return nil
}

func (c *conn) event(b []byte) error {
	path, err := text(b, 8)
	if err != nil {
		return err
	}
	kind := zk.EventType(getInt32(b))
	c.l.watches.used(kind, path)
	if c.l.cfg.Notify != nil && kind > 0 {
		c.l.cfg.Notify(zk.Event{Type: kind, Path: path})
	}
	return nil
}

// answered matches an answer with the oldest request: the service keeps the order.
func (c *conn) answered(xid int32, zxid int64, code int32) (sent, error) {
	c.mu.Lock()
	var s sent
	ok := len(c.pending) > 0
	if ok {
		s, c.pending = c.pending[0], c.pending[1:]
	}
	c.mu.Unlock()
	if !ok || s.xid != xid {
		return sent{}, fmt.Errorf("%w: answer %d to request %d", errMalformed, xid, s.xid)
	}
	if s.path != "" {
		c.l.watches.armed(s.op, s.path, code)
	}
	if zxid > 0 && zxid > c.l.zxid.Load() {
		c.l.zxid.Store(zxid)
	}
	return s, nil
}
