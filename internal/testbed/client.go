package testbed

import (
	"context"
	"fmt"
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
	bed     *Etcd
	proxies []*Proxy

	mu       sync.Mutex
	fates    []*commitFate
	requests map[string]int
}

type commitFate struct {
	fate Fate
	met  bool
}

// Endpoints are the addresses that the client must use.
func (c *Client) Endpoints() []string {
	addrs := make([]string, len(c.proxies))
	for i, p := range c.proxies {
		addrs[i] = p.Addr()
	}
	return addrs
}

// Proxy is the client's way to member i.
func (c *Client) Proxy(i int) *Proxy { return c.proxies[i] }

// Busy waits for the client's next request, a heartbeat at least, and returns
// the way that it took.
func (c *Client) Busy(ctx context.Context) (*Proxy, error) {
	since := time.Now()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		for _, p := range c.proxies {
			if p.lastPassed().After(since) {
				return p, nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("testbed: the client sends nothing: %w", ctx.Err())
		}
	}
}

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
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.requests
	c.requests = nil
	return counts
}

func (c *Client) count(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = map[string]int{}
	}
	c.requests[method]++
}

// Drop cuts the client's connections once.
func (c *Client) Drop() {
	for _, p := range c.proxies {
		p.Drop()
	}
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

// Blackhole swallows the client's traffic with every member.
func (c *Client) Blackhole(d Direction) (heal func()) {
	return c.each(func(p *Proxy) func() { return p.Blackhole(d) })
}

// Refuse keeps the client from connecting to any member.
func (c *Client) Refuse() (heal func()) { return c.each((*Proxy).Refuse) }

// Hold stops the client's traffic; nothing is lost.
func (c *Client) Hold() (heal func()) { return c.each((*Proxy).Hold) }

// Hits counts what faults have done to this client.
func (c *Client) Hits() int {
	n := 0
	for _, p := range c.proxies {
		n += p.Hits()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fates {
		if f.met {
			n++
		}
	}
	return n
}

// NextCommit decides the fate of the client's next commit that has none yet.
// hit reports whether a commit has met it.
func (c *Client) NextCommit(f Fate) (hit func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fate := &commitFate{fate: f}
	c.fates = append(c.fates, fate)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fate.met
	}
}

func (c *Client) nextFate() Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fates {
		if !f.met {
			f.met = true
			return f.fate
		}
	}
	return 0
}

func (c *Client) each(fault func(*Proxy) func()) (heal func()) {
	heals := make([]func(), len(c.proxies))
	for i, p := range c.proxies {
		heals[i] = fault(p)
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

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

// Close ends the client's connections for good. The test's end does too.
func (c *Client) Close() {
	for _, p := range c.proxies {
		p.Close()
	}
}
