package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// RequiredEnv makes tests fail, and not be skipped, where ZooKeeper cannot run.
const RequiredEnv = "ELASTICRON_ZOOKEEPER_REQUIRED"

// sharedServer is started at most once in this process.
var sharedServer struct {
	mu      sync.Mutex
	cluster *zkserver.Cluster
	err     error
	tried   bool
}

// SharedZooKeeper is the run's one server: the one that ELASTICRON_ZOOKEEPER names,
// or else one that this process starts once and CloseShared ends, or the process's
// end. Its data is everybody's: use a root of your own. What it cannot do (Restart,
// LoseLeader) is an error. Without a server it does as StartZooKeeper.
func SharedZooKeeper(tb testing.TB) *ZooKeeper {
	tb.Helper()
	s := &sharedServer
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tried {
		ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
		defer cancel()
		s.cluster, s.err = zkserver.Start(ctx, zkserver.Options{})
		s.tried = true
	}
	if s.err != nil {
		without(tb, s.err)
	}
	return newZooKeeper(tb, s.cluster, true)
}

// CloseShared ends the server that SharedZooKeeper started in this process, if it did.
func CloseShared() error {
	s := &sharedServer
	s.mu.Lock()
	defer s.mu.Unlock()
	cluster := s.cluster
	s.cluster, s.err, s.tried = nil, nil, false
	if cluster == nil {
		return nil
	}
	return cluster.Close()
}

// ClosingShared is for a TestMain that looks for leaks: it calls CloseShared after
// the tests.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testbed.ClosingShared(m)) }
func ClosingShared(m interface{ Run() int }) interface{ Run() int } { return closing{m} }

type closing struct{ tests interface{ Run() int } }

func (c closing) Run() int {
	code := c.tests.Run()
	if err := CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// without ends a test that cannot have its servers. Only where nothing at all is
// there to run them, and nobody requires it, it is a skip.
func without(tb testing.TB, err error) {
	tb.Helper()
	unavailable := (*zkserver.UnavailableError)(nil)
	if os.Getenv(RequiredEnv) == "1" || !errors.As(err, &unavailable) || !unavailable.Absent() {
		tb.Fatalf("testbed: ZooKeeper does not run: %v", err)
	}
	text := strings.Join([]string{
		"",
		"!!! ZooKeeper did not run: the tests that need it are SKIPPED.",
		"!!! " + strings.ReplaceAll(err.Error(), "\n", "\n!!! "),
		"!!! Install Debian's packages zookeeper and default-jre-headless, or a Docker engine.",
		"!!! " + RequiredEnv + "=1 makes these tests fail instead.",
	}, "\n")
	announce(text)
	tb.Skip(text)
}
