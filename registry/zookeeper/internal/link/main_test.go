package link_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// server serves all tests of the package; none may pause or stop it.
var server *zkserver.Cluster

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c, err := zkserver.Start(ctx, zkserver.Options{})
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // there is no test to fail yet
	}
	server = c
	code := m.Run()
	_ = c.Close()
	// The lock-up that TestDefectABreakWhileLoggingInAgainLocksUp shows.
	locked := goleak.IgnoreAnyFunction("github.com/go-zookeeper/zk.(*Conn).flushRequests")
	if err := goleak.Find(locked); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // this is main
}

// timeout is of the sessions that tests take from their owners: some wait for it. A machine that stands still for a
// second must not end one sooner.
const timeout = 4 * time.Second

// calm is of the others.
const calm = 20 * time.Second

var world = zk.WorldACL(zk.PermAll)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// way is a proxy to the server.
func way(t *testing.T) *testbed.Proxy {
	t.Helper()
	p, err := testbed.NewProxy(server.Addrs()[0])
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func open(t *testing.T, cfg link.Config) *link.Link {
	t.Helper()
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = timeout
	}
	l, err := link.Open(within(t, 20*time.Second), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// direct is a link past all proxies, which no fault reaches.
func direct(t *testing.T) *link.Link {
	return open(t, link.Config{Servers: server.Addrs(), SessionTimeout: calm})
}

// fresh makes a node of the test's own.
func fresh(t *testing.T, l *link.Link) string {
	t.Helper()
	w, err := l.Multi(within(t, 10*time.Second), &zk.CreateRequest{Path: "/test-", Acl: world, Flags: zk.FlagSequence})
	require.NoError(t, err)
	return w.Results[0].String
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 20*time.Second, 2*time.Millisecond, what)
}
