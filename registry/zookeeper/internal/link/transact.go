package link

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A call is a write that its caller waits for, past the client.
type call struct {
	op       int32  // of the wire, when it is sent alone
	requests int    // that it consists of
	body     []byte // of a multi, without its end
	shares   bool   // it may share a multi with others
	answered chan answer
	next     *call // with which it shares one

	queued bool // guarded by the mutex of the connection that it waits for
}

// An answer is the server's to a call, or why there is none.
type answer struct {
	results []zk.MultiResponse
	err     error // the server's, or why it is not known
	unknown bool  // no answer came, or none that says what was done
	unsent  bool  // the connection broke before the call was sent
}

// Multi applies requests, all or none: *zk.CreateRequest, *zk.SetDataRequest,
// *zk.DeleteRequest and *zk.CheckVersionRequest. One alone is sent as what it is, if
// it is not a check, and more than one as a multi. Calls that come while others are
// under way may share a multi with each other, unless a request is for a sequential
// node; nothing but its speed, and a transaction number that is theirs together, tells them
// of that.
//
// A nil error comes with the results; an error of the server's with one result for
// each request, of which the first that has an error names the failure. Of a Stat
// only Mzxid is set. Otherwise the error wraps registry.ErrSessionLost alone or
// ErrUnavailable or the context's own (never sent), ErrInvalid (cannot be sent), or
// ErrUncertain, also with ErrSessionLost. What was not sent when Multi returns never
// will be. The values are not kept.
func (l *Link) Multi(ctx context.Context, requests ...any) ([]zk.MultiResponse, error) {
	if n := EncodedSize(requests...); n >= MaxRequest {
		return nil, fmt.Errorf("zookeeper: %w: the request has %d bytes, less than %d fit", registry.ErrInvalid, n, MaxRequest)
	}
	r := newCall(requests)
	for {
		if err := ctx.Err(); err != nil && l.Err() == nil {
			return nil, err
		}
		if err := l.await(ctx); err != nil {
			return nil, err
		}
		c := l.connection()
		if c.send(ctx, r) {
			if a := l.outcome(ctx, c, r); !a.unsent {
				return l.class(a)
			}
		}
		wait.For(ctx, time.Millisecond) // until it is known that the connection has broken
	}
}

// outcome waits for the answer to what was passed to c.
func (l *Link) outcome(ctx context.Context, c *conn, r *call) answer {
	select {
	case a := <-r.answered:
		return a
	case <-ctx.Done():
	case <-l.done:
	}
	if c.withdraw(r) {
		return answer{unsent: true}
	}
	select {
	case a := <-r.answered: // both: what is known is better
		return a
	default:
		return answer{err: ctx.Err(), unknown: true}
	}
}

// class makes an answer what Multi returns.
func (l *Link) class(a answer) ([]zk.MultiResponse, error) {
	lost := l.Err()
	switch {
	case !a.unknown:
		return a.results, a.err
	case lost == nil:
		return nil, fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, a.err)
	case a.err == nil:
		return nil, fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, lost)
	}
	return nil, fmt.Errorf("zookeeper: %w: %w (%w)", registry.ErrUncertain, lost, a.err)
}

// connection is the latest on which the session was confirmed.
func (l *Link) connection() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

const (
	// atOnce is how much is written by its caller: the system has room for it when
	// nothing else is under way, so that the caller is not held up.
	atOnce = 8 << 10
	// maxUnderWay writes are sent one by one; those that come meanwhile share the next.
	maxUnderWay = 8
	// A multi that is shared grows no larger than this: it holds up what comes after it.
	maxShared      = 512
	maxSharedBytes = 64 << 10
	// After a refusal, which costs each of those who shared a request of its own, so many
	// calls share none.
	aloneAfterRefusal = 64
)

