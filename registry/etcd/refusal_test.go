package etcd_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry/etcd"
)

// A refuser stands for a server that goes away: once armed, it swallows the next
// request and answers that it has not looked at it.
type refuser struct {
	armed atomic.Bool

	mu sync.Mutex
	at time.Time // of the answer
}

func (r *refuser) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	return &refusedConn{Conn: conn, refuser: r}, err
}

func (r *refuser) refusedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

type refusedConn struct {
	net.Conn
	refuser *refuser
	deaf    atomic.Bool
	told    bool // the answer was read
}

// goAway is the HTTP/2 frame: no stream was or will be processed.
const goAway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

func (c *refusedConn) Write(b []byte) (int, error) {
	if opensStream(b) && c.refuser.armed.CompareAndSwap(true, false) {
		c.deaf.Store(true)
		if err := c.SetReadDeadline(time.Now()); err != nil { // wakes Read
			return 0, err
		}
	}
	if c.deaf.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *refusedConn) Read(b []byte) (int, error) {
	if c.told {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	if n > 0 || !os.IsTimeout(err) || !c.deaf.Load() {
		return n, err
	}
	c.told = true
	c.refuser.mu.Lock()
	defer c.refuser.mu.Unlock()
	c.refuser.at = time.Now()
	return copy(b, goAway), nil
}

// opensStream reports whether a HEADERS frame is among frames.
func opensStream(frames []byte) bool {
	for len(frames) >= 9 {
		length := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
		if frames[3] == 1 {
			return true
		}
		frames = frames[min(9+length, len(frames)):]
	}
	return false
}

// gRPC asks again by itself when a server has not looked at a request. The life of
// a lease begins with the request that was answered: counted from the first, it
// might be over by then.
func TestLeaseIsDatedByTheAnsweredRequest(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	const timeout = 600 * time.Second // no heartbeat soon
	way := new(refuser)
	reg, client := connect(t, bed, func(c *etcd.Config) {
		c.SessionTimeout = timeout
		c.DialOptions = append(c.DialOptions, grpc.WithContextDialer(way.dial))
	})
	client.Requests()
	way.armed.Store(true)
	s, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(map[string]int{grant: 1}, client.Requests()), "void: the adapter asked again")
	require.False(t, way.refusedAt().IsZero(), "void: nothing was refused")
	begun := s.Deadline().Add(timeout/10 - timeout)
	require.True(t, begun.After(way.refusedAt()), "dated %v before the refusal", way.refusedAt().Sub(begun))
	require.True(t, begun.Before(time.Now()))
}
