package etcd_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/etcd"
)

func TestConformance(t *testing.T) {
	t.Run("OneMember", func(t *testing.T) { prove(t, testbed.StartEtcd, 1) })
	t.Run("ThreeMembers", func(t *testing.T) { prove(t, testbed.StartEtcd, 3) })
}

// What people run is often older than the client: Debian's etcd-server is 3.4.
func TestConformanceOfAnOlderServer(t *testing.T) { prove(t, testbed.StartEtcdProcess, 1) }

func prove(t *testing.T, start func(testing.TB, testbed.Options) *testbed.Etcd, members int) {
	var served string
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		h := &harness{bed: start(tb, testbed.Options{Members: members}), clients: map[string]*testbed.Client{}}
		if status, err := h.bed.Admin().Status(tb.Context(), h.bed.Endpoints()[0]); err == nil {
			served = fmt.Sprintf("served by %d × etcd %s", members, status.Version)
		}
		return h
	})
	t.Log(served)
}

// A harness is a cluster with a way of its own for each client.
type harness struct {
	bed *testbed.Etcd

	mu      sync.Mutex
	clients map[string]*testbed.Client // by session
}

func (h *harness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	client := h.bed.Client()
	reg, err := etcd.Open(ctx, etcd.Config{
		Endpoints: client.Endpoints(), Namespace: "conformance",
		SessionTimeout: h.SessionTimeout(), DialOptions: client.DialOptions(),
	})
	require.NoError(tb, err)
	k := &known{Registry: reg, h: h, client: client}
	tb.Cleanup(func() { require.NoError(tb, k.Close()) })
	return k
}

// known remembers which client a session belongs to.
type known struct {
	registry.Registry
	h      *harness
	client *testbed.Client
}

func (k *known) Open(ctx context.Context) (registry.Session, error) {
	s, err := k.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.h.clients[s.ID()] = k.client
	return s, nil
}

// Close ends the client's way too: it has goroutines of its own.
func (k *known) Close() error {
	defer k.client.Close()
	return k.Registry.Close()
}

func (h *harness) client(s registry.Session) (*testbed.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.clients[s.ID()]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("session %s is not of this harness", s.ID())
}

func (h *harness) Members() int { return h.bed.Members() }

// SessionTimeout leaves several members the time for a restart and an election.
func (h *harness) SessionTimeout() time.Duration {
	if h.Members() > 1 {
		return 2 * sessionTimeout
	}
	return sessionTimeout
}

// Grace covers the server's half-second expiry loop and a busy machine; a new
// leader lets every lease live for a full timeout more.
func (h *harness) Grace() time.Duration {
	grace := 1500 * time.Millisecond
	if h.Members() > 1 {
		grace += h.SessionTimeout()
	}
	return grace
}

func (h *harness) Faults() conformance.Faults { return h }
func (h *harness) Close()                     { h.bed.Close() }

func (h *harness) Expire(s registry.Session) error {
	lease, err := strconv.ParseInt(s.ID(), 16, 64)
	if err != nil {
		return err
	}
	return h.bed.Revoke(lease)
}

func (h *harness) Drop(s registry.Session) error {
	c, err := h.client(s)
	if err == nil {
		c.Drop()
	}
	return err
}

func (h *harness) Blackhole(s registry.Session, d conformance.Direction) (func(), error) {
	ways := map[conformance.Direction]testbed.Direction{
		conformance.Both: testbed.Both, conformance.Requests: testbed.Requests, conformance.Answers: testbed.Answers,
	}
	return h.fault(s, func(c *testbed.Client) func() { return c.Blackhole(ways[d]) })
}

func (h *harness) Refuse(s registry.Session) (func(), error) {
	return h.fault(s, (*testbed.Client).Refuse)
}

func (h *harness) fault(s registry.Session, inject func(*testbed.Client) func()) (func(), error) {
	c, err := h.client(s)
	if err != nil {
		return func() {}, err
	}
	return inject(c), nil
}

// StallMember takes the member that has the next heartbeat.
func (h *harness) StallMember(s registry.Session) (func(), error) {
	c, err := h.client(s)
	if err != nil {
		return func() {}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.SessionTimeout())
	defer cancel()
	p, err := c.Busy(ctx)
	if err != nil {
		return func() {}, err
	}
	return p.Hold(), nil
}

func (h *harness) NextCommit(s registry.Session, f conformance.Fate) (func() bool, error) {
	fates := map[conformance.Fate]testbed.Fate{
		conformance.AnswerLost: testbed.AnswerLost, conformance.RequestLost: testbed.RequestLost, conformance.AppliedLate: testbed.AppliedLate,
	}
	c, err := h.client(s)
	if err != nil {
		return nil, err
	}
	return c.NextCommit(fates[f]), nil
}

func (h *harness) Hits(s registry.Session) int {
	c, err := h.client(s)
	if err != nil {
		return 0
	}
	return c.Hits()
}

func (h *harness) PauseServer() (func(), error) { return h.bed.Pause(), nil }
func (h *harness) RestartServer() error         { return h.bed.Restart() }
func (h *harness) LoseLeader() error            { return h.bed.LoseLeader() }
func (h *harness) ForgetHistory() error         { return h.bed.Compact() }
