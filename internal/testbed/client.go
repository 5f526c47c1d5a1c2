package testbed

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Fate is what becomes of one commit.
type Fate uint8

const (
	// AnswerLost: it is applied at once, and then the connection breaks.
	AnswerLost Fate = iota + 1
	// RequestLost: it is sent and never arrives.
	RequestLost
	// AppliedLate: as RequestLost, but the server gets it LateBy later.
	AppliedLate
)

// LateBy is the delay of AppliedLate.
const LateBy = 3 * time.Second

// A Client is the way of one etcd client to every member of a cluster.
type Client struct {
	ways

	bed *Etcd

	counting sync.Mutex
	requests map[string]int
}

// Endpoints are the addresses that the client must use.
func (c *Client) Endpoints() []string { return c.Addrs() }

// DialOptions make the client's requests known to Requests and NextCommit.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.intercept),
		grpc.WithChainStreamInterceptor(c.interceptStream),
	}
}

// Requests counts what the client has sent since the last call: unary requests
// by method, and the messages of streams by method too.
func (c *Client) Requests() map[string]int {
	c.counting.Lock()
	defer c.counting.Unlock()
	counts := c.requests
	c.requests = nil
	return counts
}

func (c *Client) count(method string) {
	c.counting.Lock()
	defer c.counting.Unlock()
	if c.requests == nil {
		c.requests = map[string]int{}
	}
	c.requests[method]++
}

// dropNoticed is Drop, and waits until the client connects again: whatever it
// sends next is not sent into the broken connections.
func (c *Client) dropNoticed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	for _, p := range c.proxies {
		back := p.nextLink()
		if !p.drop() {
			continue
		}
		select {
		case <-back:
		case <-ctx.Done():
		}
	}
}

// noticeTime bounds how long a client is given to notice a broken connection.
const noticeTime = 2 * time.Second

// Close ends the client's connections for good. The test's end does too.
func (c *Client) Close() { c.close() }

// NextCommit decides the fate of the client's next commit that has none yet.
// hit reports whether a commit has met it.
func (c *Client) NextCommit(f Fate) (hit func() bool) { return c.decide(f) }

func (c *Client) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.count(method)
	txn, ok := req.(*pb.TxnRequest)
	if !ok || len(txn.Compare) == 0 {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	send := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
	switch c.nextFate() {
	case AnswerLost:
		if err := send(); err != nil {
			return err
		}
		c.dropNoticed(ctx)
		return status.Error(codes.Unavailable, "error reading from server: EOF")
	case RequestLost:
		return c.loseRequest(txn, send)
	case AppliedLate:
		late := proto.CloneOf(txn)
		time.AfterFunc(LateBy, func() { c.bed.apply(late) })
		return c.loseRequest(txn, send)
	}
	return send()
}

// loseRequest lets the request leave the client, which thus cannot tell, and
// cuts the connection once it is swallowed.
func (c *Client) loseRequest(txn *pb.TxnRequest, send func() error) error {
	swallowed := make(chan struct{})
	var once sync.Once
	heal := c.each(func(p *Proxy) func() {
		found, heal := p.SwallowUntil(txn.Compare[0].Key)
		go func() {
			select {
			case <-found:
				once.Do(func() { close(swallowed) })
			case <-swallowed:
			}
		}()
		return heal
	})
	result := make(chan error, 1)
	go func() { result <- send() }()
	select {
	case <-swallowed:
		heal() // cuts the connections that lost data
		return <-result
	case err := <-result:
		once.Do(func() { close(swallowed) })
		heal()
		return err
	}
}

func (c *Client) interceptStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return countedStream{stream, func() { c.count(method) }}, nil
}

type countedStream struct {
	grpc.ClientStream
	count func()
}

func (s countedStream) SendMsg(m any) error {
	s.count()
	return s.ClientStream.SendMsg(m)
}
