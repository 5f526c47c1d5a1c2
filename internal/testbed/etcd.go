package testbed

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/elasticron/elasticron/internal/ports"
	"github.com/elasticron/elasticron/internal/testbed/etcdmember"
	"github.com/elasticron/elasticron/registry"
)

const (
	pollEvery = 10 * time.Millisecond

	startTime = 20 * time.Second
	adminTime = 10 * time.Second
)

// Options of a cluster. The zero value is one member as etcd is installed, but
// fast: short ticks, leases from one second, no fsync.
type Options struct {
	// Members is the number of servers; 1 when zero.
	Members int
	// Limits of a commit; the portable ones when zero, with etcd's own 128 operations.
	Limits registry.Limits
	// Users: the servers ask for a login; EtcdUser may use every key.
	Users bool
	// Tune may change a member's configuration last. It keeps the members in this process, and is nothing for
	// StartEtcdProcess.
	Tune func(*embed.Config)

	program string // runs each member in a child process
}

// An etcdServer is one member.
type etcdServer interface {
	Endpoint() string
	Close() error
}

// EtcdMemberEnv names the program of package etcdmember. Where it is set, members run in processes of their own.
const EtcdMemberEnv = "ELASTICRON_ETCD_MEMBER"

// An Etcd is a cluster, in this process or in others.
type Etcd struct {
	tb      testing.TB
	options Options
	users   bool         // they are enabled
	ports   *ports.Claim // of the peers, then of the clients of programs
	mesh    []*Proxy     // how they reach each other; the addresses are in the data
	cluster []etcdmember.Member

	mu      sync.Mutex
	admin   *clientv3.Client
	servers []etcdServer
	clients []*Client
	pauses  map[*pause]bool
	late    sync.WaitGroup
	closed  bool
}

// A pause is what ends the holds of one Pause.
type pause struct{ heals []func() }

// StartEtcd starts a cluster that ends with the test.
func StartEtcd(tb testing.TB, o Options) *Etcd {
	tb.Helper()
	o.Members = max(o.Members, 1)
	e := &Etcd{tb: tb, options: o, servers: make([]etcdServer, o.Members), pauses: map[*pause]bool{}}
	var err error
	if e.ports, err = ports.Take(2 * o.Members); err != nil {
		tb.Fatalf("testbed: %v", err)
	}
	tb.Cleanup(e.Close)
	var peers, ways []string
	for i := range o.Members {
		peer := e.ports.Addr(i)
		p, err := NewProxy(peer)
		if err != nil {
			tb.Fatalf("testbed: %v", err)
		}
		e.mesh = append(e.mesh, p)
		peers, ways = append(peers, peer), append(ways, p.Addr())
	}
	e.cluster = etcdmember.Cluster(tb.TempDir(), peers, ways)
	for i := range e.cluster {
		m := &e.cluster[i]
		m.Users, m.OwnLimits = o.Users, o.Limits == (registry.Limits{})
		if o.program != "" {
			m.Client = e.ports.Addr(o.Members + i)
		}
	}
	if err := e.startAll(); err != nil {
		tb.Fatalf("testbed: %v", err)
	}
	if o.Users {
		err := e.enableUsers()
		if e.users = true; err == nil {
			err = e.renewAdmin()
		}
		if err != nil {
			tb.Fatalf("testbed: %v", err)
		}
	}
	return e
}

// startAll starts every member that is not running; they need each other.
func (e *Etcd) startAll() error {
	errs := make([]error, len(e.servers))
	var wg sync.WaitGroup
	for i := range e.servers {
		if e.server(i) == nil {
			wg.Go(func() { errs[i] = e.start(i) })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return e.renewAdmin()
}

func (e *Etcd) start(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	server, err := e.launch(ctx, i)
	for errors.Is(err, syscall.EADDRINUSE) && ctx.Err() == nil {
		// A process that starts just now has the listener of the one before for a moment.
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
		server, err = e.launch(ctx, i)
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers[i] = server
	for _, c := range e.clients {
		c.proxies[i].SetTarget(server.Endpoint())
	}
	return nil
}

func (e *Etcd) launch(ctx context.Context, i int) (etcdServer, error) {
	m := e.cluster[i]
	if e.options.program != "" {
		return e.startProgram(ctx, m)
	}
	if program := os.Getenv(EtcdMemberEnv); program != "" && e.options.Tune == nil {
		return etcdmember.Spawn(ctx, program, m)
	}
	return m.Start(ctx, e.options.Tune)
}

// renewAdmin connects the bed's own client to where the members are now.
func (e *Etcd) renewAdmin() error {
	cfg := clientv3.Config{
		Endpoints: e.Endpoints(), Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: pollEvery, Multiplier: 1.5, MaxDelay: 10 * pollEvery},
		})},
	}
	if e.users {
		cfg.Username, cfg.Password = rootUser, rootPassword
	}
	admin, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	e.mu.Lock()
	old := e.admin
	e.admin = admin
	e.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	return nil
}

// Endpoints are the members' own addresses, past all proxies.
func (e *Etcd) Endpoints() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var addrs []string
	for _, s := range e.servers {
		if s != nil {
			addrs = append(addrs, s.Endpoint())
		}
	}
	return addrs
}

// Members is the number of servers.
func (e *Etcd) Members() int { return len(e.servers) }

// Admin is a client of the bed's own, past all proxies. A restart replaces it.
func (e *Etcd) Admin() *clientv3.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admin
}

// Client makes the way of one more client. It ends with the cluster.
func (e *Etcd) Client() *Client {
	e.tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &Client{bed: e}
	for _, s := range e.servers {
		target := ""
		if s != nil {
			target = s.Endpoint()
		}
		p, err := NewProxy(target)
		if err != nil {
			e.tb.Fatalf("testbed: %v", err)
		}
		c.proxies = append(c.proxies, p)
	}
	for p := range e.pauses {
		p.heals = append(p.heals, c.Hold())
	}
	e.clients = append(e.clients, c)
	return c
}

func (e *Etcd) server(i int) etcdServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[i]
}

func (e *Etcd) stop(i int) error {
	s := e.server(i)
	if s == nil {
		return nil
	}
	e.mu.Lock()
	e.servers[i] = nil
	e.mu.Unlock()
	// It would wait a second for connections of its peers.
	defer e.mesh[i].Refuse()()
	return s.Close()
}

// apply commits past the client, for AppliedLate.
func (e *Etcd) apply(txn *pb.TxnRequest) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.late.Add(1)
	conn := e.admin.ActiveConnection()
	e.mu.Unlock()
	defer e.late.Done()
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	_, _ = pb.NewKVClient(conn).Txn(ctx, txn)
}

// Close stops everything. It is idempotent; the test's end calls it.
func (e *Etcd) Close() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.closed = true
	clients := e.clients
	e.mu.Unlock()
	e.late.Wait()
	for _, c := range clients {
		c.Close()
	}
	if admin := e.Admin(); admin != nil {
		_ = admin.Close()
	}
	if err := e.stopAll(); err != nil {
		e.tb.Errorf("testbed: %v", err)
	}
	for _, way := range e.mesh {
		way.Close()
	}
	_ = e.ports.Close()
}

// stopAll stops the members side by side.
func (e *Etcd) stopAll() error {
	errs := make([]error, len(e.servers))
	var wg sync.WaitGroup
	for i := range e.servers {
		wg.Go(func() { errs[i] = e.stop(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
