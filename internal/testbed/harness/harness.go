// Package harness is what the conformance harnesses of the real services share: a
// bed of servers, and a way of its own for each client.
//
//	h := harness.New(harness.Config{
//		Bed: bed, Timeout: harness.SuiteTimeout, Grace: 1500 * time.Millisecond,
//		Connect: func(ctx context.Context, tb testing.TB, timeout time.Duration) (registry.Registry, harness.Way) { … },
//		Expire:  func(id string) error { … },
//	})
//
// Everything of a Harness may be called concurrently. A session that none of its
// registries has opened is an error.
//
// A [Follower], an [Authority] and [Stalls] are what tests on real services share: the
// state that a watcher has told, certificates, and how long the machine stood still. Each
// belongs to one test.
package harness

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
)

const (
	// SessionTimeout is of sessions on real services that no fault takes: short, since many tests
	// wait for it, and long against the pauses of a busy machine, which end no session.
	SessionTimeout = 4 * time.Second
	// SuiteTimeout is shorter: the suite tries a case again whose session ended without a fault.
	SuiteTimeout = 2 * time.Second
)

// A Bed is a cluster of servers.
type Bed interface {
	Members() int
	Pause() (resume func())
	Restart() error
	LoseLeader() error
	Leader() (int, error)
	Close()
}

// A Way is one client's to the members of a bed.
type Way interface {
	Drop()
	Blackhole(d testbed.Direction) (heal func())
	Refuse() (heal func())
	DelayAnswers(d time.Duration) (heal func())
	Busy(ctx context.Context) (*testbed.Proxy, error)
	NextCommit(f testbed.Fate) (hit func() bool)
	Hits() int
	Close()
}

// Config is what differs from service to service.
type Config struct {
	Bed Bed
	// Connect opens a registry on a way of its own. Its sessions last for timeout.
	Connect func(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) (registry.Registry, Way)
	// Expire ends a session at the service.
	Expire func(id string) error
	// Forget makes the service forget old revisions, and Forgot says whether it has; nil
	// where it has none.
	Forget func() error
	Forgot func() bool
	// Deny takes everybody's rights on a node and on what is below it; nil where the servers
	// know none.
	Deny func(path string) (allow func(), err error)
	// Lacks are the faults that this harness has not, with the reasons.
	Lacks map[string]string
	// Timeout of sessions, and Grace of the service.
	Timeout, Grace time.Duration
}

// A Harness implements conformance.Harness, LateHarness, Faults and MemberFaults.
type Harness struct {
	cfg Config

	mu   sync.Mutex
	ways map[string]Way // by session
}

var (
	_ conformance.Harness      = (*Harness)(nil)
	_ conformance.LateHarness  = (*Harness)(nil)
	_ conformance.MemberFaults = (*Harness)(nil)

	_ conformance.DelayFaults      = (*Harness)(nil)
	_ conformance.NamespaceHarness = (*Harness)(nil)
	_ conformance.Lacking          = (*Harness)(nil)
)

// New returns a harness. Its Close closes the bed.
func New(cfg Config) *Harness { return &Harness{cfg: cfg, ways: map[string]Way{}} }

// Registry implements conformance.Harness.
func (h *Harness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	return h.connect(ctx, tb, namespace, h.cfg.Timeout)
}

// RegistryIn implements conformance.NamespaceHarness.
func (h *Harness) RegistryIn(ctx context.Context, tb testing.TB, namespace string) registry.Registry {
	tb.Helper()
	return h.connect(ctx, tb, namespace, h.cfg.Timeout)
}

// LateRegistry implements conformance.LateHarness: an outage that is short against LateBy ends none of its sessions,
// however busy the machine is.
func (h *Harness) LateRegistry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	return h.connect(ctx, tb, namespace, max(2*conformance.LateBy, h.cfg.Timeout))
}

// namespace of the registries, unless a case wants another.
const namespace = "conformance"

func (h *Harness) connect(ctx context.Context, tb testing.TB, namespace string, timeout time.Duration) registry.Registry {
	tb.Helper()
	reg, way := h.cfg.Connect(ctx, tb, namespace, timeout)
	k := &known{Registry: reg, h: h, way: way}
	tb.Cleanup(func() { require.NoError(tb, k.Close()) })
	return k
}

// known remembers which way a session takes.
type known struct {
	registry.Registry

	h   *Harness
	way Way
}

func (k *known) Open(ctx context.Context) (registry.Session, error) {
	s, err := k.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.h.ways[s.ID()] = k.way
	return s, nil
}

