package memory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/memory"
	"github.com/elasticron/elasticron/registry/retry"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(testing.TB) conformance.Harness { return newHarness() })
}

// harnessTimeout is short, since many cases wait for it, and long against the pauses of a busy machine.
const harnessTimeout = time.Second

// A harness is one server; each of its registries is a client.
type harness struct {
	*memory.Server

	mu    sync.Mutex
	fates map[string]*plan // of the next commit, by session
	known map[string]*memory.Registry
}

// A plan is what becomes of one commit.
type plan struct {
	fate memory.Fate
	hit  chan struct{}
}

func newHarness() *harness {
	h := &harness{
		Server: memory.NewServer(memory.Config{SessionTimeout: harnessTimeout}),
		fates:  map[string]*plan{}, known: map[string]*memory.Registry{},
	}
	h.Intercept(h.decide)
	return h
}

// Light implements conformance.LightHarness.
func (h *harness) Light() bool { return true }

func (h *harness) decide(sessionID string, _ []registry.Op) memory.Fate {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, planned := h.fates[sessionID]
	if !planned {
		return memory.Deliver
	}
	delete(h.fates, sessionID)
	close(p.hit)
	return p.fate
}

func (h *harness) Registry(_ context.Context, tb testing.TB) registry.Registry {
	reg := h.Server.Registry("conformance")
	tb.Cleanup(func() { _ = reg.Close() })
	return reg
}

func (h *harness) RegistryIn(_ context.Context, tb testing.TB, namespace string) registry.Registry {
	reg := h.Server.Registry(namespace)
	tb.Cleanup(func() { _ = reg.Close() })
	return reg
}

func (h *harness) Lacks() map[string]string {
	return map[string]string{"History": "the server keeps the present only"}
}

func (h *harness) Members() int                  { return 1 }
func (h *harness) SessionTimeout() time.Duration { return harnessTimeout }
func (h *harness) Grace() time.Duration          { return harnessTimeout / 2 }
func (h *harness) Faults() conformance.Faults    { return h.faults() }
func (h *harness) Close()                        { h.Intercept(nil) }
func (h *harness) faults() *faults               { return &faults{h} }

// faults are the server's, seen as the suite wants them.
type faults struct{ h *harness }

// client remembers whose session it is: the server forgets it when it is closed.
func (f *faults) client(s registry.Session) (*memory.Registry, error) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if reg := f.h.Client(s.ID()); reg != nil {
		f.h.known[s.ID()] = reg
	}
	if reg := f.h.known[s.ID()]; reg != nil {
		return reg, nil
	}
	return nil, fmt.Errorf("session %s is not known", s.ID())
}

func (f *faults) Expire(s registry.Session) error {
	if !f.h.Expire(s.ID()) {
		return fmt.Errorf("session %s had ended before", s.ID())
	}
	return nil
}

func (f *faults) Drop(s registry.Session) error {
	reg, err := f.client(s)
	if err == nil {
		reg.Drop()
	}
	return err
}

func (f *faults) Blackhole(s registry.Session, d conformance.Direction) (func(), error) {
	reg, err := f.client(s)
	if err != nil {
		return func() {}, err
	}
	heal := func() {}
	if d != conformance.Answers {
		heal = reg.LoseRequests()
	}
	if d == conformance.Requests {
		return heal, nil
	}
	answers := reg.LoseAnswers()
	return func() { answers(); heal() }, nil
}

func (f *faults) Refuse(s registry.Session) (func(), error) {
	reg, err := f.client(s)
	if err != nil {
		return func() {}, err
	}
	return reg.Refuse(), nil
}

func (f *faults) NextCommit(s registry.Session, fate conformance.Fate) (func() bool, error) {
	fates := map[conformance.Fate]memory.Fate{
		conformance.AnswerLost: memory.AnswerLost, conformance.RequestLost: memory.RequestLost,
		conformance.AppliedLate: memory.AppliedLate(conformance.LateBy),
	}
	p := &plan{fate: fates[fate], hit: make(chan struct{})}
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.fates[s.ID()] = p
	return func() bool {
		select {
		case <-p.hit:
			return true
		default:
			return false
		}
	}, nil
}

func (f *faults) Hits(s registry.Session) int {
	reg, err := f.client(s)
	if err != nil {
		return 0
	}
	return reg.Hits()
}

func (f *faults) PauseServer() (func(), error) { return f.h.Pause(), nil }

func (f *faults) RestartServer() error {
	f.h.Restart()
	return nil
}

func (f *faults) Delay(s registry.Session, d time.Duration) (func(), error) {
	reg, err := f.client(s)
	if err != nil {
		return func() {}, err
	}
	return reg.Delay(d), nil
}

func (f *faults) Deny(path string) (func(), error) { return f.h.Deny(path), nil }

// LoseLeader cannot be: there is one server.
func (f *faults) LoseLeader() error { return conformance.ErrUnsupported }

// ForgetHistory has nothing to forget: the server keeps the present only.
func (f *faults) ForgetHistory() error { return nil }

// The repetition of package retry keeps the contract: what it repeats was certainly not applied.
func TestConformanceWithRetries(t *testing.T) {
	conformance.Run(t, func(testing.TB) conformance.Harness { return repeating{newHarness()} })
}

type repeating struct{ *harness }

func (h repeating) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	return h.wrap(tb, h.harness.Registry(ctx, tb))
}

func (h repeating) RegistryIn(ctx context.Context, tb testing.TB, namespace string) registry.Registry {
	return h.wrap(tb, h.harness.RegistryIn(ctx, tb, namespace))
}

func (h repeating) wrap(tb testing.TB, reg registry.Registry) registry.Registry {
	wrapped, err := retry.Wrap(reg, retry.Config{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond, Retries: 5})
	if err != nil {
		tb.Fatal(err)
	}
	return wrapped
}
