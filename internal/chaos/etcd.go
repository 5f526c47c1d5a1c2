package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/elasticron/elasticron/internal/ports"
	"github.com/elasticron/elasticron/internal/testbed/etcdmember"
)

// serveEtcd is a process that is one member. Without fsync a killed one still loses nothing: only the machine could.
func serveEtcd() error { return etcdmember.Serve(os.Getenv(envTask)) }

// An etcdCluster is etcd in child processes.
type etcdCluster struct {
	dir     string
	claim   *ports.Claim
	tasks   []etcdmember.Member
	mu      sync.Mutex
	members []*child
}

func startEtcd(ctx context.Context, dir string, n int) (servers, error) {
	claim, err := ports.Take(2 * n)
	if err != nil {
		return nil, err
	}
	var peers []string
	for i := range n {
		peers = append(peers, claim.Addr(n+i))
	}
	e := &etcdCluster{dir: dir, claim: claim, tasks: etcdmember.Cluster(dir, peers, peers), members: make([]*child, n)}
	for i := range e.tasks {
		e.tasks[i].Client = claim.Addr(i)
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

func (e *etcdCluster) Pause(i int) error { return e.signal(i, pausing) }

func (e *etcdCluster) Resume(i int) error { return e.signal(i, resuming) }

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

// Close ends the servers and removes their data.
func (e *etcdCluster) Close() error {
	var errs []error
	for i, t := range e.tasks {
		if c := e.member(i); c != nil {
			c.kill()
		}
		errs = append(errs, os.RemoveAll(t.Dir))
	}
	return errors.Join(append(errs, e.claim.Close())...)
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
