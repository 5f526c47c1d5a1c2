package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// bare is a registry's own client that writes what Elasticron must write for a recorded
// run of a job with one item, and nothing else: the ledger at its version, while the life
// stands, once at the begin and once at the end. It is the limit of what can be reached.
type bare struct {
	store  store
	shared int // commits in a request
	jobs   []bareJob
}

type bareJob struct {
	life, ledger string
	at           int64 // the version or revision of the ledger
}

// A store is a client.
type store interface {
	// make makes the nodes of jobs.
	make(ctx context.Context, jobs []bareJob) error
	// commit sets the ledgers of jobs, each for itself, in one request.
	commit(ctx context.Context, jobs []bareJob) error
	// renew sets the ledgers of jobs whatever their versions, after a commit that was not answered: the service keeps
	// the order, so that one cannot change them any more.
	renew(ctx context.Context, jobs []bareJob) error
	close() error
}

const (
	bareJobs     = 2000
	bareTogether = 40 // commits that share a request
	bareInFlight = 64 // requests under way
)

// bareValue is as long as the ledger of a job with one item.
var bareValue = []byte(strings.Repeat("x", 200))

func openBare(ctx context.Context, cfg contest.Config, _ *contest.Tally) (contest.Contender, error) {
	b := &bare{shared: 1}
	if cfg.Contender == bareShared {
		b.shared = bareTogether
	}
	var err error
	if cfg.Registry == onZooKeeper {
		b.store, err = newBareZooKeeper(ctx, cfg.Server)
	} else {
		b.store, err = newBareEtcd(ctx, cfg.Server)
	}
	return b, err
}

// Add makes nodes: it fires nothing.
func (b *bare) Add(ctx context.Context, jobs contest.Jobs) error {
	for i := jobs.First; i < jobs.First+jobs.Count; i++ {
		const id = "127.0.0.1@-@bench-7J4UZPYG2RQYP7APUMLDRKKSYI"
		root := fmt.Sprintf("/elasticron/%s/%s", namespace, contest.JobName(i))
		b.jobs = append(b.jobs, bareJob{life: root + "/lives/" + id, ledger: root + "/ledgers/" + id})
	}
	return b.store.make(ctx, b.jobs[jobs.First:])
}

