package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

// maxReads is how many reads fit one transaction of a server as installed.
const maxReads = 128

// Get reads up to 128 nodes in one request.
func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if err := s.AliveFor(ctx, "get", paths...); err != nil {
		return nil, err
	}
	nodes := make([]registry.Node, 0, len(paths))
	for len(paths) > 0 {
		n := min(len(paths), maxReads)
		batch, err := s.getBatch(ctx, paths[:n])
		if err != nil {
			return nil, err
		}
		nodes, paths = append(nodes, batch...), paths[n:]
	}
	return nodes, nil
}

func (s *session) getBatch(ctx context.Context, paths []string) ([]registry.Node, error) {
	reads := make([]*pb.RequestOp, len(paths))
	for i, path := range paths {
		reads[i] = readOp(&pb.RangeRequest{Key: nodeKey(path)})
	}
	resp, err := s.reads.Do(ctx, reads)
	if err != nil {
		return nil, err
	}
	nodes := make([]registry.Node, len(paths))
	for i, path := range paths {
		nodes[i] = s.nodeOf(path, resp.Responses[i].GetResponseRange())
	}
	return nodes, nil
}

// Children reads the node and the names below it in one request.
func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	if err := s.AliveFor(ctx, "children", path); err != nil {
		return nil, err
	}
	from, to := childRange(path)
	resp, err := s.reads.Do(ctx, []*pb.RequestOp{
		readOp(&pb.RangeRequest{Key: nodeKey(path), KeysOnly: true}),
		readOp(&pb.RangeRequest{Key: from, RangeEnd: to, KeysOnly: true}),
	})
	if err != nil {
		return nil, err
	}
	if path != "/" && len(resp.Responses[0].GetResponseRange().GetKvs()) == 0 {
		return nil, fmt.Errorf("etcd: children of %s: %w", path, registry.ErrNotFound)
	}
	kvs := resp.Responses[1].GetResponseRange().GetKvs()
	names := make([]string, len(kvs))
	for i, kv := range kvs {
		names[i] = string(kv.Key[len(from):])
	}
	return names, nil
}

// Sync sends nothing: every read of this adapter is linearizable.
func (s *session) Sync(ctx context.Context) error { return s.Alive(ctx) }

// readAlone reads at one revision, linearizably, until ctx or the session ends. It spares the
// service the transaction for a single read.
func (s *session) readAlone(ctx context.Context, reads []*pb.RequestOp) (resp *pb.TxnResponse, err error) {
	ctx, release := s.Bound(ctx)
	defer release()
	err = s.reg.retry(ctx, "read", func(ctx context.Context) error {
		if len(reads) > 1 {
			resp, err = s.reg.kv.Txn(ctx, &pb.TxnRequest{Success: reads}, callOptions...)
			return err
		}
		one, err := s.reg.kv.Range(ctx, reads[0].GetRequestRange(), callOptions...)
		resp = &pb.TxnResponse{Header: one.GetHeader(), Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponseRange{ResponseRange: one}},
		}}
		return err
	})
	return resp, s.explain(err)
}

// explain prefers the loss of the session over what it did to a call.
func (s *session) explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, registry.ErrClosed) {
		s.Lose(lifetime.ErrClosed)
	}
	return cmp.Or(s.Err(), err)
}

// nodeOf is the state of a path as read; the zero node but for Path when absent.
func (s *session) nodeOf(path string, r *pb.RangeResponse) registry.Node {
	if kvs := r.GetKvs(); len(kvs) > 0 {
		return s.node(path, kvs[0])
	}
	return registry.Node{Path: path}
}

// node turns a key of etcd, whose versions start at 1, into a node.
func (s *session) node(path string, kv *mvccpb.KeyValue) registry.Node {
	return registry.Node{
		Path: path, Value: kv.Value, Version: registry.Version(kv.Version - 1),
		Created: registry.Revision(kv.CreateRevision), Modified: registry.Revision(kv.ModRevision),
		Ephemeral: kv.Lease != 0, Owned: kv.Lease != 0 && kv.Lease == s.lease,
	}
}
