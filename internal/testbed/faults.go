package testbed

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Revoke ends the lease of a session; its client is not told.
func (e *Etcd) Revoke(lease int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	_, err := e.Admin().Revoke(ctx, clientv3.LeaseID(lease))
	return err
}

// Compact forgets all revisions before the present one.
func (e *Etcd) Compact() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	now, err := e.Admin().Get(ctx, "compact")
	if err != nil {
		return err
	}
	_, err = e.Admin().Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	return err
}

// Pause holds everything between all clients and all members; nothing is lost.
// The members' own clocks go on, as those of a cluster behind a stuck switch.
func (e *Etcd) Pause() (resume func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &pause{}
	for _, c := range e.clients {
		p.heals = append(p.heals, c.Hold())
	}
	e.pauses[p] = true
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.pauses, p)
		for _, heal := range p.heals {
			heal()
		}
	})
}

// Restart stops every member and starts it again on its data.
func (e *Etcd) Restart() error {
	if err := e.stopAll(); err != nil {
		return err
	}
	return e.startAll()
}

// LoseLeader stops the leader, waits for another, and starts it again.
func (e *Etcd) LoseLeader() error {
	old, err := e.leader()
	if err != nil {
		return err
	}
	if err := e.stop(old); err != nil {
		return err
	}
	if _, err := e.leader(); err != nil {
		return err
	}
	return e.startAll()
}

// leader waits until some member leads and returns its index.
func (e *Etcd) leader() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		for i := range e.servers {
			if s := e.server(i); s != nil && leads(ctx, s.Endpoint()) {
				return i, nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("no leader: %w", ctx.Err())
		}
	}
}

// leads asks one member alone.
func leads(ctx context.Context, endpoint string) bool {
	status := ask(ctx, endpoint)
	return status.GetLeader() != 0 && status.GetLeader() == status.GetHeader().GetMemberId()
}

// hasLeader reports whether a member serves in a cluster that can commit.
func hasLeader(ctx context.Context, endpoint string) bool {
	return ask(ctx, endpoint).GetLeader() != 0
}

// ask returns nil when a member does not answer.
func ask(ctx context.Context, endpoint string) *pb.StatusResponse {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil
	}
	defer conn.Close()
	status, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil
	}
	return status
}
