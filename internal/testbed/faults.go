package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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

// Compacted says whether the first revision cannot be read any more.
func (e *Etcd) Compacted() bool {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	_, err := e.Admin().Get(ctx, "compact", clientv3.WithRev(1))
	return errors.Is(err, rpctypes.ErrCompacted)
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

// Partition keeps member i and the other members apart, silently; clients still reach
// all.
func (e *Etcd) Partition(i int) (heal func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	status := ask(ctx, e.server(i).Endpoint())
	if status == nil {
		return nil, fmt.Errorf("testbed: member %d does not say who it is", i)
	}
	// A member that connects for messages of Raft says who it is, and nothing when it
	// forwards a heartbeat to the leader: none of these is let through.
	const sender = "X-Server-From: "
	own := []byte(sender + strconv.FormatUint(status.GetHeader().GetMemberId(), 16) + "\r\n")
	heals := make([]func(), len(e.mesh))
	for n, way := range e.mesh {
		if n == i {
			heals[n] = way.Hold()
			continue
		}
		heals[n] = way.HoldSome(func(request []byte) bool {
			return bytes.Contains(request, own) || !bytes.Contains(request, []byte(sender))
		})
	}
	return sync.OnceFunc(func() {
		for _, heal := range heals {
			heal()
		}
	}), nil
}

// RestartMembers stops members and starts them again on their data.
func (e *Etcd) RestartMembers(members ...int) error {
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for k, i := range members {
		wg.Go(func() { errs[k] = e.stop(i) })
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), e.startAll())
}

// Restart stops every member and starts it again on its data. Its clients' connections
// end, also those through which nothing passes.
func (e *Etcd) Restart() error {
	if err := e.stopAll(); err != nil {
		return err
	}
	e.mu.Lock()
	clients := slices.Clone(e.clients)
	e.mu.Unlock()
	for _, c := range clients {
		c.Drop()
	}
	return e.startAll()
}

// LoseLeader stops the leader, waits for another, and starts it again.
func (e *Etcd) LoseLeader() error {
	old, err := e.Leader()
	if err != nil {
		return err
	}
	if err := e.stop(old); err != nil {
		return err
	}
	if _, err := e.Leader(); err != nil {
		return err
	}
	return e.startAll()
}

// Leader waits until some member leads and returns its index.
func (e *Etcd) Leader() (int, error) {
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
