package link_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/share"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// What writes are on the wire: a set or create alone is sent as what it is.
const (
	opCreate  = 1
	opSetData = 5
	opMulti   = 14
)

func isWrite(frame []byte) bool {
	op := binary.BigEndian.Uint32(frame[8:])
	return op == opMulti || op == opSetData || op == opCreate
}

// frames remembers what was written to the sockets of a link: frames, whole ones.
type frames struct {
	mu  sync.Mutex
	all [][]byte // of the latest connection; the first asks for the session

	cutsWrite bool // the connection breaks once a write was sent on it, and no later one
}

type framed struct {
	net.Conn
	f   *frames
	cut *atomic.Bool // nothing is read any more
}

func (f *frames) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, addr)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = nil
	return framed{raw, f, new(atomic.Bool)}, err
}

func (c framed) Write(b []byte) (int, error) {
	c.f.mu.Lock()
	cuts := false
	for rest := b; len(rest) >= 4; {
		n := 4 + int(binary.BigEndian.Uint32(rest))
		c.f.all = append(c.f.all, append([]byte(nil), rest[:n]...))
		cuts = cuts || c.f.cutsWrite && len(c.f.all) > 1 && isWrite(rest)
		rest = rest[n:]
	}
	c.f.cutsWrite = c.f.cutsWrite && !cuts
	c.f.mu.Unlock()
	if cuts {
		c.cut.Store(true) // before an answer can come
	}
	n, err := c.Conn.Write(b)
	if cuts {
		_ = c.Close()
	}
	return n, err
}

func (c framed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// count is how many writes were sent.
func (f *frames) count() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.all[1:] {
		if isWrite(b) {
			n++
		}
	}
	return n
}

// noBeat is a session timeout with which no heartbeat comes between.
const noBeat = time.Minute

// A busyLink is a link with as many writes under way as are sent one by one.
type busyLink struct {
	t      *testing.T
	ctx    context.Context
	l      *link.Link
	proxy  *testbed.Proxy
	heal   func() // lets what is under way go on
	frames *frames
	dir    string
	first  sync.WaitGroup
	errs   chan error // of the first
}

func newBusyLink(t *testing.T) *busyLink {
	t.Helper()
	c := &busyLink{t: t, ctx: within(t, 30*time.Second), proxy: way(t), frames: &frames{}, errs: make(chan error, share.MaxUnderWay)}
	c.l = open(t, link.Config{Servers: []string{c.proxy.Addr()}, SessionTimeout: noBeat, Dial: c.frames.dial})
	c.dir = fresh(t, c.l)
	c.frames.mu.Lock()
	c.frames.all = c.frames.all[:1]
	c.frames.mu.Unlock()
	c.heal = c.proxy.Hold()
	t.Cleanup(c.heal)
	for i := range share.MaxUnderWay {
		c.first.Go(func() {
			_, err := c.l.Multi(c.ctx, create(fmt.Sprint(c.dir, "/first", i), 0))
			c.errs <- err
		})
	}
	eventually(t, "them to be under way", func() bool { // and sent: what is about to be counts as unanswered too
		return c.l.Unanswered() == share.MaxUnderWay && c.frames.count() == share.MaxUnderWay
	})
	return c
}

// waits starts a write and returns once it waits, with what becomes of it.
func (c *busyLink) waits(ctx context.Context, requests ...any) (outcome func() (link.Written, error)) {
	before := c.l.Waiting()
	var w link.Written
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, err = c.l.Multi(ctx, requests...)
	}()
	eventually(c.t, "it to wait", func() bool { return c.l.Waiting() == before+1 })
	return func() (link.Written, error) {
		<-done
		return w, err
	}
}

func (c *busyLink) version(path string) int32 {
	stat, err := c.l.Exists(c.ctx, path, false)
	require.NoError(c.t, err)
	require.NotNil(c.t, stat, path)
	return stat.Version
}

