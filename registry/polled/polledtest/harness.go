package polledtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
)

// defaultTimeout is short, since many cases wait for it, and long against the
// pauses of a busy machine.
const defaultTimeout = 2500 * time.Millisecond

// A harness is one server; each of its registries is a client on a wire of its own.
type harness struct {
	*server

	tb  testing.TB
	cfg polled.Config
}

// New returns a harness for the store that open opens: new and empty at the first call, and with the data of the one
// that was closed before at each call after it. cfg is what the adapter gives to polled.New, its Limits above all. The
// other fields may be left out: SessionTimeout is 2.5 seconds then. The test fails when open does, when the store
// cannot be closed, and when it does otherwise than polled.Store says where the suite would not see it.
func New(tb testing.TB, cfg polled.Config, open func(context.Context) (polled.Store, error)) conformance.Harness {
	tb.Helper()
	cfg.Name = cmp.Or(cfg.Name, "store")
	cfg.Namespace = cmp.Or(cfg.Namespace, "conformance")
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, defaultTimeout)
	cfg.Data = rand.Text() // the clients wake each other, else most cases would only wait for polls
	if err := cfg.Validate(); err != nil {
		tb.Fatalf("polledtest: %v", err)
	}
	h := &harness{server: newServer(open), tb: tb, cfg: cfg}
	if err := h.start(); err != nil {
		tb.Fatalf("polledtest: open the store: %v", err)
	}
	if _, rings := h.store.(polled.Bell); rings {
		h.cfg.Data = "" // it is the bell that wakes them
	}
	if err := audit(h.ctx, h.store); err != nil {
		tb.Errorf("polledtest: the store does not do what polled.Store says of %v", err)
	}
	return h
}

func (h *harness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	return h.RegistryIn(ctx, tb, h.cfg.Namespace)
}

func (h *harness) RegistryIn(_ context.Context, tb testing.TB, namespace string) registry.Registry {
	tb.Helper()
	return h.connect(tb, namespace, h.cfg.SessionTimeout)
}

// LateRegistry implements conformance.LateHarness: a short outage ends none of its sessions, however busy the machine is.
func (h *harness) LateRegistry(_ context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	return h.connect(tb, h.cfg.Namespace, max(2*conformance.LateBy, h.cfg.SessionTimeout))
}

func (h *harness) connect(tb testing.TB, namespace string, timeout time.Duration) registry.Registry {
	tb.Helper()
	cfg := h.cfg
	cfg.Namespace, cfg.SessionTimeout = namespace, timeout
	reg, err := polled.New(h.attach(), cfg)
	if err != nil {
		tb.Fatalf("polledtest: %v", err)
	}
	tb.Cleanup(func() { _ = reg.Close() }) // a case may have cut it off
	return reg
}

func (h *harness) Lacks() map[string]string {
	return map[string]string{
		"Deny":    "a store has no rights of its own to take away",
		"History": "a store keeps the present only",
	}
}

func (h *harness) Members() int                  { return 1 }
func (h *harness) SessionTimeout() time.Duration { return h.cfg.SessionTimeout }
func (h *harness) Grace() time.Duration          { return h.cfg.SessionTimeout } // two polls, and room
func (h *harness) Faults() conformance.Faults    { return (*faults)(h.server) }

func (h *harness) Close() {
	if err := h.stop(); err != nil {
		h.tb.Errorf("polledtest: close the store: %v", err)
	}
}
