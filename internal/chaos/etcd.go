package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/elasticron/elasticron/internal/ports"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

// An etcdTask is what a process that serves etcd is told.
type etcdTask struct {
	Dir    string   `json:"dir"`
	Client string   `json:"client"`
	Peers  []string `json:"peers"`
	Index  int      `json:"index"`
}

const (
	tickAlone    = 10 * time.Millisecond
	tickTogether = 50 * time.Millisecond
	electionIn   = 10 // ticks
)

// serveEtcd is a process that is one member. It ends with its standard input.
func serveEtcd() error {
	var task etcdTask
	if err := json.Unmarshal([]byte(os.Getenv(envTask)), &task); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	srv, err := embedded.Start(ctx, embedded.Config{Dir: task.Dir, Addr: task.Client, Tune: task.tune})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return srv.Close()
}

// tune makes it quick. Without fsync a killed process still loses nothing: only the
// machine could.
func (t etcdTask) tune(c *embed.Config) {
	tick := tickAlone
	if len(t.Peers) > 1 {
		tick = tickTogether
	}
	c.TickMs, c.ElectionMs = uint(tick.Milliseconds()), uint((electionIn * tick).Milliseconds()) //nolint:gosec // constants above zero
	c.UnsafeNoFsync = true
	c.MaxTxnOps, c.MaxRequestBytes = embed.DefaultMaxTxnOps, embed.DefaultMaxRequestBytes
	c.Name = fmt.Sprint("m", t.Index)
	peer := url.URL{Scheme: "http", Host: t.Peers[t.Index]}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	var cluster []string
	for i, addr := range t.Peers {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, addr))
	}
	c.InitialCluster = strings.Join(cluster, ",")
}

// An etcdCluster is etcd in child processes.
type etcdCluster struct {
	dir     string
	claim   *ports.Claim
	tasks   []etcdTask
	mu      sync.Mutex
	members []*child
}

func startEtcd(ctx context.Context, dir string, n int) (servers, error) {
	claim, err := ports.Take(2 * n)
	if err != nil {
		return nil, err
	}
	e := &etcdCluster{dir: dir, claim: claim, members: make([]*child, n)}
	var peers []string
	for i := range n {
		peers = append(peers, claim.Addr(n+i))
	}
	for i := range n {
		e.tasks = append(e.tasks, etcdTask{Dir: filepath.Join(dir, fmt.Sprint("etcd", i)), Client: claim.Addr(i), Peers: peers, Index: i})
	}
	if err := e.RestartAll(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *etcdCluster) Addrs() []string {
	var addrs []string
	for _, t := range e.tasks {
		addrs = append(addrs, t.Client)
	}
	return addrs
}

func (e *etcdCluster) Way() string { return "etcd, child processes" }

func (e *etcdCluster) member(i int) *child {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.members[i]
}

func (e *etcdCluster) launch(i int) error {
	c, err := spawn(e.dir, fmt.Sprint("etcd", i), roleEtcd, e.tasks[i], func(string) {})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members[i] = c
	return nil
}

func (e *etcdCluster) Kill(i int) error {
	if c := e.member(i); c != nil {
		c.kill()
	}
	return nil
}

func (e *etcdCluster) Restart(ctx context.Context, i int) error {
	if err := e.Kill(i); err != nil {
		return err
	}
	if err := e.launch(i); err != nil {
		return err
	}
	return e.ready(ctx, i)
}

func (e *etcdCluster) RestartAll(ctx context.Context) error {
	for i := range e.tasks {
		if err := e.Kill(i); err != nil {
			return err
		}
	}
	for i := range e.tasks {
		if err := e.launch(i); err != nil {
			return err
		}
	}
	for i := range e.tasks {
		if err := e.ready(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (e *etcdCluster) Pause(i int) error { return e.signal(i, syscall.SIGSTOP) }

func (e *etcdCluster) Resume(i int) error { return e.signal(i, syscall.SIGCONT) }

func (e *etcdCluster) signal(i int, s syscall.Signal) error {
	if c := e.member(i); c == nil || !c.signal(s) {
		return fmt.Errorf("chaos: etcd member %d does not run", i)
	}
	return nil
}

// ready waits until a member knows a leader.
func (e *etcdCluster) ready(ctx context.Context, i int) error {
	return poll(ctx, func() bool { return askEtcd(ctx, e.tasks[i].Client).GetLeader() != 0 })
}

func (e *etcdCluster) Leader(ctx context.Context) (leader int, err error) {
	err = poll(ctx, func() bool {
		for i, t := range e.tasks {
			status := askEtcd(ctx, t.Client)
			if status.GetLeader() != 0 && status.GetLeader() == status.GetHeader().GetMemberId() {
				leader = i
				return true
			}
		}
		return false
	})
	return leader, err
}

func (e *etcdCluster) Close() error {
	for i := range e.tasks {
		if c := e.member(i); c != nil {
			c.kill()
		}
	}
	return e.claim.Close()
}

// askEtcd returns nil when a member does not answer.
func askEtcd(ctx context.Context, endpoint string) *pb.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil
	}
	defer conn.Close()
	status, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return nil
	}
	return status
}

// poll waits for cond.
func poll(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
