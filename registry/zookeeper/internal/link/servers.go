package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry/internal/wait"
)

const (
	firstPause = 20 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	// No pause is longer than T/16: a short session may outlive a restart too.
	pausePart = 16
)

// servers says which one is next: the client's host provider. Each client goes round them in an order of its own; after
// a full round without success it pauses, for longer each time.
type servers struct {
	lookup  func(ctx context.Context, host string) ([]string, error)
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
	secure  *tls.Config
	longest time.Duration // a pause

	mu       sync.Mutex
	addrs    []string
	next     int
	attempts int // since the last success
	lookups  int
	errs     map[string]error // the latest of each server
}

func newServers(cfg Config) *servers {
	s := &servers{
		lookup: cfg.Lookup, connect: cfg.Dial, secure: cfg.TLS, addrs: slices.Clone(cfg.Servers), errs: map[string]error{},
		longest: min(max(cfg.SessionTimeout/pausePart, firstPause), maxPause),
	}
	rand.Shuffle(len(s.addrs), func(i, j int) { s.addrs[i], s.addrs[j] = s.addrs[j], s.addrs[i] })
	if s.lookup == nil {
		s.lookup = net.DefaultResolver.LookupHost
	}
	if s.connect == nil {
		s.connect = new(net.Dialer).DialContext
	}
	return s
}

// Init, Len and Connected are zk.HostProvider's; the client knows no more than Open was told.
func (s *servers) Init([]string) error { return nil }
func (s *servers) Len() int            { return len(s.addrs) }
func (s *servers) Connected()          {}

// Next never asks the client to pause: dial does, for less time.
func (s *servers) Next() (server string, retryStart bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server = s.addrs[s.next%len(s.addrs)]
	s.next++
	return server, false
}

func (s *servers) alone() bool { return len(s.addrs) == 1 }

// tried notes why a server was not reached; nil: it was.
func (s *servers) tried(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errs[server] = err; err == nil {
		s.attempts = 0
	}
}

// reasons says of each server why it was not reached, in their order.
func (s *servers) reasons() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, addr := range slices.Sorted(slices.Values(s.addrs)) {
		if err := s.errs[addr]; err != nil {
			all = append(all, fmt.Sprintf("%s: %v", addr, err))
		}
	}
	if len(all) == 0 {
		return errors.New("no server was reached yet")
	}
	return errors.New(strings.Join(all, "; "))
}

// pause is how long to wait before the next attempt.
func (s *servers) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.attempts / len(s.addrs)
	s.attempts++
	if n == 0 {
		return 0
	}
	return wait.Growing(n-1, firstPause, s.longest)
}

// dial connects to a server within limit.
func (s *servers) dial(ctx context.Context, server string, limit time.Duration) (net.Conn, error) {
	if !wait.For(ctx, s.pause()) {
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := s.reach(ctx, server)
	if err != nil {
		s.tried(server, err)
		return nil, err
	}
	return raw, nil
}

func (s *servers) reach(ctx context.Context, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addr, err := s.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	raw, err := s.connect(ctx, "tcp", net.JoinHostPort(addr, port))
	if err != nil || s.secure == nil {
		return raw, err
	}
	secure := s.secure
	if secure.ServerName == "" {
		secure = secure.Clone()
		secure.ServerName = host
	}
	conn := tls.Client(raw, secure)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return conn, nil
}

// resolve takes the addresses of a name in turn.
func (s *servers) resolve(ctx context.Context, host string) (string, error) {
	if net.ParseIP(host) != nil {
		return host, nil
	}
	found, err := s.lookup(ctx, host)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("lookup %s: no address", host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	return found[(s.lookups-1)%len(found)], nil
}
