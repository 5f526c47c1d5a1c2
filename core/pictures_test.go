package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

// value reads a node; "" is none.
func (b *bed) value(s registry.Store, path string) string {
	b.Helper()
	nodes, err := s.Get(b.Context(), path)
	require.NoError(b, err)
	return string(nodes[0].Value)
}

// A run that lasts is shown to ElasticJob's tools, as long as it does; a short one is not.
func TestARunThatLastsIsShown(t *testing.T) {
	onEach(t, func(b *bed) {
		release := make(chan struct{})
		w := newWitness()
		w.holds(func(ctx context.Context, s core.Shard) error {
			if s.Item == 2 {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return nil
		})
		a := b.start("a", w, everySecond)
		ses := b.open(a)
		shown := b.path(a, "sharding/2/running")
		b.until("it is shown", func() bool { return b.value(ses, shown) == a.job().Instance })
		nodes, err := ses.Get(b.Context(), shown)
		require.NoError(b, err)
		require.True(b, nodes[0].Ephemeral)
		before := w.count()
		b.until("the others go on", func() bool { return w.count() >= before+9 })
		for _, n := range []int{0, 1, 3} {
			require.Empty(b, b.value(ses, b.path(a, fmt.Sprintf("sharding/%d/running", n))))
		}
		close(release)
		b.until("it is shown no more", func() bool { return b.value(ses, shown) == "" })
		a.stop(b)
		require.Empty(b, w.doubled())
	})
}

// Beside an instance of ElasticJob, what runs is shown at once, and what begins is shown
// before its function is called.
func TestBesideElasticJobEveryRunIsShownFirst(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		release := make(chan struct{})
		var unshown []string
		var ses registry.Session
		a := b.prepare("a", w, everySecond)
		java := b.path(a, "instances/127.0.0.9@-@4711")
		w.holds(func(_ context.Context, s core.Shard) error {
			if s.Item == 0 {
				<-release
				return nil
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if ses != nil && b.value(ses, b.path(a, fmt.Sprintf("sharding/%d/running", s.Item))) == "" {
				unshown = append(unshown, fmt.Sprint(s.Item))
			}
			return nil
		})
		require.NoError(b, a.Start(b.Context()))
		b.until("item 0 runs", func() bool { return len(a.job().Running) == 1 })
		watch := b.open(a)
		require.Empty(b, b.value(watch, b.path(a, "sharding/0/running")))
		b.create(a, java, "")
		pause(100 * time.Millisecond)
		require.Equal(b, a.job().Instance, b.value(watch, b.path(a, "sharding/0/running")))
		w.mu.Lock()
		ses = watch
		w.mu.Unlock()
		before := w.count()
		b.until("fires go on", func() bool { return w.count() >= before+12 })
		w.mu.Lock()
		require.Empty(b, unshown)
		ses = nil
		w.mu.Unlock()
		b.remove(a, java)
		close(release)
		pause(2 * time.Second)
		for n := range 4 {
			require.Empty(b, b.value(watch, b.path(a, fmt.Sprintf("sharding/%d/running", n))))
		}
	})
}

// The leader hears at once of the end of an item that it waits for.
func TestAnItemThatIsLeavingMovesWhenItEnds(t *testing.T) {
	for _, lasts := range []time.Duration{300 * time.Millisecond, 3 * time.Second} { // shown or not
		t.Run(lasts.String(), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				release := make(chan struct{})
				cfg := core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 4}
				w.holds(func(context.Context, core.Shard) error {
					<-release
					return nil
				})
				a := b.start("a", w, cfg)
				b.until("all run", func() bool { return len(a.job().Running) == 4 })
				c := b.start("c", w, cfg)
				pause(lasts)
				require.Contains(b, a.job().WaitingFor, "to end")
				require.Empty(b, c.job().Items)
				close(release)
				pause(100 * time.Millisecond)
				require.True(b, allOwned(4, a, c))
				require.Len(b, c.job().Items, 2)
				pause(5 * time.Second)
				a.stop(b)
				c.stop(b)
				require.Empty(b, w.doubled())
			})
		})
	}
}

// What waits for a place when the leader wants it elsewhere is given back: its next owner
// does not wait for what runs here.
func TestAQueuedItemThatIsLeavingMovesAtOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		cfg := core.JobConfig{Name: "hello", Cron: "0/20 * * * * ?", Shards: 4, Concurrency: 1}
		w.holds(func(context.Context, core.Shard) error {
			pause(5 * time.Second)
			return nil
		})
		a := b.start("a", w, cfg)
		b.until("one runs, the others wait", func() bool { return len(a.job().Running) == 1 && len(a.job().Queued) == 3 })
		first := w.first()
		c := b.start("c", w, cfg)
		pause(time.Second)
		require.NotEmpty(b, c.job().Items)
		require.Len(b, c.job().Running, 1, "the fire that was given back")
		require.Len(b, a.job().Running, 1, "what ran before")
		pause(18 * time.Second)
		require.True(b, allOwned(4, a, c))
		a.stop(b)
		c.stop(b)
		h := b.history(w, a, c)
		require.Equal(b, 4, w.count())
		require.Len(b, w.times(func(s core.Shard) bool { return s.Due.Equal(first) }), 4)
		require.Empty(b, h.wrong())
		require.Empty(b, w.doubled())
	})
}