func (c *busyLink) firstErrors() (errs []error) {
	c.first.Wait()
	for range share.MaxUnderWay {
		errs = append(errs, <-c.errs)
	}
	return errs
}

func set(path string, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: path, Data: []byte("y"), Version: version}
}

// What waits shares one multi, and each caller gets the results of its own.
func TestWritesShareARequest(t *testing.T) {
	c := newBusyLink(t)
	var outcomes []func() (link.Written, error)
	for i := range 20 {
		path := fmt.Sprint(c.dir, "/n", i)
		outcomes = append(outcomes, c.waits(c.ctx, create(path, 0)), c.waits(c.ctx, &zk.CheckVersionRequest{Path: path, Version: 0}, set(path, 0)))
	}
	c.heal()
	shared := int64(0)
	for i, outcome := range outcomes {
		w, err := outcome()
		require.NoError(t, err)
		require.Len(t, w.Results, 1+i%2)
		if i%2 == 0 {
			require.Equal(t, fmt.Sprint(c.dir, "/n", i/2), w.Results[0].String)
		} else {
			require.NotNil(t, w.Results[1].Stat)
		}
		if shared == 0 {
			shared = w.Zxid
		}
		require.NotZero(t, w.Zxid)
		require.Equal(t, shared, w.Zxid)
	}
	for _, err := range c.firstErrors() {
		require.NoError(t, err)
	}
	require.Equal(t, share.MaxUnderWay+1, c.frames.count())
	require.EqualValues(t, 1, c.version(c.dir+"/n7"))
}

// Who shared a multi with a request that was refused is not refused for that, and is carried out once.
func TestRefusalIsOnlyTheCallersOwn(t *testing.T) {
	c := newBusyLink(t)
	good, bad := c.waits(c.ctx, set(c.dir+"/first0", 0)), c.waits(c.ctx, create(c.dir+"/new", 0), set(c.dir+"/first1", 7))
	later := c.waits(c.ctx, set(c.dir+"/first2", -1), create(c.dir+"/later", 0))
	c.heal()
	_, err := good()
	require.NoError(t, err)
	w, err := bad()
	require.ErrorIs(t, err, zk.ErrBadVersion)
	require.Len(t, w.Results, 2)
	require.NoError(t, w.Results[0].Error)
	require.ErrorIs(t, w.Results[1].Error, zk.ErrBadVersion)
	_, err = later()
	require.NoError(t, err)
	require.EqualValues(t, 1, c.version(c.dir+"/first0"))
	require.EqualValues(t, 0, c.version(c.dir+"/first1"))
	require.EqualValues(t, 1, c.version(c.dir+"/first2"))
	require.Equal(t, share.MaxUnderWay+4, c.frames.count(), "one together, three alone")
	stat, err := c.l.Exists(c.ctx, c.dir+"/new", false)
	require.NoError(t, err)
	require.Nil(t, stat)
}

// Who leaves while it waits has sent nothing.
func TestLeavingWhileItWaits(t *testing.T) {
	c := newBusyLink(t)
	ctx, leave := context.WithCancel(c.ctx)
	left, stays := c.waits(ctx, create(c.dir+"/left", 0)), c.waits(c.ctx, create(c.dir+"/stays", 0))
	leave()
	_, err := left()
	require.Equal(t, context.Canceled, err)
	c.heal()
	_, err = stays()
	require.NoError(t, err)
	stat, err := c.l.Exists(c.ctx, c.dir+"/left", false)
	require.NoError(t, err)
	require.Nil(t, stat)
}

// Of a connection that breaks only what was sent on it is unknown. What waits goes on with the next.
func TestBreakWhileItWaits(t *testing.T) {
	c := newBusyLink(t)
	waits := c.waits(c.ctx, create(c.dir+"/waits", 0))
	c.proxy.Drop()
	c.heal()
	_, err := waits()
	require.NoError(t, err)
	for _, err := range c.firstErrors() {
		require.ErrorIs(t, err, registry.ErrUncertain)
	}
	require.EqualValues(t, 0, c.version(c.dir+"/waits"))
}

