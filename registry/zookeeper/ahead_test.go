package zookeeper

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A wideLink is a server that is asked for several nodes at once, all of which have values of one size, and knows how
// much of them is on its way.
type wideLink struct {
	*fakeLink

	size int // of a value

	mu       sync.Mutex
	ahead    int // bytes that are asked for and not answered
	most     int // of them, so far
	requests int
}

func (w *wideLink) asked(nodes int) (answered func()) {
	w.mu.Lock()
	w.requests++
	w.ahead += nodes * w.size
	w.most = max(w.most, w.ahead)
	w.mu.Unlock()
	<-time.After(time.Second)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ahead -= nodes * w.size
	}
}

func (w *wideLink) GetAll(_ context.Context, paths []string) ([]link.Found, error) {
	defer w.asked(len(paths))()
	found := make([]link.Found, len(paths))
	for i := range found {
		found[i] = link.Found{Value: make([]byte, w.size), Stat: &zk.Stat{Czxid: 1}}
	}
	return found, nil
}

func (w *wideLink) Get(context.Context, string, bool) ([]byte, *zk.Stat, error) {
	defer w.asked(1)()
	return make([]byte, w.size), &zk.Stat{Czxid: 1}, nil
}

// since tells what was asked for at once, and in how many requests, and begins anew.
func (w *wideLink) since() (most, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most, requests = w.most, w.requests
	w.most, w.requests = 0, 0
	return most, requests
}

// The answers to heartbeats come behind what was asked for before them: of large values few are asked for at once.
func TestLargeValuesAreAskedForBitByBit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wideLink{fakeLink: newFake(), size: 100}
		s := newSession(newRegistry(Config{}))
		w.notify = s.tracker.notify
		s.begin(w.Lifetime, w)
		paths := make([]string, 256)
		for i := range paths {
			paths[i] = fmt.Sprint("/n", i)
		}
		get := func(n int) (most, requests int, took time.Duration) {
			begun := time.Now()
			nodes, err := s.Get(t.Context(), paths[:n]...)
			require.NoError(t, err)
			for i, node := range nodes {
				require.Equal(t, paths[i], node.Path)
				require.Len(t, node.Value, w.size)
			}
			most, requests = w.since()
			return most, requests, time.Since(begun)
		}
		_, requests, took := get(256)
		require.Equal(t, 8, requests)
		require.Equal(t, 2*time.Second, took, "the first tells how large they are")
		_, requests, took = get(256)
		require.Equal(t, 8, requests)
		require.Equal(t, time.Second, took)

		w.size = 256 << 10
		_, _, _ = get(32)
		most, requests, _ := get(256)
		require.LessOrEqual(t, most, maxAhead+maxAhead/4)
		require.Greater(t, requests, 200)
		f := follow(t, s)
		for _, path := range paths {
			require.NoError(t, f.Add(path, registry.Self))
		}
		synctest.Wait()
		<-time.After(time.Minute)
		most, _ = w.since()
		require.LessOrEqual(t, most, maxAhead+maxAhead/4, "what watches read too")

		w.size = 100
		_, _, _ = get(256)
		_, requests, _ = get(256)
		require.Equal(t, 8, requests, "they are small again")
		w.Lose(lifetime.ErrClosed)
		w.Wait()
	})
}

func follow(t *testing.T, s *session) registry.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context())
	require.NoError(t, err)
	return w
}
