package testbed

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// ways are one client's proxies, one to each member, and the fates of its commits.
type ways struct {
	proxies []*Proxy

	mu    sync.Mutex
	fates []*commitFate
}

type commitFate struct {
	fate Fate
	met  bool
}

// Addrs are the addresses that the client must use.
func (w *ways) Addrs() []string {
	addrs := make([]string, len(w.proxies))
	for i, p := range w.proxies {
		addrs[i] = p.Addr()
	}
	return addrs
}

// Proxy is the client's way to member i.
func (w *ways) Proxy(i int) *Proxy { return w.proxies[i] }

// afterwards is how long an exchange may go on once its answer is there: acknowledgements.
const afterwards = 50 * time.Millisecond

// Busy waits for the client's next request, a heartbeat at least, and returns
// the way that it took.
func (w *ways) Busy(ctx context.Context) (*Proxy, error) {
	since := time.Now().Add(afterwards)
	latest := since.Add(2 * afterwards) // of a client that never rests every request is the next
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		for _, p := range w.proxies {
			last := p.lastPassed()
			if last.After(since) {
				return p, nil
			}
			if quiet := last.Add(afterwards); quiet.After(since) && quiet.Before(latest) {
				since = quiet
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("testbed: the client sends nothing: %w", ctx.Err())
		}
	}
}

// Drop cuts the client's connections once.
func (w *ways) Drop() {
	for _, p := range w.proxies {
		p.Drop()
	}
}

// Blackhole swallows the client's traffic with every member.
func (w *ways) Blackhole(d Direction) (heal func()) {
	return w.each(func(p *Proxy) func() { return p.Blackhole(d) })
}

// Refuse keeps the client from connecting to any member.
func (w *ways) Refuse() (heal func()) { return w.each((*Proxy).Refuse) }

// Hold stops the client's traffic; nothing is lost.
func (w *ways) Hold() (heal func()) { return w.each((*Proxy).Hold) }

// Delay holds each piece of data back for d, in each direction.
func (w *ways) Delay(d time.Duration) (heal func()) {
	return w.each(func(p *Proxy) func() { return p.Delay(d) })
}

// DelayAnswers holds each piece of what the servers send back for d.
func (w *ways) DelayAnswers(d time.Duration) (heal func()) {
	return w.each(func(p *Proxy) func() { return p.DelayAnswers(d) })
}

// Hits counts the pieces of data, the connections and the commits that faults
// have hit.
func (w *ways) Hits() int {
	n := 0
	for _, p := range w.proxies {
		n += p.Hits()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.fates {
		if f.met {
			n++
		}
	}
	return n
}

// decide gives the next commit that has none a fate. hit reports whether a commit
// has met it.
func (w *ways) decide(f Fate) (hit func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fate := &commitFate{fate: f}
	w.fates = append(w.fates, fate)
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return fate.met
	}
}

func (w *ways) nextFate() Fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.fates {
		if !f.met {
			f.met = true
			return f.fate
		}
	}
	return 0
}

func (w *ways) each(fault func(*Proxy) func()) (heal func()) {
	heals := make([]func(), len(w.proxies))
	for i, p := range w.proxies {
		heals[i] = fault(p)
	}
	return sync.OnceFunc(func() {
		for _, heal := range heals {
			heal()
		}
	})
}

func (w *ways) close() {
	for _, p := range w.proxies {
		p.Close()
	}
}
