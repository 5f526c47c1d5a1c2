package testbed

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Direction is what a blackhole swallows, seen from the client.
type Direction uint8

const (
	// Both swallows requests and answers.
	Both Direction = iota
	// Requests swallows what the client sends.
	Requests
	// Answers swallows what the server sends: its effects stay.
	Answers
)

func (d Direction) covers(way Direction) bool { return d == Both || d == way }

// A Proxy forwards TCP connections to one server and disturbs them on demand.
// Faults add up: each ends with its own heal, which is idempotent.
type Proxy struct {
	listener net.Listener
	work     sync.WaitGroup

	mu           sync.Mutex
	changed      *sync.Cond
	target       string
	links        map[*link]struct{}
	swallow      map[Direction]int // of Requests and of Answers
	held         int
	holds        map[*holding]struct{} // of some connections alone
	refused      int
	delay        time.Duration
	delayAnswers time.Duration // on top, of what the server sends
	hits         int
	passed       time.Time // when the last request passed
	needle       []byte    // to be found among the requests that are swallowed
	haystack     []byte
	found        chan struct{}
	linked       chan struct{} // closed at the next connection, when somebody waits for it
	closed       bool

	// inspect makes the inspector of a new connection; nil: bytes pass as they come.
	inspect func(*link) inspector
}

// NewProxy listens on a free port of the loopback interface.
func NewProxy(target string) (*Proxy, error) { return NewTLSProxy(target, nil) }

// NewTLSProxy is NewProxy for clients that speak TLS; the server is spoken to
// without.
func NewTLSProxy(target string, server *tls.Config) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if server != nil {
		listener = tls.NewListener(listener, server)
	}
	p := &Proxy{
		listener: listener, target: target,
		links: map[*link]struct{}{}, swallow: map[Direction]int{}, holds: map[*holding]struct{}{},
	}
	p.changed = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetTarget is for a server that came back at another address.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// setInspect is for proxies that understand what passes.
func (p *Proxy) setInspect(inspect func(*link) inspector) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inspect = inspect
}

// Hits counts the pieces of data and the connections that faults have hit.
func (p *Proxy) Hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// lastPassed is when the last request passed.
func (p *Proxy) lastPassed() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// Drop cuts every connection once.
func (p *Proxy) Drop() { p.drop() }

// drop reports whether there was a connection.
func (p *Proxy) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	some := len(p.links) > 0
	p.cutAll(func(*link) bool { return true })
	return some
}

// nextLink is closed when the next connection is made.
func (p *Proxy) nextLink() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.linked == nil {
		p.linked = make(chan struct{})
	}
	return p.linked
}

// Blackhole keeps connections open and swallows what passes.
func (p *Proxy) Blackhole(d Direction) (heal func()) {
	return p.fault(func(n int) {
		for _, way := range []Direction{Requests, Answers} {
			if d.covers(way) {
				p.swallow[way] += n
			}
		}
		if n < 0 {
			p.cutAll(func(l *link) bool { return l.poisoned })
		}
	})
}

// Refuse cuts every connection and closes new ones at once.
func (p *Proxy) Refuse() (heal func()) {
	return p.fault(func(n int) {
		p.refused += n
		if n > 0 {
			p.cutAll(func(*link) bool { return true })
		}
	})
}

// Hold stops everything that passes; nothing is lost.
func (p *Proxy) Hold() (heal func()) {
	return p.fault(func(n int) { p.held += n })
}

// HoldSome stops what passes on those connections whose first request matches; nothing
// is lost.
func (p *Proxy) HoldSome(match func(request []byte) bool) (heal func()) {
	h := &holding{match}
	return p.fault(func(n int) {
		if n > 0 {
			p.holds[h] = struct{}{}
		} else {
			delete(p.holds, h)
		}
	})
}

// A holding is one HoldSome.
type holding struct{ match func(request []byte) bool }

// isHeld reports whether nothing passes on a connection. p.mu is held.
func (p *Proxy) isHeld(l *link) bool {
	for h := range p.holds {
		if h.match(l.first) {
			return true
		}
	}
	return p.held > 0
}

// Delay holds each piece of data back for d, in each direction.
func (p *Proxy) Delay(d time.Duration) (heal func()) {
	return p.fault(func(n int) { p.delay += time.Duration(n) * d })
}

// DelayAnswers holds each piece of what the server sends back for d.
func (p *Proxy) DelayAnswers(d time.Duration) (heal func()) {
	return p.fault(func(n int) { p.delayAnswers += time.Duration(n) * d })
}

// SwallowUntil swallows what the client sends until needle was among it, and
// reports that by closing found. heal ends it.
func (p *Proxy) SwallowUntil(needle []byte) (found <-chan struct{}, heal func()) {
	c := make(chan struct{})
	return c, p.fault(func(n int) {
		p.swallow[Requests] += n
		p.needle, p.haystack, p.found = needle, nil, c
		if n < 0 {
			p.needle, p.found = nil, nil
			p.cutAll(func(l *link) bool { return l.poisoned })
		}
	})
}

// fault applies change(1) now and change(-1) at heal.
func (p *Proxy) fault(change func(n int)) (heal func()) {
	apply := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		change(n)
		p.changed.Broadcast()
	}
	apply(1)
	var once sync.Once
	return func() { once.Do(func() { apply(-1) }) }
}

// Close cuts everything and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.cutAll(func(*link) bool { return true })
	p.mu.Unlock()
	_ = p.listener.Close()
	p.work.Wait()
}

// cutAll cuts the connections that match. One whose client is cut off already
// ends by itself. p.mu is held.
func (p *Proxy) cutAll(match func(*link) bool) {
	for l := range p.links {
		if match(l) && (!l.detached || p.closed) {
			p.hits++
			l.cut()
			delete(p.links, l)
		}
	}
	p.changed.Broadcast()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.connect(conn) })
	}
}

// connect waits while the proxy holds, then reaches for the server.
func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	if p.held > 0 {
		p.hits++
	}
	for p.held > 0 && !p.closed {
		p.changed.Wait()
	}
	refused, target := p.refused > 0 || p.closed, p.target
	if p.refused > 0 {
		p.hits++
	}
	p.mu.Unlock()
	if refused {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: server, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inspect != nil {
		l.inspector = p.inspect(l)
	}
	if p.closed || p.refused > 0 {
		l.cut()
		return
	}
	p.links[l] = struct{}{}
	if p.linked != nil {
		close(p.linked)
		p.linked = nil
	}
	p.work.Go(func() { p.pump(l, Requests, client, server) })
	p.work.Go(func() { p.pump(l, Answers, server, client) })
}
