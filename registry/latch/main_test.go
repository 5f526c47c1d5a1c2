package latch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	dir     = "/locks/one"
	timeout = 6 * time.Second
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a server with fake time. Its sessions take their locks from
// package latch, as those of every adapter that has no wire form of its own.
type world struct {
	*memory.Server
	t       *testing.T
	numbers *numbering // nil: the server numbers no nodes
}

// bubble runs test with nodes that the latch names itself, and with nodes that
// the server numbers.
func bubble(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	t.Run("named", func(t *testing.T) { namedBubble(t, test) })
	t.Run("numbered", func(t *testing.T) { numberedBubble(t, test) })
}

func namedBubble(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, world{memory.NewServer(memory.Config{}), t, nil}) })
}

func numberedBubble(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, world{memory.NewServer(memory.Config{}), t, &numbering{shown: map[string]string{}, stored: map[string]string{}}})
	})
}

// open returns a session that queues up in the world's form.
func (w world) open(ctx context.Context, reg registry.Registry) (registry.Session, error) {
	ses, err := reg.Open(ctx)
	if err != nil || w.numbers == nil {
		return ses, err
	}
	return w.numbers.session(ses), nil
}

// dial returns a client of its own with one session.
func (w world) dial() (*memory.Registry, registry.Session) {
	w.t.Helper()
	reg := w.Registry("test")
	w.t.Cleanup(func() { require.NoError(w.t, reg.Close()) })
	ses, err := w.open(context.Background(), reg)
	require.NoError(w.t, err)
	return reg, ses
}

func (w world) session() registry.Session {
	w.t.Helper()
	_, ses := w.dial()
	return ses
}

// contenders are the values of the nodes in the queue, sorted.
func (w world) contenders() []string {
	w.t.Helper()
	values := []string{}
	for node := range strings.Lines(w.Dump()) {
		if _, value, found := strings.Cut(node, " E "); found && strings.Contains(node, "latch-") {
			values = append(values, strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	slices.Sort(values)
	return values
}

// fates gives the commits that make or delete a contender their fates in turn,
// all others none.
func (w world) fates(kind registry.OpKind, fates ...memory.Fate) {
	var mu sync.Mutex
	w.Intercept(func(_ string, ops []registry.Op) memory.Fate {
		mu.Lock()
		defer mu.Unlock()
		if len(fates) == 0 || ops[0].Kind != kind || !strings.Contains(ops[0].Path, "latch-") {
			return memory.Deliver
		}
		fate := fates[0]
		fates = fates[1:]
		return fate
	})
}

func (w world) lock(ses registry.Session) registry.Lock {
	w.t.Helper()
	lock, err := ses.Lock(context.Background(), dir, []byte(ses.ID()))
	require.NoError(w.t, err)
	return lock
}

// An attempt is a call of Lock that waits.
type attempt struct {
	lock   registry.Lock
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

func (w world) begin(ses registry.Session) *attempt {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(a.done)
		defer cancel()
		a.lock, a.err = ses.Lock(ctx, dir, []byte(ses.ID()))
	}()
	synctest.Wait()
	return a
}

func (a *attempt) over() bool {
	synctest.Wait()
	return closed(a.done)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func release(t testing.TB, lock registry.Lock) {
	t.Helper()
	require.NoError(t, lock.Release(context.Background()))
	require.True(t, closed(lock.Lost()))
}

// held reports whether the guard of lock still passes.
func held(t testing.TB, s registry.Store, lock registry.Lock) bool {
	t.Helper()
	_, err := s.Commit(context.Background(), lock.Guard())
	if !errors.Is(err, registry.ErrNotFound) {
		require.NoError(t, err)
	}
	return err == nil
}