// Write gives each request jobs of its own.
func (b *bare) Write(ctx context.Context) (int, error) {
	var commits atomic.Int64
	group, during := errgroup.WithContext(ctx)
	together := min(b.shared, len(b.jobs))
	workers := min(bareInFlight, len(b.jobs)/together)
	each := len(b.jobs) / workers
	for w := range workers {
		own := b.jobs[w*each : (w+1)*each]
		group.Go(func() error {
			i := 0
			for during.Err() == nil {
				some := own[i : i+together]
				err := b.store.commit(during, some)
				if unanswered(err) {
					if err = patiently(during, func() error { return b.store.renew(during, some) }); err == nil {
						continue
					}
				}
				if err != nil {
					return err
				}
				commits.Add(int64(together))
				i = (i + together) % (each - together + 1)
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	return int(commits.Load() / 2), err
}

func (b *bare) Close(context.Context) error { return b.store.close() }

// unanswered reports whether a server that is too busy, or was paused, has not answered in its time.
func unanswered(err error) bool {
	return slices.ContainsFunc([]error{
		zk.ErrConnectionClosed, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
		rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTooManyRequests,
	}, func(one error) bool { return errors.Is(err, one) })
}

// patiently repeats what may be done twice until it is answered.
func patiently(ctx context.Context, do func() error) (err error) {
	for {
		if err = do(); !unanswered(err) || wait(ctx, time.Now().Add(unansweredPause)) != nil {
			return err
		}
	}
}

const unansweredPause = 50 * time.Millisecond

var errBareRefused = errors.New("a condition does not hold")

type bareEtcd struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
}

// dialEtcd opens etcd's own client, which is silent.
func dialEtcd(server string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{server}, Logger: zap.NewNop()})
}

func newBareEtcd(ctx context.Context, server string) (store, error) {
	client, err := dialEtcd(server)
	if err != nil {
		return nil, err
	}
	lease, err := client.Grant(ctx, int64((10 * time.Minute).Seconds()))
	if err != nil {
		return nil, err
	}
	return &bareEtcd{client, lease.ID}, nil
}

func (e *bareEtcd) make(ctx context.Context, jobs []bareJob) error {
	for i := range jobs {
		err := patiently(ctx, func() error {
			answer, err := e.client.Txn(ctx).Then(clientv3.OpPut(jobs[i].life, "", clientv3.WithLease(e.lease)),
				clientv3.OpPut(jobs[i].ledger, string(bareValue))).Commit()
			if err == nil {
				jobs[i].at = answer.Header.Revision
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *bareEtcd) renew(ctx context.Context, jobs []bareJob) error {
	puts := make([]clientv3.Op, len(jobs))
	for i, j := range jobs {
		puts[i] = clientv3.OpPut(j.ledger, string(bareValue))
	}
	answer, err := e.client.Txn(ctx).Then(puts...).Commit()
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].at = answer.Header.Revision
	}
	return nil
}

func (e *bareEtcd) commit(ctx context.Context, jobs []bareJob) error {
	conditions := func(j bareJob) []clientv3.Cmp {
		return []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(j.life), ">", 0),
			clientv3.Compare(clientv3.ModRevision(j.ledger), "=", j.at),
		}
	}
	put := func(j bareJob) clientv3.Op { return clientv3.OpPut(j.ledger, string(bareValue)) }
	txn := e.client.Txn(ctx)
	if len(jobs) == 1 {
		txn = txn.If(conditions(jobs[0])...).Then(put(jobs[0]))
	} else {
		each := make([]clientv3.Op, len(jobs))
		for i, j := range jobs {
			each[i] = clientv3.OpTxn(conditions(j), []clientv3.Op{put(j)}, nil)
		}
		txn = txn.Then(each...)
	}
	answer, err := txn.Commit()
	if err != nil {
		return err
	}
	ok := answer.Succeeded
	for _, r := range answer.Responses {
		if t := r.GetResponseTxn(); t != nil {
			ok = ok && t.Succeeded
		}
	}
	if !ok {
		return errBareRefused
	}
	for i := range jobs {
		jobs[i].at = answer.Header.Revision
	}
	return nil
}

func (e *bareEtcd) close() error { return e.client.Close() }

type bareZooKeeper struct{ conn *zk.Conn }

type silent struct{}

func (silent) Printf(string, ...any) {}

func newBareZooKeeper(ctx context.Context, server string) (store, error) {
	conn, events, err := zk.Connect([]string{server}, 30*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return &bareZooKeeper{conn}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, context.Cause(ctx)
		}
	}
}

func (z *bareZooKeeper) make(_ context.Context, jobs []bareJob) error {
	made := map[string]bool{}
	for _, j := range jobs {
		for _, path := range []string{j.life, j.ledger} {
			for i := 1; i < len(path); i++ {
				if dir := path[:i]; path[i] == '/' && !made[dir] {
					made[dir] = true
					if _, err := z.conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
						return err
					}
				}
			}
		}
		_, err := z.conn.Multi(
			&zk.CreateRequest{Path: j.life, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral},
			&zk.CreateRequest{Path: j.ledger, Data: bareValue, Acl: zk.WorldACL(zk.PermAll)})
		if err != nil {
			return err
		}
	}
	return nil
}

func (z *bareZooKeeper) commit(_ context.Context, jobs []bareJob) error {
	ops := make([]any, 0, 2*len(jobs))
	for _, j := range jobs {
		ops = append(ops, &zk.CheckVersionRequest{Path: j.life, Version: -1},
			&zk.SetDataRequest{Path: j.ledger, Data: bareValue, Version: int32(j.at)}) //nolint:gosec // a version of ZooKeeper has 32 bits
	}
	if _, err := z.conn.Multi(ops...); err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].at++
	}
	return nil
}

func (z *bareZooKeeper) renew(_ context.Context, jobs []bareJob) error {
	for i, j := range jobs {
		stat, err := z.conn.Set(j.ledger, bareValue, -1)
		if err != nil {
			return err
		}
		jobs[i].at = int64(stat.Version)
	}
	return nil
}

func (z *bareZooKeeper) close() error {
	z.conn.Close()
	return nil
}
