package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/internal/share"
)

type answered struct {
	nodes []registry.Node
	names []string
	err   error
}

// newReadingSession has as many reads of two nodes under way as are sent one by one.
func newReadingSession(t *testing.T) *busySession {
	t.Helper()
	c := &busySession{t: t, ctx: within(t, 60*time.Second), gate: &gate{open: make(chan struct{})}, errs: make(chan error, share.MaxUnderWay)}
	bed := testbed.StartEtcd(t, testbed.Options{})
	other, _ := open(t, bed)
	commit(t, other, registry.Create("/there", []byte("1")), registry.Create("/there/a", []byte("2")), registry.Create("/there/b", []byte("3")))
	s, _ := open(t, bed, func(cfg *etcd.Config) {
		cfg.SessionTimeout = 600 * time.Second
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(c.pass))
	})
	c.s = s
	t.Cleanup(c.heal)
	for range share.MaxUnderWay {
		c.first.Go(func() {
			_, err := s.Get(c.ctx, "/there", "/there/a")
			c.errs <- err
		})
	}
	eventually(t, 10*time.Second, "them to be under way", func() bool { n, _ := c.sent(); return n == share.MaxUnderWay })
	return c
}

// reads starts a read and returns once it waits, with what becomes of it.
func (c *busySession) reads(read func() answered) (become func() answered) {
	c.t.Helper()
	before := etcd.WaitingReads(c.s)
	became := make(chan answered, 1)
	go func() { became <- read() }()
	eventually(c.t, 10*time.Second, "it to wait", func() bool { return etcd.WaitingReads(c.s) == before+1 })
	return func() answered { return <-became }
}

func (c *busySession) gets(ctx context.Context, paths ...string) func() answered {
	return c.reads(func() answered {
		nodes, err := c.s.Get(ctx, paths...)
		return answered{nodes: nodes, err: err}
	})
}

func (c *busySession) lists(path string) func() answered {
	return c.reads(func() answered {
		names, err := c.s.Children(c.ctx, path)
		return answered{names: names, err: err}
	})
}

// each reads at once, and demands that everybody gets what he asked for.
func (c *busySession) each() {
	c.t.Helper()
	var gets, lists, missing []func() answered
	for range 5 {
		gets = append(gets, c.gets(c.ctx, "/there/b", "/there", "/missing"))
		lists = append(lists, c.lists("/there"))
		missing = append(missing, c.lists("/missing"))
	}
	c.heal()
	for i := range gets {
		got := gets[i]()
		require.NoError(c.t, got.err)
		require.Equal(c.t, "3 1 ", fmt.Sprintf("%s %s %s", got.nodes[0].Value, got.nodes[1].Value, got.nodes[2].Value))
		require.False(c.t, got.nodes[2].Exists())
		got = lists[i]()
		require.NoError(c.t, got.err)
		require.Equal(c.t, []string{"a", "b"}, got.names)
		require.ErrorIs(c.t, missing[i]().err, registry.ErrNotFound)
	}
	for _, err := range c.firstErrors() {
		require.NoError(c.t, err)
	}
}

func TestReadsShareARequest(t *testing.T) {
	c := newReadingSession(t)
	c.each()
	all, _ := c.sent()
	require.Equal(t, share.MaxUnderWay+1, all)
}

// A key that one may not read hinders nobody else.
func TestReadsThatAreRefusedTogetherAreAskedForAlone(t *testing.T) {
	c := newReadingSession(t)
	c.denies = func(txn *pb.TxnRequest) bool { return len(txn.Success) > 3 }
	c.each()
	all, _ := c.sent()
	require.Equal(t, share.MaxUnderWay+1+15, all)
}

func TestLeavingAReadThatWaits(t *testing.T) {
	c := newReadingSession(t)
	ctx, leave := context.WithCancel(c.ctx)
	left, stays := c.gets(ctx, "/there", "/there/a"), c.gets(c.ctx, "/there", "/there/b")
	leave()
	err := left().err
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	_, err = c.s.Get(ctx, "/there", "/there/a")
	require.Equal(t, context.Canceled, err, "it had ended before the call")
	c.heal()
	require.NoError(t, stays().err)
}

// Who gives up is told the same, whether his read was under way, with others or alone, or waited for those.
func TestManyReadsWhileCutOff(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{})
	s, client := open(t, bed, patient)
	defer client.Blackhole(testbed.Both)()
	const reads = 5 * share.MaxUnderWay
	errs := make(chan error, reads)
	ctx := within(t, 3*time.Second)
	for i := range reads {
		go func() {
			var err error
			if i%2 == 0 {
				_, err = s.Get(ctx, "/a", "/b")
			} else {
				_, err = s.Children(ctx, "/")
			}
			errs <- err
		}()
	}
	for range reads {
		err := <-errs
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, s.Err())
}

// Who leaves while the shared request is under way leaves at once.
func TestLeavingASharedRead(t *testing.T) {
	c := newReadingSession(t)
	hold := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(hold) })
	defer letGo()
	c.denies = func(txn *pb.TxnRequest) bool {
		if len(txn.Success) > 3 {
			<-hold
		}
		return false
	}
	ctx, leave := context.WithCancel(c.ctx)
	left, stays := c.gets(ctx, "/there", "/there/a"), c.gets(c.ctx, "/there", "/there/b")
	c.heal()
	eventually(t, 10*time.Second, "it to be under way", func() bool { n, _ := c.sent(); return n > share.MaxUnderWay })
	leave()
	err := left().err
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	letGo()
	require.NoError(t, stays().err)
}

func TestCloseWhileReadsWait(t *testing.T) {
	c := newReadingSession(t)
	waits := c.gets(c.ctx, "/there", "/there/a")
	require.NoError(t, c.s.Close(c.ctx))
	require.ErrorIs(t, waits().err, registry.ErrSessionLost)
	for _, err := range c.firstErrors() {
		require.ErrorIs(t, err, registry.ErrSessionLost)
	}
}
