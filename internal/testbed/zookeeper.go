package testbed

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// ZooKeeperOptions of a bed. The zero value is one server as it is installed, but
// fast: short ticks, sessions from one second, data in memory where possible.
type ZooKeeperOptions struct {
	// Members is the number of servers; 1 when zero.
	Members int
	// Tick is the servers' tickTime; 500 ms when zero.
	Tick time.Duration
	// Way forces a way to run them: "container", "process" or "maven".
	Way string
	// Version forces the way "maven" with this version.
	Version string
	// Java and Config are more options of the virtual machine, and lines of zoo.cfg.
	Java, Config []string
}

// A ZooKeeper is a cluster of real servers, and the ways of clients to it.
type ZooKeeper struct {
	tb      testing.TB
	cluster *zkserver.Cluster
	shared  bool

	mu       sync.Mutex
	clients  []*ZooKeeperClient
	sessions map[int64]zkSession
	pauses   map[*pause]bool
	closed   bool
}

const clusterTime = 90 * time.Second

// StartZooKeeper starts servers of the test's own, which end with it. Where nothing
// can run them the test is skipped, or fails if ELASTICRON_ZOOKEEPER_REQUIRED is 1.
func StartZooKeeper(tb testing.TB, o ZooKeeperOptions) *ZooKeeper {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
	defer cancel()
	cluster, err := zkserver.Start(ctx, zkserver.Options{
		Members: o.Members, Tick: o.Tick, Way: o.Way, Version: o.Version, Java: o.Java, Config: o.Config, Own: true,
	})
	if err != nil {
		without(tb, err)
	}
	return newZooKeeper(tb, cluster, false)
}

func newZooKeeper(tb testing.TB, cluster *zkserver.Cluster, shared bool) *ZooKeeper {
	tb.Helper()
	z := &ZooKeeper{tb: tb, cluster: cluster, shared: shared, sessions: map[int64]zkSession{}, pauses: map[*pause]bool{}}
	tb.Cleanup(z.Close)
	return z
}

// Addrs are the members' own addresses, past all proxies.
func (z *ZooKeeper) Addrs() []string { return z.cluster.Addrs() }

// Members is the number of servers.
func (z *ZooKeeper) Members() int { return z.cluster.Members() }

// Way says what runs the servers, such as "process Debian 3.8.0".
func (z *ZooKeeper) Way() string { return z.cluster.Way() }

// Version is that of the servers.
func (z *ZooKeeper) Version() string { return z.cluster.Version() }

// Servers are the servers themselves, for faults of single members.
func (z *ZooKeeper) Servers() *zkserver.Cluster { return z.cluster }

// Client makes the way of one more client. It ends with the bed.
func (z *ZooKeeper) Client() *ZooKeeperClient {
	z.tb.Helper()
	return z.TLSClient(nil)
}

// TLSClient is Client for clients that speak TLS; the servers are spoken to
// without. nil is without TLS.
func (z *ZooKeeper) TLSClient(server *tls.Config) *ZooKeeperClient {
	z.tb.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	c := &ZooKeeperClient{bed: z, requests: map[string]int{}}
	for _, addr := range z.Addrs() {
		p, err := NewTLSProxy(addr, server)
		if err != nil {
			c.Close()
			z.tb.Fatalf("testbed: %v", err)
		}
		p.setInspect(func(l *link) inspector { return newFrames(c, p, l) })
		c.proxies = append(c.proxies, p)
	}
	for p := range z.pauses {
		p.heals = append(p.heals, c.Hold())
	}
	z.clients = append(z.clients, c)
	return c
}

// Pause holds everything between all clients and all members; nothing is lost.
// The servers' own clocks go on. Servers().Pause stops a member itself.
func (z *ZooKeeper) Pause() (resume func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	p := &pause{}
	for _, c := range z.clients {
		p.heals = append(p.heals, c.Hold())
	}
	z.pauses[p] = true
	return sync.OnceFunc(func() {
		z.mu.Lock()
		defer z.mu.Unlock()
		delete(z.pauses, p)
		for _, heal := range p.heals {
			heal()
		}
	})
}

// Restart kills every server and starts it again on its data. Its clients' connections
// end, also those through which nothing passes.
func (z *ZooKeeper) Restart() error {
	if err := z.own(); err != nil {
		return err
	}
	for i := range z.Members() {
		if err := z.cluster.Kill(i); err != nil {
			return err
		}
	}
	z.mu.Lock()
	clients := slices.Clone(z.clients)
	z.mu.Unlock()
	for _, c := range clients {
		c.Drop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
	defer cancel()
	return z.cluster.RestartAll(ctx)
}

// LoseLeader kills the leader, waits for another, and starts it again.
func (z *ZooKeeper) LoseLeader() error {
	if err := z.own(); err != nil {
		return err
	}
	if z.Members() == 1 {
		return fmt.Errorf("%w: a server that is alone has no successor", zkserver.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
	defer cancel()
	old, err := z.cluster.Leader(ctx)
	if err != nil {
		return err
	}
	if err := z.cluster.Kill(old); err != nil {
		return err
	}
	if _, err := z.cluster.Leader(ctx); err != nil {
		return err
	}
	return z.cluster.Restart(ctx, old)
}

// Leader waits until some server leads and returns its index.
func (z *ZooKeeper) Leader() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
	defer cancel()
	return z.cluster.Leader(ctx)
}

func (z *ZooKeeper) own() error {
	if z.shared {
		return fmt.Errorf("%w: the server is shared with other tests: use StartZooKeeper", zkserver.ErrUnsupported)
	}
	return nil
}

// Close ends all ways, and the servers unless they are shared. It is idempotent;
// the test's end calls it.
func (z *ZooKeeper) Close() {
	z.mu.Lock()
	if z.closed {
		z.mu.Unlock()
		return
	}
	z.closed = true
	clients := z.clients
	z.mu.Unlock()
	for _, c := range clients {
		c.Close()
	}
	if z.shared {
		return
	}
	if err := z.cluster.Close(); err != nil {
		z.tb.Errorf("testbed: %v", err)
	}
}
