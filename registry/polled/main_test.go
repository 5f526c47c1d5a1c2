package polled_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

const (
	timeout = 10 * time.Second
	poll    = time.Second / 2
)

var errReset = errors.New("connection reset")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs test with fake time.
func bubble(t *testing.T, test func(t *testing.T, db *ram.Database)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &ram.Database{}) })
}

// elapse lets fake time pass, and what it brings about happen.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// soon is a context for what must come.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*timeout)
	t.Cleanup(cancel)
	return ctx
}

// A line is a store whose requests are counted and can be disturbed.
type line struct {
	polled.Store

	mu     sync.Mutex
	asked  map[string]int
	closed int
	before func(ctx context.Context, request string) error // an error keeps the request from the store
	after  func(ctx context.Context, request string) error // an error takes the place of the answer
}

// disturb sets what happens to requests; nil is nothing.
func (l *line) disturb(before, after func(ctx context.Context, request string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

// counts returns how often what was asked since the last call.
func (l *line) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := maps.Clone(l.asked)
	clear(l.asked)
	return asked
}

func (l *line) pass(ctx context.Context, request string, serve func() error) error {
	l.mu.Lock()
	l.asked[request]++
	before, after := l.before, l.after
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx, request); err != nil {
			return err
		}
	}
	err := serve()
	if after != nil {
		if failed := after(ctx, request); failed != nil {
			return failed
		}
	}
	return err
}

func (l *line) Begin(ctx context.Context, session string, timeout time.Duration) error {
	return l.pass(ctx, "begin", func() error { return l.Store.Begin(ctx, session, timeout) })
}

func (l *line) Beat(ctx context.Context, session string) (rev registry.Revision, err error) {
	err = l.pass(ctx, "beat", func() error {
		rev, err = l.Store.Beat(ctx, session)
		return err
	})
	return rev, err
}

func (l *line) Sessions(ctx context.Context) (all []polled.Session, err error) {
	err = l.pass(ctx, "sessions", func() error {
		all, err = l.Store.Sessions(ctx)
		return err
	})
	return all, err
}

func (l *line) End(ctx context.Context, session string, beat int64) error {
	return l.pass(ctx, "end", func() error { return l.Store.End(ctx, session, beat) })
}

func (l *line) Read(ctx context.Context, paths, dirs []string) (nodes []polled.Node, err error) {
	err = l.pass(ctx, "read", func() error {
		nodes, err = l.Store.Read(ctx, paths, dirs)
		return err
	})
	return nodes, err
}

func (l *line) Commit(ctx context.Context, session string, ops []registry.Op) (rev registry.Revision, err error) {
	err = l.pass(ctx, "commit", func() error {
		rev, err = l.Store.Commit(ctx, session, ops)
		return err
	})
	return rev, err
}

func (l *line) Close() error {
	l.mu.Lock()
	l.closed++
	l.mu.Unlock()
	return l.Store.Close()
}

// hang swallows requests until their callers give up.
func hang(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func refuse(context.Context, string) error { return registry.ErrUnavailable }

// only lets what happens happen to one kind of request.
func only(name string, happens func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, request string) error {
		if request != name {
			return nil
		}
		return happens(ctx, request)
	}
}

// dial returns a registry on a line of its own; it is closed at the end.
func dial(t *testing.T, db *ram.Database) (registry.Registry, *line) {
	t.Helper()
	l := &line{Store: db.Store(), asked: map[string]int{}}
	reg, err := polled.New(l, polled.Config{Name: "ram", Namespace: "shop"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, reg.Close())
		require.NoError(t, reg.Close(), "again")
		require.Equal(t, 1, l.closed, "the store is closed once")
	})
	return reg, l
}

// open is dial with a session.
func open(t *testing.T, db *ram.Database) (registry.Session, *line) {
	t.Helper()
	reg, l := dial(t, db)
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	return ses, l
}

func commit(t *testing.T, s registry.Store, ops ...registry.Op) {
	t.Helper()
	_, err := s.Commit(t.Context(), ops...)
	require.NoError(t, err)
}

// has reports whether a node is in the database, asked past all registries.
func has(t *testing.T, db *ram.Database, path string) bool {
	t.Helper()
	nodes, err := db.Store().Read(t.Context(), []string{path}, nil)
	require.NoError(t, err)
	return len(nodes) > 0
}

func isDone(s registry.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
