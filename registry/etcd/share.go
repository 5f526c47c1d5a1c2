package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/elasticron/elasticron/registry"
)

const (
	// maxUnderWay commits of a session are sent one by one; those that come meanwhile
	// share the next request.
	maxUnderWay = 8
	// A request that is shared grows no larger than this: it holds up what comes after
	// it.
	maxSharedBytes = 64 << 10
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

// A rider is a commit that waits for a request that it can share.
type rider struct {
	plan  *plan
	size  int           // in bytes
	width int           // in operations, as the service counts them
	turn  chan struct{} // has one element once the rider, alone after all, may send for itself
	got   answer
	err   error
	done  chan struct{} // closed once got and err are set, by who has sent for it

	// Guarded by the crowd.
	queued, alone bool
}

// A crowd is the commits of a session that are under way at once. They share a
// request as transactions of one transaction, of which each compares, is applied
// and is refused for itself. etcd compares all of them before it applies the first,
// so none may touch what another relies on.
type crowd struct {
	mu       sync.Mutex
	underWay int       // requests, for one of which to end the others wait
	waiting  []*rider  // who get on with each other
	taken    footprint // of those who wait, and of some who have withdrawn
}

// A turn is how a plan is to be sent.
type turn uint8

const (
	now      turn = iota // at once; leave must follow
	apart                // at once, for it is too large or does not get on with those who wait; leave must not follow
	together             // with those who wait
)

func (c *crowd) enter(p *plan) (turn, *rider) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, width := p.size(), p.width()
	switch {
	case 2*size > maxSharedBytes || 2+width > maxTxnOps: // it would go alone after a wait
		return apart, nil
	case c.underWay < maxUnderWay:
		c.underWay++
		return now, nil
	case !c.taken.add(p):
		return apart, nil
	}
	r := &rider{plan: p, size: size, width: width, queued: true, turn: make(chan struct{}, 1), done: make(chan struct{})}
	c.waiting = append(c.waiting, r)
	return together, r
}

// leave ends a request, and returns those who go next, together.
func (c *crowd) leave() []*rider {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay--
	if c.underWay >= maxUnderWay || len(c.waiting) == 0 {
		return nil
	}
	c.underWay++
	return c.board()
}

// board takes the first that waits, and as many after it as fit. c.mu is held.
func (c *crowd) board() []*rider {
	n, size, width := 0, 0, 0
	for _, r := range c.waiting {
		size, width = size+r.size, max(width, r.width)
		if n > 0 && (size > maxSharedBytes || n+1+width > maxTxnOps) {
			break
		}
		r.queued = false
		n++
	}
	going := c.waiting[:n:n]
	going[0].alone = n == 1
	c.waiting = slices.Clone(c.waiting[n:])
	c.taken = footprint{}
	for _, r := range c.waiting {
		c.taken.add(r.plan)
	}
	return going
}

// withdraw takes back what has not been sent. turn: leave must follow.
func (c *crowd) withdraw(r *rider) (ok, turn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.queued {
		r.queued = false
		c.waiting = slices.DeleteFunc(c.waiting, func(other *rider) bool { return other == r })
		return true, false
	}
	return r.alone, r.alone
}

// A footprint is what commits write, and what they rely on besides.
type footprint struct{ written, needed map[string]bool }

// add takes a plan in, unless it writes what another relies on, or the other way round.
func (f *footprint) add(p *plan) bool {
	if f.written == nil {
		f.written, f.needed = map[string]bool{}, map[string]bool{}
	}
	for _, op := range p.ops {
		writes := op.Kind != registry.OpCheck
		if f.written[op.Path] || writes && f.needed[op.Path] || f.written[parentOf(op.Path)] {
			return false
		}
	}
	for _, op := range p.ops {
		if op.Kind == registry.OpCheck {
			f.needed[op.Path] = true
			continue
		}
		f.written[op.Path] = true
		f.needed[parentOf(op.Path)] = true
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
	return max(len(p.compares), len(p.writes)+len(p.confirms), len(p.reads))
}

// transact sends a plan, alone or with others. The errors are those of send.
func (s *session) transact(ctx context.Context, p *plan, shares bool) (answer, error) {
	if !shares {
		return s.sendAlone(ctx, p)
	}
	how, r := s.crowd.enter(p)
	switch how {
	case now:
		defer s.next()
		return s.sendAlone(ctx, p)
	case apart:
		return s.sendAlone(ctx, p)
	case together:
	}
	select {
	case <-r.done:
		return r.got, r.err
	case <-r.turn:
		defer s.next()
		return s.sendAlone(ctx, p)
	case <-ctx.Done():
	case <-s.done:
	}
	ok, turn := s.crowd.withdraw(r)
	if turn {
		s.next()
	}
	if ok {
		return answer{}, s.alive(ctx)
	}
	if s.Err() != nil {
		<-r.done // no request outlives the session
		return r.got, r.err
	}
	select {
	case <-r.done: // both: what is known is better
		return r.got, r.err
	default:
		return answer{}, s.uncertain(ctx, nil)
	}
}

// next lets those who wait go.
func (s *session) next() {
	going := s.crowd.leave()
	switch {
	case len(going) == 0:
		return
	case len(going) == 1:
		going[0].turn <- struct{}{}
		return
	case s.join(func() { s.sendTogether(going) }):
		return
	}
	for _, r := range going { // the session has ended
		r.err = s.Err()
		close(r.done)
	}
}

func (s *session) sendAlone(ctx context.Context, p *plan) (answer, error) {
	resp, err := s.send(ctx, p.request())
	if err != nil {
		return answer{}, err
	}
	return answer{resp.Succeeded, resp.Responses, registry.Revision(resp.Header.GetRevision())}, nil
}

// sendTogether sends what was boarded. What the service refuses as a whole is sent
// again one by one: none of it was done, and whose fault it was is theirs to find out.
func (s *session) sendTogether(all []*rider) {
	defer s.next()
	txn := &pb.TxnRequest{Success: make([]*pb.RequestOp, len(all))}
	for i, r := range all {
		txn.Success[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r.plan.request()}}
	}
	resp, err := s.send(s.life, txn)
	known := err != nil && !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrSessionLost)
	for i, r := range all {
		switch {
		case known:
			r.got, r.err = s.sendAlone(s.life, r.plan)
		case err != nil:
			r.err = err
		default:
			own := resp.Responses[i].GetResponseTxn()
			r.got = answer{own.GetSucceeded(), own.GetResponses(), registry.Revision(resp.Header.GetRevision())}
		}
		close(r.done)
	}
}
