package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// A slowStore takes as long for an answer as it is told.
type slowStore struct {
	registry.Store

	takes []time.Duration // the last one goes on; below 0: it fails at once
}

func (s *slowStore) Get(ctx context.Context, _ ...string) ([]registry.Node, error) {
	took := s.takes[0]
	if len(s.takes) > 1 {
		s.takes = s.takes[1:]
	}
	if took < 0 {
		return nil, registry.ErrUnavailable
	}
	select {
	case <-time.After(took):
		return make([]registry.Node, 1), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What took too long is told for as long as somebody waited for it, and what is still waited for too.
func TestWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &witness{every: 50 * time.Millisecond, most: 250 * time.Millisecond}
		s := &slowStore{takes: []time.Duration{0, 250 * time.Millisecond, 400 * time.Millisecond, 0, -1, -1, -1, -1, -1, -1, 0, time.Hour}}
		go w.ask(ctx, s)
		start := time.Now()
		longest := func(after time.Duration) time.Duration {
			<-time.After(time.Until(start.Add(after)))
			synctest.Wait()
			return w.longest(start)
		}
		require.Zero(t, longest(350*time.Millisecond), "an answer may take that long")
		require.Equal(t, 300*time.Millisecond, longest(650*time.Millisecond), "it waits for one")
		require.Equal(t, 400*time.Millisecond, longest(800*time.Millisecond), "this came at 750 ms")
		require.Equal(t, 400*time.Millisecond, w.longest(start.Add(750*time.Millisecond)))
		require.Zero(t, w.longest(start.Add(751*time.Millisecond)))
		// Those that fail begin at 850 ms, and the answer comes 300 ms later.
		<-time.After(time.Until(start.Add(1170 * time.Millisecond)))
		require.Equal(t, 300*time.Millisecond, w.longest(start.Add(800*time.Millisecond)))
		<-time.After(10 * time.Second)
		require.Greater(t, w.longest(time.Now()), 9*time.Second)
		require.Zero(t, (*witness)(nil).longest(start))
	})
}

// A case, and a fault's self-test, that fails while the service is slow to others is tried again.
func TestCaseIsTriedAgainWhileTheServiceIsSlow(t *testing.T) {
	w := &witness{most: time.Millisecond, asked: time.Now().Add(-time.Second)}
	h := newFlawedHarness(flaw{})
	shared := &proofs{}
	shared.witness.Store(w)
	tried := 0
	failed, text := execute(t, sharedProofs{h, shared}, testCase{name: "MadeUp", run: func(t *caseRun) {
		if tried++; tried < 3 {
			t.fatalf("no answer")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = time.Time{}
	}})
	require.False(t, failed, text)
	require.Equal(t, 3, tried)
	require.Contains(t, text, "to answer a client to which nothing was done")
}

// The witness asks through a client of its own beside the cases of a group, and leaves nothing behind. A service
// inside the process needs none.
func TestWatchService(t *testing.T) {
	var asked atomic.Int64
	h := openHarness{newFlawedHarness(flaw{}), func(ctx context.Context, reg registry.Registry) (registry.StoreCloser, error) {
		s, err := reg.OpenStore(ctx)
		return countedStore{s, &asked}, err
	}}
	cases := []testCase{{name: "MadeUp", run: func(t *caseRun) {
		t.eventually("three questions", func() string {
			if n := asked.Load(); n < 3 {
				return fmt.Sprint(n)
			}
			return ""
		})
	}}}
	require.EqualValues(t, 1, runGroup(t, h, cases))
	asked.Store(0)
	cases[0].run = func(t *caseRun) { t.still(nil) }
	require.EqualValues(t, 1, runGroup(t, lightHarness{h}, cases))
	require.Zero(t, asked.Load())
}

// An adapter that cannot open a store fails in its cases, and not beside them.
func TestWitnessOfABrokenAdapter(t *testing.T) {
	for name, open := range map[string]func(context.Context, registry.Registry) (registry.StoreCloser, error){
		"refuses": func(context.Context, registry.Registry) (registry.StoreCloser, error) {
			return nil, registry.ErrUnavailable
		},
		"waits": func(ctx context.Context, _ registry.Registry) (registry.StoreCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"panics": func(context.Context, registry.Registry) (registry.StoreCloser, error) { panic("broken") },
	} {
		begun := time.Now()
		w, end := watchService(openHarness{newFlawedHarness(flaw{}), open})
		end()
		end()
		require.Zero(t, w.longest(begun), name)
	}
}

// An openHarness opens stores without a life in its own way.
type openHarness struct {
	Harness

	open func(context.Context, registry.Registry) (registry.StoreCloser, error)
}

func (h openHarness) Registry(ctx context.Context, tb testing.TB) registry.Registry {
	tb.Helper()
	return openRegistry{h.Harness.Registry(ctx, tb), h.open}
}

type openRegistry struct {
	registry.Registry

	open func(context.Context, registry.Registry) (registry.StoreCloser, error)
}

func (r openRegistry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	return r.open(ctx, r.Registry)
}

type countedStore struct {
	registry.StoreCloser

	asked *atomic.Int64
}

func (s countedStore) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	s.asked.Add(1)
	return s.StoreCloser.Get(ctx, paths...)
}

type lightHarness struct{ Harness }

func (lightHarness) Light() bool { return true }
