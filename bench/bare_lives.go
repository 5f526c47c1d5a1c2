package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// bareLives is etcd's own client that does what Elasticron must do before it can give items of a dead instance to
// another, and nothing else: in each job each instance has a node and a life, and watches those of the others. An item
// is its own where it is the first of those that live, in an order that differs from job to job: nobody elects, reads
// or writes. So it shows how long it takes until instances are told of a death.
type bareLives struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	id     string
	all    context.Context // of what goes on until Close
	leave  context.CancelFunc
	work   errgroup.Group

	mu    sync.Mutex
	jobs  map[string]map[string]presence // by id
	owned contest.Owned
}

// A presence is what is known of an instance in a job: the latest revision of its node and of its life, and which of
// them stand.
type presence struct {
	revisions [2]int64
	stand     [2]bool
}

// kinds are the directories of a job in which an instance has something.
var kinds = [2]string{"instances", "lives"}

const (
	bareLease   = 5 * time.Second
	bareEntered = 32 // jobs that are entered in one request
	bareStreams = 32 // as Elasticron has
)

func openBareLives(ctx context.Context, cfg contest.Config) (contest.Contender, error) {
	client, err := dialEtcd(cfg.Server)
	if err != nil {
		return nil, err
	}
	lease, err := client.Grant(ctx, int64(bareLease/time.Second))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	b := &bareLives{client: client, lease: lease.ID, id: cfg.Name, jobs: map[string]map[string]presence{}}
	b.all, b.leave = context.WithCancel(context.WithoutCancel(ctx))
	beats, err := client.KeepAlive(b.all, lease.ID)
	if err != nil {
		b.leave()
		return nil, errors.Join(err, client.Close())
	}
	b.work.Go(func() error {
		for range beats {
		}
		return nil
	})
	return b, nil
}

// Add watches first: what was there before is read afterwards.
func (b *bareLives) Add(ctx context.Context, jobs contest.Jobs) error {
	names := make([]string, jobs.Count)
	for i := range names {
		names[i] = contest.JobName(jobs.First + i)
	}
	for on := range slices.Chunk(names, (len(names)+bareStreams-1)/bareStreams) {
		if err := b.watch(ctx, on); err != nil {
			return err
		}
	}
	_, err := b.inEach(ctx, names, func(dir string) clientv3.Op { return clientv3.OpPut(dir+b.id, "", clientv3.WithLease(b.lease)) })
	if err != nil {
		return err
	}
	before, err := b.inEach(ctx, names, func(dir string) clientv3.Op {
		return clientv3.OpGet(dir, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	})
	for _, r := range before {
		for _, kv := range r.GetResponseRange().Kvs {
			b.take(string(kv.Key), kv.ModRevision, true)
		}
	}
	return err
}

// inEach does one operation in each directory of jobs, those of a few jobs in one request.
func (b *bareLives) inEach(ctx context.Context, names []string, op func(dir string) clientv3.Op) (all []*etcdserverpb.ResponseOp, err error) {
	for together := range slices.Chunk(names, bareEntered) {
		var ops []clientv3.Op
		for _, name := range together {
			for _, kind := range kinds {
				ops = append(ops, op(directory(name, kind)))
			}
		}
		answer, err := b.client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, err
		}
		all = append(all, answer.Responses...)
	}
	return all, nil
}

func directory(job, kind string) string {
	return fmt.Sprintf("/elasticron/%s/%s/%s/", namespace, job, kind)
}

// watch puts watches on a stream, and returns when they stand.
func (b *bareLives) watch(ctx context.Context, names []string) error {
	stream, err := etcdserverpb.NewWatchClient(b.client.ActiveConnection()).Watch(b.all)
	if err != nil {
		return err
	}
	standing := make(chan struct{})
	b.work.Go(func() error {
		missing := len(kinds) * len(names)
		for {
			answer, err := stream.Recv()
			if err != nil {
				return err
			}
			if answer.Created {
				if missing--; missing == 0 {
					close(standing)
				}
			}
			for _, e := range answer.Events {
				b.take(string(e.Kv.Key), e.Kv.ModRevision, e.Type == mvccpb.Event_PUT)
			}
		}
	})
	for _, name := range names {
		for _, kind := range kinds {
			dir := directory(name, kind)
			create := &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: &etcdserverpb.WatchCreateRequest{
				Key: []byte(dir), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(dir)),
			}}
			if err := stream.Send(&etcdserverpb.WatchRequest{RequestUnion: create}); err != nil {
				return err
			}
		}
	}
	select {
	case <-standing:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take takes in that a key was written or deleted.
func (b *bareLives) take(key string, revision int64, stands bool) {
	parts := strings.Split(key, "/")
	job, kind, id := parts[3], slices.Index(kinds[:], parts[4]), parts[5]
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.jobs[job]
	if of == nil {
		of = map[string]presence{}
		b.jobs[job] = of
	}
	p := of[id]
	if revision <= p.revisions[kind] {
		return
	}
	had := b.first(job) == b.id
	p.revisions[kind], p.stand[kind] = revision, stands
	of[id] = p
	switch has := b.first(job) == b.id; {
	case has && !had:
		b.owned.Items++
		b.owned.At = time.Now()
	case had && !has:
		b.owned.Items--
	}
}

// first is the first instance of a job, of those that live.
func (b *bareLives) first(job string) (id string) {
	var least uint64
	for other, p := range b.jobs[job] {
		if p.stand != [2]bool{true, true} {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(job + "/" + other))
		if place := h.Sum64(); id == "" || place < least {
			id, least = other, place
		}
	}
	return id
}

// Owned implements contest.Owner.
func (b *bareLives) Owned() contest.Owned {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owned
}

func (b *bareLives) Close(context.Context) error {
	b.leave()
	err := b.client.Close()
	_ = b.work.Wait() // the stream ends with an error
	return err
}
