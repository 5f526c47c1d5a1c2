package testbed

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// pump moves data one way until either end is closed.
func (p *Proxy) pump(l *link, way Direction, from, to net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.pass(l, way, to, buf[:n]) {
			break
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A blackhole swallows the end of a connection as well.
	for (p.swallow[way] > 0 || p.isHeld(l)) && !l.isCut() {
		p.changed.Wait()
	}
	l.cut()
	delete(p.links, l)
	p.changed.Broadcast()
}

// An inspector understands what passes on one connection.
type inspector interface {
	// inspect takes what has arrived, gives what is whole to forward, and returns
	// false when the connection is over.
	inspect(way Direction, data []byte, forward func([]byte) bool) bool
}

func (p *Proxy) pass(l *link, way Direction, to net.Conn, data []byte) bool {
	forward := func(data []byte) bool { return p.forward(l, way, to, data) }
	if l.inspector == nil {
		return forward(data)
	}
	return l.inspector.inspect(way, data, forward)
}

// detach keeps the connection to the server, which then ends with l.cut alone. The
// client hears nothing more; the caller resets its end.
func (p *Proxy) detach(l *link) {
	p.mu.Lock()
	l.detached = true
	p.mu.Unlock()
}

// waitHeld waits while the proxy holds.
func (p *Proxy) waitHeld(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.isHeld(l) && !l.isCut() {
		p.changed.Wait()
	}
}

// forward passes one piece of data on, or does to it what the faults say.
func (p *Proxy) forward(l *link, way Direction, to net.Conn, data []byte) bool {
	p.mu.Lock()
	if way == Requests && l.first == nil {
		l.first = bytes.Clone(data)
	}
	for counted := false; p.isHeld(l) && !l.isCut(); p.changed.Wait() {
		if !counted {
			counted = true
			p.hits++
		}
	}
	if p.swallow[way] > 0 {
		if way == Requests || !l.unasked {
			p.hits++
		}
		l.poisoned = true
		if way == Requests {
			p.search(data)
		}
		p.mu.Unlock()
		return true
	}
	if l.detached && way == Answers {
		p.mu.Unlock()
		return true
	}
	delay := p.delay
	if delay > 0 || way == Answers && p.delayAnswers > 0 {
		p.hits++
	}
	if way == Answers && (p.delayAnswers > 0 || l.late != nil) {
		p.comeLate(l, to, data, p.delayAnswers)
		p.mu.Unlock()
		return true
	}
	if way == Requests {
		p.passed = time.Now()
	}
	p.mu.Unlock()
	if delay > 0 && !l.wait(delay) {
		return false
	}
	_, err := to.Write(data)
	return err == nil || way == Answers && p.isDetached(l)
}

// A piece of data is due some time after it has come.
type piece struct {
	due  time.Time
	data []byte
}

// comeLate passes a piece on when it is due: each is as late as the others, and none overtakes.
// p.mu is held.
func (p *Proxy) comeLate(l *link, to net.Conn, data []byte, delay time.Duration) {
	if l.late == nil {
		l.late = make(chan piece, 1<<12)
		p.work.Go(func() {
			for {
				select {
				case next := <-l.late:
					if !l.wait(time.Until(next.due)) {
						return
					}
					if _, err := to.Write(next.data); err != nil && !p.isDetached(l) {
						return
					}
				case <-l.done:
					return
				}
			}
		})
	}
	select {
	case l.late <- piece{time.Now().Add(delay), bytes.Clone(data)}:
	default: // more than a test makes
		l.cut()
	}
}

func (p *Proxy) isDetached(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.detached
}

// search looks for the needle in what is swallowed. p.mu is held.
func (p *Proxy) search(data []byte) {
	if p.needle == nil {
		return
	}
	p.haystack = append(p.haystack, data...)
	if bytes.Contains(p.haystack, p.needle) {
		close(p.found)
		p.needle = nil
	}
}

// A link is one connection through the proxy.
type link struct {
	client, server net.Conn
	inspector      inspector
	first          []byte // of what the client sends
	poisoned       bool   // it has lost data
	detached       bool   // its client is cut off
	unasked        bool   // what passes to the client answers nothing; of the goroutine of answers
	late           chan piece
	once           sync.Once
	done           chan struct{}
}

func (l *link) cut() {
	l.once.Do(func() {
		close(l.done)
		reset(l.client)
		reset(l.server)
	})
}

func (l *link) isCut() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *link) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

// reset closes without saying goodbye.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
