package etcd

import (
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/share"
)

const (
	// A request that is shared grows no larger than this: it holds up what comes after it.
	maxSharedBytes = 64 << 10
	// A commit of more operations shares with nobody: etcd has to do with these, not with its request, and nobody gains
	// from waiting (BenchmarkRegistry, 40 sets).
	maxSharingOps = 32
	// A member as installed takes so many operations in a transaction; those of a
	// transaction within count to those of the one around it.
	maxTxnOps = 128
)

// An answer is the service's to one plan.
type answer struct {
	succeeded bool
	responses []*pb.ResponseOp
	revision  registry.Revision
}

// sharing is how commits share a request: as transactions of one transaction, of which each compares, is applied and is
// refused for itself. etcd compares all of them before it applies the first, so none may touch what another relies on.
func (s *session) sharing() share.Config[*plan, answer] {
	return share.Config[*plan, answer]{
		Life: s.Lifetime, Alone: s.sendAlone, Together: s.sendTogether, Room: room,
		Unknown: func(ctx context.Context) error { return s.uncertain(ctx, nil) },
	}
}

// room begins a request of at least two plans. What the first relies on is looked at with the second: every plan is
// asked whether it could be a first.
func room() func(*plan) bool {
	var first *plan
	var taken footprint
	n, size, width := 0, 0, 0
	return func(p *plan) bool {
		n, size, width = n+1, size+p.size(), max(width, p.width())
		alone := n == 1 && (2*size > maxSharedBytes || len(p.ops) > maxSharingOps)
		switch fits := !alone && size <= maxSharedBytes && max(n, 2)+width <= maxTxnOps; {
		case !fits:
			return false
		case first == nil:
			first = p
			return true
		case taken == nil:
			taken = footprint{}
			taken.add(first)
		}
		return taken.add(p)
	}
}

// A footprint is the nodes that commits rely on: true where they write them.
type footprint map[string]bool

// add takes a plan in, unless it writes what another relies on, or the other way round.
func (f footprint) add(p *plan) bool {
	for _, op := range p.ops {
		written, known := f[op.Path]
		if written || known && op.Kind != registry.OpCheck || f[parentOf(op.Path)] {
			return false
		}
	}
	for _, op := range p.ops {
		f[op.Path] = f[op.Path] || op.Kind != registry.OpCheck
		if parent := parentOf(op.Path); op.Kind != registry.OpCheck && !f[parent] {
			f[parent] = false
		}
	}
	return true
}

// size is about what the plan's values and paths need in a request.
func (p *plan) size() int {
	n := 0
	for _, op := range p.ops {
		n += 2*len(op.Path) + len(op.Value)
	}
	return n
}

// width is how many operations the service counts.
func (p *plan) width() int {
	return max(len(p.compares), len(p.writes), len(p.reads))
}

func (s *session) sendAlone(ctx context.Context, p *plan) (answer, error) {
	resp, err := s.send(ctx, p.request())
	if err != nil {
		return answer{}, err
	}
	return answer{resp.Succeeded, resp.Responses, registry.Revision(resp.Header.GetRevision())}, nil
}

// sendTogether sends plans as one transaction. What the service refuses as a whole, for
// one key that it denies, it has not done.
func (s *session) sendTogether(all []*plan) (answers []answer, refused bool, err error) {
	txn := &pb.TxnRequest{Success: make([]*pb.RequestOp, len(all))}
	for i, p := range all {
		txn.Success[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: p.request()}}
	}
	resp, err := s.send(s.life, txn)
	if err != nil {
		return nil, !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrSessionLost), err
	}
	answers = make([]answer, len(all))
	for i, r := range resp.Responses {
		own := r.GetResponseTxn()
		answers[i] = answer{own.GetSucceeded(), own.GetResponses(), registry.Revision(resp.Header.GetRevision())}
	}
	return answers, false, nil
}

// sharingReads is how reads share a request: as one transaction, at one revision, which is later than each of them was
// asked for. One that is refused, or that fails, spoils it for all: they are asked again then, each by itself.
func (s *session) sharingReads() share.Config[[]*pb.RequestOp, *pb.TxnResponse] {
	return share.Config[[]*pb.RequestOp, *pb.TxnResponse]{
		Life: s.Lifetime, Alone: s.readAlone, Together: s.readTogether,
		Room: func() func([]*pb.RequestOp) bool {
			n := 0
			return func(reads []*pb.RequestOp) bool { n += len(reads); return n <= maxReads }
		},
		Unknown: s.leftARead, Left: s.leftARead,
	}
}

// leftARead is the error of who waits no longer, for whatever others: his read was to be repeated until then.
func (s *session) leftARead(ctx context.Context) error { return s.explain(gaveUp(ctx, "read", nil)) }

func (s *session) readTogether(all [][]*pb.RequestOp) (answers []*pb.TxnResponse, refused bool, err error) {
	var resp *pb.TxnResponse
	err = s.reg.attempt(s.life, 0, func(ctx context.Context) (err error) {
		resp, err = s.reg.kv.Txn(ctx, &pb.TxnRequest{Success: slices.Concat(all...)}, callOptions...)
		return err
	})
	if err != nil {
		return nil, s.Err() == nil, s.explain(err)
	}
	answers = make([]*pb.TxnResponse, len(all))
	rest := resp.Responses
	for i, reads := range all {
		answers[i] = &pb.TxnResponse{Header: resp.Header, Responses: rest[:len(reads)]}
		rest = rest[len(reads):]
	}
	return answers, false, nil
}
