package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/internal/share"
)

// A gate holds transactions up before they leave, and remembers them.
type gate struct {
	open   chan struct{}
	once   sync.Once
	denies func(*pb.TxnRequest) bool
	loses  func(*pb.TxnRequest) bool // the answer

	holdsShared chan struct{} // until it is closed

	mu   sync.Mutex
	txns []*pb.TxnRequest
}

func (g *gate) pass(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	txn, ok := req.(*pb.TxnRequest)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	g.mu.Lock()
	g.txns = append(g.txns, txn)
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	if g.holdsShared != nil && isShared(txn) {
		<-g.holdsShared
	}
	if g.denies != nil && g.denies(txn) {
		return rpctypes.ErrGRPCPermissionDenied
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil && g.loses != nil && g.loses(txn) {
		return status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	return err
}

func (g *gate) heal() { g.once.Do(func() { close(g.open) }) }

// sent counts the transactions, and those of which commits share one.
func (g *gate) sent() (all, shared int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, txn := range g.txns {
		if isShared(txn) {
			shared++
		}
	}
	return len(g.txns), shared
}

func isShared(txn *pb.TxnRequest) bool {
	return len(txn.Success) > 0 && txn.Success[0].GetRequestTxn() != nil
}

// A busySession is a session with as many commits under way as are sent one by one.
type busySession struct {
	*gate
	t     *testing.T
	ctx   context.Context
	s     registry.Session
	first sync.WaitGroup
	errs  chan error // of the first
}

func newBusySession(t *testing.T) *busySession {
	t.Helper()
	c := &busySession{t: t, ctx: within(t, 60*time.Second), gate: &gate{open: make(chan struct{})}, errs: make(chan error, share.MaxUnderWay)}
	bed := testbed.StartEtcd(t, testbed.Options{})
	other, _ := open(t, bed)
	commit(t, other, registry.Create("/there", nil))
	s, _ := open(t, bed, func(cfg *etcd.Config) {
		cfg.SessionTimeout = 600 * time.Second
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(c.pass))
	})
	c.s = s
	t.Cleanup(c.heal)
	for i := range share.MaxUnderWay {
		c.first.Go(func() {
			_, err := s.Commit(c.ctx, registry.Create(fmt.Sprint("/first", i), nil))
			c.errs <- err
		})
	}
	eventually(t, 10*time.Second, "them to be under way", func() bool { n, _ := c.sent(); return n == share.MaxUnderWay })
	return c
}

type outcome struct {
	rev registry.Revision
	err error
}

// waits starts a commit and returns once it waits, with what becomes of it.
func (c *busySession) waits(ctx context.Context, ops ...registry.Op) (become func() outcome) {
	c.t.Helper()
	before := etcd.Waiting(c.s)
	became := make(chan outcome, 1)
	go func() {
		rev, err := c.s.Commit(ctx, ops...)
		became <- outcome{rev, err}
	}()
	eventually(c.t, 10*time.Second, "it to wait", func() bool { return etcd.Waiting(c.s) == before+1 })
	return func() outcome { return <-became }
}

func (c *busySession) get(path string) registry.Node {
	c.t.Helper()
	nodes, err := c.s.Get(c.ctx, path)
	require.NoError(c.t, err)
	return nodes[0]
}

func (c *busySession) firstErrors() (errs []error) {
	c.first.Wait()
	for range share.MaxUnderWay {
		errs = append(errs, <-c.errs)
	}
	return errs
}

// What waits goes together. Each is applied, or refused for its own sake.
func TestCommitsShareARequest(t *testing.T) {
	c := newBusySession(t)
	var fine, refused []func() outcome
	for i := range 20 {
		fine = append(fine, c.waits(c.ctx, registry.Create(fmt.Sprint("/n", i), nil), registry.CreateEphemeral(fmt.Sprint("/n", i, "/e"), nil)))
		refused = append(refused, c.waits(c.ctx, registry.Create(fmt.Sprint("/r", i), nil), registry.Set(fmt.Sprint("/missing", i), nil, 3)))
	}
	c.heal()
	shared := registry.Revision(0)
	for _, become := range fine {
		o := become()
		require.NoError(t, o.err)
		if shared == 0 {
			shared = o.rev
		}
		require.Equal(t, shared, o.rev)
	}
	for _, become := range refused {
		var refusal *registry.CommitError
		require.ErrorAs(t, become().err, &refusal)
		require.ErrorIs(t, refusal, registry.ErrNotFound)
		require.Equal(t, 1, refusal.Index)
	}
	for _, err := range c.firstErrors() {
		require.NoError(t, err)
	}
	all, together := c.sent()
	require.Positive(t, together)
	require.LessOrEqual(t, all, share.MaxUnderWay+1+len(refused), "one for all, and then who was refused asks why")
	require.Equal(t, shared, c.get("/n7/e").Created)
	require.True(t, c.get("/n7/e").Owned)
	require.False(t, c.get("/r7").Exists())
	require.Zero(t, etcd.Waiting(c.s))
}

// What one writes and another relies on cannot be compared at once: each has a request
// of its own.
func TestConflictingCommitsShareNothing(t *testing.T) {
	c := newBusySession(t)
	first := c.waits(c.ctx, registry.Set("/there", []byte("a"), registry.AnyVersion))
	second := c.waits(c.ctx, registry.Set("/there", []byte("b"), registry.AnyVersion))
	c.heal()
	require.NoError(t, first().err)
	require.NoError(t, second().err)
	require.EqualValues(t, 2, c.get("/there").Version)
	_, together := c.sent()
	require.Zero(t, together)
}

// What a caller does with his values after he has left does not change what is sent.
func TestWhoLeavesMayChangeHisValues(t *testing.T) {
	c := newBusySession(t)
	ctx, leave := context.WithCancel(c.ctx)
	value := []byte("as committed")
	c.holdsShared = make(chan struct{})
	left := c.waits(ctx, registry.Create("/left", value))
	stays := c.waits(c.ctx, registry.Create("/stays", nil))
	c.heal()
	eventually(t, 10*time.Second, "it to be under way", func() bool { _, n := c.sent(); return n == 1 })
	leave()
	require.ErrorIs(t, left().err, registry.ErrUncertain)
	copy(value, "something els")
	close(c.holdsShared)
	require.NoError(t, stays().err)
	require.Equal(t, "as committed", string(c.get("/left").Value))
}

// Who leaves while it waits has sent nothing.
func TestLeavingWhileItWaits(t *testing.T) {
	c := newBusySession(t)
	ctx, leave := context.WithCancel(c.ctx)
	left, stays := c.waits(ctx, registry.Create("/left", nil)), c.waits(c.ctx, registry.Create("/stays", nil))
	leave()
	require.Equal(t, context.Canceled, left().err)
	c.heal()
	require.NoError(t, stays().err)
	require.False(t, c.get("/left").Exists())
}

// A session that ends has not sent what waits.
func TestCloseWhileItWaits(t *testing.T) {
	c := newBusySession(t)
	waits := c.waits(c.ctx, registry.Create("/waits", nil))
	require.NoError(t, c.s.Close(c.ctx))
	err := waits().err
	require.ErrorIs(t, err, registry.ErrSessionLost)
	require.NotErrorIs(t, err, registry.ErrUncertain)
	for _, err := range c.firstErrors() {
		require.ErrorIs(t, err, registry.ErrSessionLost)
	}
}

// Those who share a request that the service refuses as a whole are not refused for
// that.
func TestRefusalOfTheWholeIsNobodys(t *testing.T) {
	c := newBusySession(t)
	c.denies = isShared
	var all []func() outcome
	for i := range 5 {
		all = append(all, c.waits(c.ctx, registry.Create(fmt.Sprint("/n", i), nil)))
	}
	c.heal()
	for _, become := range all {
		require.NoError(t, become().err)
	}
	sent, together := c.sent()
	require.Equal(t, 1, together)
	require.Equal(t, share.MaxUnderWay+1+5, sent)
}

// Whose shared request was not answered knows nothing, and has been applied once.
func TestLostAnswerToAShare(t *testing.T) {
	c := newBusySession(t)
	c.loses = isShared
	var all []func() outcome
	for i := range 5 {
		all = append(all, c.waits(c.ctx, registry.Create(fmt.Sprint("/n", i), nil)))
	}
	c.heal()
	for i, become := range all {
		err := become().err
		require.ErrorIs(t, err, registry.ErrUncertain)
		require.NotErrorIs(t, err, registry.ErrSessionLost)
		require.True(t, c.get(fmt.Sprint("/n", i)).Exists())
	}
	sent, together := c.sent()
	require.Equal(t, 1, together)
	require.Equal(t, share.MaxUnderWay+1, sent)
}

// The contenders for a lock are told apart by their revisions.
func TestLocksShareNothing(t *testing.T) {
	c := newBusySession(t)
	for range 3 {
		go func() {
			if l, err := c.s.Lock(c.ctx, "/lock", nil); err == nil {
				_ = l.Release(c.ctx)
			}
		}()
	}
	eventually(t, 10*time.Second, "them to be under way", func() bool { n, _ := c.sent(); return n >= share.MaxUnderWay+3 })
	require.Zero(t, etcd.Waiting(c.s))
	c.heal()
	l, err := c.s.Lock(c.ctx, "/lock", nil)
	require.NoError(t, err)
	require.NoError(t, l.Release(c.ctx))
	_, together := c.sent()
	require.Zero(t, together)
}
