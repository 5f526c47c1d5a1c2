package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	sqlite "github.com/elasticron/elasticron/examples/adapter"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	conformance.Run(t, func(tb testing.TB) conformance.Harness { return newHarness(tb) })
}

// sessionTimeout is short, since many cases wait for it, and long against the
// pauses of a busy machine.
const sessionTimeout = 2500 * time.Millisecond

// A harness is one server; each of its registries is a client on a wire of its own.
type harness struct {
	*server
	tb testing.TB

	// guarded by mu
	wires []*wire
	of    map[string]*wire // by session
}

func newHarness(tb testing.TB) *harness {
	h := &harness{tb: tb, of: map[string]*wire{}, server: &server{
		// That the machine's power may take the last commits along is no matter here.
		dsn:  "file:" + filepath.Join(tb.TempDir(), "registry.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)",
		stop: make(chan struct{}),
	}}
	require.NoError(tb, h.start())
	return h
}

func (h *harness) start() error {
	db, err := sql.Open("sqlite", h.dsn)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.db, h.statements = db, map[string]*sql.Stmt{}
	return nil
}

func (h *harness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	w := &wire{server: h.server, conns: map[*conn]struct{}{}, fates: map[string]*fate{}}
	h.mu.Lock()
	h.wires = append(h.wires, w)
	h.mu.Unlock()
	reg, err := sqlite.New(ctx, sql.OpenDB(w), "conformance", sessionTimeout)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	tb.Cleanup(func() { _ = reg.Close() })
	return &client{reg, h, w}
}

func (h *harness) Members() int                  { return 1 }
func (h *harness) SessionTimeout() time.Duration { return sessionTimeout }
func (h *harness) Grace() time.Duration          { return sessionTimeout } // two heartbeats, and room
func (h *harness) Faults() conformance.Faults    { return (*faults)(h) }

func (h *harness) Close() {
	close(h.stop)
	h.serving.Wait()
	require.NoError(h.tb, h.db.Close())
}

// A client remembers which sessions are its own.
type client struct {
	registry.Registry
	harness *harness
	wire    *wire
}

func (c *client) Open(ctx context.Context) (registry.Session, error) {
	s, err := c.Registry.Open(ctx)
	if err == nil {
		c.harness.mu.Lock()
		defer c.harness.mu.Unlock()
		c.harness.of[s.ID()] = c.wire
	}
	return s, err
}

type faults harness

// change acts on the wire of s and returns what acts on it once more.
func (f *faults) change(s registry.Session, begin, end func(*wire)) (heal func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.of[s.ID()]
	begin(w)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		end(w)
	})
}

// Expire does what another client does to a session that is silent.
func (f *faults) Expire(s registry.Session) error {
	result, err := f.db.Exec("DELETE FROM sessions WHERE id = ?", s.ID())
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n == 0 {
		return fmt.Errorf("session %s had ended before", s.ID())
	}
	return nil
}

func (f *faults) Drop(s registry.Session) error {
	f.change(s, (*wire).cut, nil)
	return nil
}

func (f *faults) Blackhole(s registry.Session, d conformance.Direction) (func(), error) {
	swallow := func(w *wire, more int) {
		if d != conformance.Answers {
			w.swallowRequests += more
		}
		if d != conformance.Requests {
			w.swallowAnswers += more
		}
	}
	return f.change(s, func(w *wire) { swallow(w, 1) }, func(w *wire) {
		swallow(w, -1)
		for c := range w.conns { // as the ends find out that they do not agree any more
			if c.lossy {
				c.cut()
			}
		}
	}), nil
}

func (f *faults) Refuse(s registry.Session) (func(), error) {
	return f.change(s, func(w *wire) { w.refuses++; w.cut() }, func(w *wire) { w.refuses-- }), nil
}

func (f *faults) NextCommit(s registry.Session, kind conformance.Fate) (func() bool, error) {
	planned := &fate{kind: kind}
	f.change(s, func(w *wire) { w.fates[s.ID()] = planned }, nil)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return planned.hit
	}, nil
}

func (f *faults) Hits(s registry.Session) (hits int) {
	f.change(s, func(w *wire) { hits = w.hits }, nil)
	return hits
}

func (f *faults) PauseServer() (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused++; f.paused == 1 {
		f.resumed = make(chan struct{})
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.paused--; f.paused == 0 {
			close(f.resumed)
		}
	}), nil
}

// RestartServer cuts everybody off, closes the file, and opens it again.
func (f *faults) RestartServer() error {
	f.mu.Lock()
	db := f.db
	f.db = nil
	for _, w := range f.wires {
		w.cut()
	}
	f.mu.Unlock()
	if err := db.Close(); err != nil {
		return err
	}
	return (*harness)(f).start()
}

// LoseLeader cannot be: there is one server.
func (f *faults) LoseLeader() error { return conformance.ErrUnsupported }

// ForgetHistory has nothing to forget: the tables hold the present only.
func (f *faults) ForgetHistory() error { return nil }