// Close ends the client's way too: it has goroutines of its own.
func (k *known) Close() error {
	defer k.way.Close()
	return k.Registry.Close()
}

func (h *Harness) way(s registry.Session) (Way, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.ways[s.ID()]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("session %s is not of this harness", s.ID())
}

// Members implements conformance.Harness.
func (h *Harness) Members() int { return h.cfg.Bed.Members() }

// SessionTimeout implements conformance.Harness.
func (h *Harness) SessionTimeout() time.Duration { return h.cfg.Timeout }

// Grace implements conformance.Harness.
func (h *Harness) Grace() time.Duration { return h.cfg.Grace }

// Faults implements conformance.Harness.
func (h *Harness) Faults() conformance.Faults {
	if h.cfg.Deny != nil {
		return denying{h}
	}
	return h
}

// denying are the faults of servers that know rights.
type denying struct{ *Harness }

var _ conformance.DenyFaults = denying{}

// Deny implements conformance.DenyFaults.
func (d denying) Deny(path string) (func(), error) { return d.cfg.Deny(path) }

// Close closes the bed.
func (h *Harness) Close() { h.cfg.Bed.Close() }

// Expire implements conformance.Faults, as do all that follow.
func (h *Harness) Expire(s registry.Session) error { return h.cfg.Expire(s.ID()) }

// Drop cuts the client's connections.
func (h *Harness) Drop(s registry.Session) error {
	w, err := h.way(s)
	if err == nil {
		w.Drop()
	}
	return err
}

// Blackhole swallows the client's traffic.
func (h *Harness) Blackhole(s registry.Session, d conformance.Direction) (func(), error) {
	directions := map[conformance.Direction]testbed.Direction{
		conformance.Both: testbed.Both, conformance.Requests: testbed.Requests, conformance.Answers: testbed.Answers,
	}
	return h.fault(s, func(w Way) func() { return w.Blackhole(directions[d]) })
}

// Delay makes what the client is told late.
func (h *Harness) Delay(s registry.Session, d time.Duration) (func(), error) {
	return h.fault(s, func(w Way) func() { return w.DelayAnswers(d) })
}

// Refuse keeps the client away.
func (h *Harness) Refuse(s registry.Session) (func(), error) { return h.fault(s, Way.Refuse) }

func (h *Harness) fault(s registry.Session, inject func(Way) func()) (func(), error) {
	w, err := h.way(s)
	if err != nil {
		return func() {}, err
	}
	return inject(w), nil
}

// StallMember takes the member that has the client's next heartbeat.
func (h *Harness) StallMember(s registry.Session) (func(), error) {
	w, err := h.way(s)
	if err != nil {
		return func() {}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.cfg.Timeout)
	defer cancel()
	p, err := w.Busy(ctx)
	if err != nil {
		return func() {}, err
	}
	return p.Hold(), nil
}

// NextCommit decides the fate of the client's next commit.
func (h *Harness) NextCommit(s registry.Session, f conformance.Fate) (func() bool, error) {
	fates := map[conformance.Fate]testbed.Fate{
		conformance.AnswerLost: testbed.AnswerLost, conformance.RequestLost: testbed.RequestLost, conformance.AppliedLate: testbed.AppliedLate,
	}
	w, err := h.way(s)
	if err != nil {
		return nil, err
	}
	return w.NextCommit(fates[f]), nil
}

// Hits counts what faults have done to the client.
func (h *Harness) Hits(s registry.Session) int {
	w, err := h.way(s)
	if err != nil {
		return 0
	}
	return w.Hits()
}

// PauseServer holds everything between clients and members.
func (h *Harness) PauseServer() (func(), error) { return h.cfg.Bed.Pause(), nil }

// RestartServer restarts every member on its data.
func (h *Harness) RestartServer() error { return h.cfg.Bed.Restart() }

// Leader implements conformance.LeaderHarness.
func (h *Harness) Leader() (string, error) {
	i, err := h.cfg.Bed.Leader()
	return strconv.Itoa(i), err
}

// Forgot implements conformance.HistoryHarness: what keeps no history has nothing to forget.
func (h *Harness) Forgot() bool { return h.cfg.Forgot == nil || h.cfg.Forgot() }

// Lacks implements conformance.Lacking.
func (h *Harness) Lacks() map[string]string { return h.cfg.Lacks }

// LoseLeader makes another member the leader.
func (h *Harness) LoseLeader() error { return h.cfg.Bed.LoseLeader() }

// ForgetHistory makes the service forget old revisions.
func (h *Harness) ForgetHistory() error {
	if h.cfg.Forget == nil {
		return nil
	}
	return h.cfg.Forget()
}