// send passes a call on. False: nothing was sent, since the connection has broken
// or ctx has ended.
func (c *conn) send(ctx context.Context, r *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitRoom(ctx)
	switch {
	case c.broken || ctx.Err() != nil:
		return false
	case r.shares && c.underWay >= maxUnderWay && c.alone == 0:
		r.queued = true
		c.waiting = append(c.waiting, r)
	default:
		c.alone = max(0, c.alone-1)
		c.transmit(r)
		c.push()
	}
	return true
}

// awaitRoom keeps what waits to be written bounded. c.mu is held.
func (c *conn) awaitRoom(ctx context.Context) {
	if len(c.unsent) <= maxUnsent {
		return
	}
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.room.Broadcast()
	})
	defer stop()
	for len(c.unsent) > maxUnsent && !c.broken && ctx.Err() == nil {
		c.room.Wait()
	}
}

// withdraw takes back a call that has not been sent.
func (c *conn) withdraw(r *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.queued {
		return false
	}
	r.queued = false
	for i, other := range c.waiting {
		if other == r {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			break
		}
	}
	return true
}

// transmit queues one request for a call and those that follow it. c.mu is held.
func (c *conn) transmit(first *call) {
	xid := c.nextXid()
	c.unsent = first.append(c.unsent, xid)
	c.pending.push(sent{xid: xid, op: first.op, at: time.Now(), tick: c.tick, call: first})
	c.underWay++
}

// nextXid numbers what the client does not. c.mu is held.
func (c *conn) nextXid() int32 {
	c.calls++
	return int32(c.calls & 0x7fffffff)
}

// transmitWaiting lets those who wait share the next request. c.mu is held.
func (c *conn) transmitWaiting() {
	for c.underWay < maxUnderWay && len(c.waiting) > 0 {
		first, last := c.waiting[0], (*call)(nil)
		requests, size, n := 0, 0, 0
		for _, r := range c.waiting {
			requests, size = requests+r.requests, size+len(r.body)
			if n > 0 && (requests > maxShared || size > maxSharedBytes) {
				break
			}
			r.queued = false
			if last != nil {
				last.next = r
			}
			last = r
			n++
		}
		c.waiting = append(c.waiting[:0], c.waiting[n:]...)
		c.transmit(first)
	}
}

// deliver hands an answer to those who wait for it, and sends what waits for it to
// be there.
func (c *conn) deliver(s sent, code int32, body []byte) error {
	first := s.call
	results, err := first.parse(code, body)
	c.wrote(s, results, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay--
	malformed := results == nil && err == nil
	switch {
	case malformed:
		err = fmt.Errorf("%w: the answer to a write", errMalformed)
		first.tell(answer{err: err, unknown: true})
		return err
	case err != nil && !answered(err):
		first.tell(answer{err: err, unknown: true})
	case err != nil && first.next != nil:
		c.retryAlone(first)
	default:
		first.share(results, err)
	}
	c.transmitWaiting()
	c.wakeFlusher()
	return nil
}

// retryAlone sends again, one by one, what was refused together: none of it was
// done, and whose fault it was is theirs to find out. c.mu is held.
func (c *conn) retryAlone(first *call) {
	c.alone = aloneAfterRefusal
	for r := first; r != nil; {
		next := r.next
		r.next = nil
		c.transmit(r)
		r = next
	}
}

// tell gives all who share the same answer.
func (r *call) tell(a answer) {
	for ; r != nil; r = r.next {
		r.answered <- a
	}
}

// share gives each its own results.
func (r *call) share(results []zk.MultiResponse, err error) {
	for ; r != nil; r = r.next {
		n := min(r.requests, len(results)) // there are none when the whole was refused
		r.answered <- answer{results: results[:n:n], err: err}
		results = results[n:]
	}
}

// abandon tells the callers of what is pending that no answer will come. c.mu is held.
func (c *conn) abandon(reason error) {
	for {
		s, ok := c.pending.pop()
		if !ok {
			break
		}
		s.call.tell(answer{err: fmt.Errorf("%s: %w", c.server, reason), unknown: true})
	}
	for _, r := range c.waiting {
		r.queued = false
		r.answered <- answer{unsent: true}
	}
	c.waiting = nil
}
