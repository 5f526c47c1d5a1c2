package core_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// gather collects the shards of runs.
type gather struct {
	mu     sync.Mutex
	shards []core.Shard
}

func (g *gather) Run(_ context.Context, s core.Shard) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shards = append(g.shards, s)
	return nil
}

func (g *gather) all() []core.Shard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shards)
}

// Every run has a task id of its own, in five parts as ElasticJob's.
func TestShardSaysWhatItIs(t *testing.T) {
	inBubble(t, func(b *bed) {
		g := &gather{}
		b.start("a", g, everySecond)
		b.until("it fires", func() bool { return len(g.all()) >= 3*everySecond.Shards })
		seen := map[string]bool{}
		for _, s := range g.all() {
			require.False(b, seen[s.TaskID], s.TaskID)
			seen[s.TaskID] = true
			parts := strings.Split(s.TaskID, "@-@")
			require.Len(b, parts, 5, s.TaskID)
			require.Equal(b, everySecond.Name, parts[0])
			require.Equal(b, "READY", parts[2])
			require.Equal(b, core.SourceSchedule, s.Source)
			require.Equal(b, 1, s.Attempt)
			require.NotNil(b, s.Yield)
		}
	})
}

// What came due while nobody could run it says so.
func TestShardOfAMadeUpFire(t *testing.T) {
	inBubble(t, func(b *bed) {
		g := &gather{}
		var ahead atomic.Int64
		clock := core.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		b.start("a", g, everySecond, clock)
		b.until("it fires", func() bool { return len(g.all()) > 0 })
		ahead.Store(int64(3 * time.Second))
		b.until("it made up", func() bool {
			return slices.ContainsFunc(g.all(), func(s core.Shard) bool { return s.Source == core.SourceMisfire })
		})
	})
}

// Yield is closed when the scheduler stops, and the context is not cancelled by that.
func TestYieldAtStop(t *testing.T) {
	onEach(t, func(b *bed) {
		running, ended := make(chan struct{}, 8), make(chan error, 8)
		long := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			running <- struct{}{}
			<-s.Yield
			ended <- ctx.Err()
			return nil
		})
		a := b.start("a", long, everySecond)
		<-running
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(b, a.Stop(ctx))
		require.NoError(b, <-ended)
	})
}

// Yield is closed when the leader wants the item elsewhere, and only of those items.
func TestYieldWhenWantedElsewhere(t *testing.T) {
	onEach(t, func(b *bed) {
		var mu sync.Mutex
		asked := map[int]bool{}
		running := make(chan struct{}, 8)
		long := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			running <- struct{}{}
			select {
			case <-s.Yield:
				mu.Lock()
				defer mu.Unlock()
				asked[s.Item] = true
			case <-ctx.Done():
			}
			return nil
		})
		a := b.start("a", long, everySecond)
		for range everySecond.Shards {
			<-running
		}
		b.start("b", newWitness(), everySecond)
		b.until("half of the items are given up", func() bool {
			return len(a.job().Items) == everySecond.Shards/2
		})
		mu.Lock()
		defer mu.Unlock()
		require.Len(b, asked, everySecond.Shards/2)
	})
}

// A job that disables itself begins nothing more anywhere, and says why.
func TestDisableJob(t *testing.T) {
	onEach(t, func(b *bed) {
		var once sync.Once
		failed := make(chan error, 1)
		self := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			once.Do(func() { failed <- s.DisableJob(ctx, "the table\nis full") })
			return nil
		})
		a := b.start("a", self, everySecond)
		c := b.start("c", self, everySecond)
		require.NoError(b, <-failed)
		const why = "the job is disabled in its configuration: the table is full"
		for _, in := range []*instance{a, c} {
			b.until("it is disabled", func() bool { return in.job().Disabled == why })
			b.until("it is told", func() bool {
				return slices.ContainsFunc(of[event.Warning](in), func(e event.Warning) bool {
					return strings.HasPrefix(e.Problem, why)
				})
			})
		}
		b.setConfig(a, "disabled: true", "disabled: false")
		b.until("it runs again", func() bool { return a.job().Disabled == "" })
	})
}

// A Shard that no scheduler made says nothing, and does not panic.
func TestShardWithoutScheduler(t *testing.T) {
	var s core.Shard
	s.Warn("x", nil)
	s.Stuck(time.Second, "")
	require.EqualError(t, s.DisableJob(t.Context(), "x"), "core: disable job: no scheduler runs this item")
}