// Whose shared request was not answered knows nothing, and was carried out once if at all.
func TestLostAnswerToAShare(t *testing.T) {
	c := newBusyLink(t)
	c.frames.mu.Lock()
	c.frames.cutsWrite = true
	c.frames.mu.Unlock()
	var all []func() (link.Written, error)
	for range 3 {
		all = append(all, c.waits(c.ctx, set(c.dir, -1)))
	}
	c.heal()
	for _, outcome := range all {
		_, err := outcome()
		require.ErrorIs(t, err, registry.ErrUncertain)
		require.NotErrorIs(t, err, registry.ErrSessionLost)
	}
	require.Contains(t, []int32{0, 3}, c.version(c.dir))
}

// A session that ends has not sent what waits, and does not know of the rest.
func TestCloseWhileItWaits(t *testing.T) {
	c := newBusyLink(t)
	waits := c.waits(c.ctx, create(c.dir+"/waits", 0))
	ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	require.Error(t, c.l.Close(ctx))
	_, err := waits()
	require.ErrorIs(t, err, registry.ErrSessionLost)
	require.NotErrorIs(t, err, registry.ErrUncertain)
	for _, err := range c.firstErrors() {
		require.ErrorIs(t, err, registry.ErrUncertain)
		require.ErrorIs(t, err, registry.ErrSessionLost)
	}
}

// The holders of a lock are told apart by the number of the transaction that made their nodes.
func TestWhatIsToBeAloneSharesNothing(t *testing.T) {
	c := newBusyLink(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, settled, err := c.l.MultiAlone(c.ctx, create(c.dir+"/s-", zk.FlagSequence))
			<-settled
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "them to be under way", func() bool { return c.l.Unanswered() == share.MaxUnderWay+4 })
	require.Zero(t, c.l.Waiting())
	c.heal()
	all.Wait()
	numbers := map[int64]bool{}
	for i := range 4 {
		stat, err := c.l.Exists(c.ctx, fmt.Sprintf("%s/s-%010d", c.dir, share.MaxUnderWay+i), false)
		require.NoError(t, err)
		require.NotNil(t, stat)
		numbers[stat.Czxid] = true
	}
	require.Len(t, numbers, 4)
}

// A server that is behind what the session has seen must be able to refuse it, also when the client knows of no answer.
func TestReconnectTellsTheNewestTransaction(t *testing.T) {
	proxy, f := way(t), &frames{}
	l := open(t, link.Config{Servers: []string{proxy.Addr()}, SessionTimeout: calm, Dial: f.dial})
	ctx := within(t, 20*time.Second)
	w, err := l.Multi(ctx, set(fresh(t, l), 0))
	require.NoError(t, err)
	proxy.Drop()
	_, _, err = l.Get(ctx, "/", false)
	require.NoError(t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	const zxidAt = 8
	require.GreaterOrEqual(t, int64(binary.BigEndian.Uint64(f.all[0][zxidAt:])), w.Zxid)
}

// What is larger than a request may grow by sharing is sent in as many as it takes.
func TestSharedRequestsAreBounded(t *testing.T) {
	c := newBusyLink(t)
	var requests []any
	for range 200 {
		requests = append(requests, set(c.dir, -1))
	}
	var outcomes []func() (link.Written, error)
	for range 5 {
		outcomes = append(outcomes, c.waits(c.ctx, requests...))
	}
	c.heal()
	for _, outcome := range outcomes {
		w, err := outcome()
		require.NoError(t, err)
		require.Len(t, w.Results, 200)
	}
	require.EqualValues(t, 1000, c.version(c.dir))
	require.Equal(t, share.MaxUnderWay+3, c.frames.count(), "two, two and one")
}
