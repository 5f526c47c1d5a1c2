package admin_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/request"
)

// causes are why contexts of runs have ended, by fire and item.
type causes struct {
	free chan struct{}
	mu   sync.Mutex
	all  map[time.Time]map[int]error
}

func newCauses() *causes { return &causes{free: make(chan struct{})} }

// run goes on until its context ends, or until the test lets all go.
func (c *causes) run(ctx context.Context, s core.Shard) error {
	select {
	case <-ctx.Done():
	case <-c.free:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[time.Time]map[int]error{}
	}
	if c.all[s.Due] == nil {
		c.all[s.Due] = map[int]error{}
	}
	c.all[s.Due][s.Item] = context.Cause(ctx)
	return ctx.Err()
}

func (c *causes) of(due time.Time, item int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[due][item]
}

func TestOneRunIsKilled(t *testing.T) {
	onEach(t, func(b *bed) {
		a, c := b.start("a", "127.0.0.1", everySecond), b.start("c", "127.0.0.2", everySecond)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		why := newCauses()
		defer close(why.free)
		a.onRun(why.run)
		c.onRun(why.run)
		b.until("all items run", func() bool { return len(a.State().Jobs[0].Running)+len(c.State().Jobs[0].Running) == 4 })
		items, err := b.Items(b.Context(), "hello")
		require.NoError(b, err)
		due := items[2].Run
		require.False(b, due.IsZero())
		require.ErrorIs(b, b.Kill(b.Context(), "hello", admin.Kill{Item: 2, Due: due.Add(time.Second)}), admin.ErrNotRunning)
		require.ErrorIs(b, b.Kill(b.Context(), "hello", admin.Kill{Item: 4, Due: due}), admin.ErrNoItem)
		require.ErrorIs(b, b.Kill(b.Context(), "nobody", admin.Kill{Item: 2, Due: due}), admin.ErrNoJob)

		require.NoError(b, b.Kill(b.Context(), "hello", admin.Kill{Item: 2, Due: due, By: "night shift"}))
		ended := func(e event.ItemEnded) bool { return e.Item == 2 && e.Due.Equal(due) }
		var end event.ItemEnded
		b.until("it has ended", func() bool {
			var in, elsewhere bool
			if end, in = told(a, ended); !in {
				end, elsewhere = told(c, ended)
			}
			return in || elsewhere
		})
		killed, is := errors.AsType[*request.KilledError](end.Err)
		require.True(b, is, "%v", end.Err)
		require.Equal(b, "night shift", killed.By)
		require.ErrorIs(b, why.of(due, 2), error(killed))
		for _, other := range []int{0, 1, 3} {
			require.NoError(b, why.of(items[other].Run, other), "item %d goes on", other)
		}
		b.until("the item's next fire runs", func() bool {
			items, err := b.Items(b.Context(), "hello")
			return err == nil && items[2].Run.After(due)
		})
		require.ErrorIs(b, b.Kill(b.Context(), "hello", admin.Kill{Item: 2, Due: due}), admin.ErrNotRunning)
	})
}

func TestARunThatWasAskedForIsKilled(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", hourly)
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 4}) })
		why := newCauses()
		defer close(why.free)
		a.onRun(why.run)
		id, err := b.Trigger(b.Context(), "hello", request.Request{Items: []int{1, 3}})
		require.NoError(b, err)
		b.until("it runs", func() bool { return len(a.State().Jobs[0].Running) == 2 })
		at := a.ranOf(1)[0].Due
		for _, n := range []int{1, 3} {
			require.NoError(b, b.Kill(b.Context(), "hello", admin.Kill{Item: n, Due: at, By: "ops"}))
		}
		result, err := b.Await(b.Context(), "hello", id)
		require.NoError(b, err)
		require.Equal(b, []request.Outcome{request.Failed, request.Failed}, outcomes(result))
		require.Equal(b, "killed by ops", result.Items[0].Text)

		// The leader deletes what has counted for a minute.
		left := func() int {
			names, err := b.store.Children(b.Context(), "/elasticron/shop/hello/inforce")
			require.NoError(b, err)
			kills := 0
			for _, name := range names {
				if strings.HasPrefix(name, "kill@") {
					kills++
				}
			}
			return kills
		}
		require.Equal(b, 2, left())
		<-time.After(70 * time.Second)
		require.Zero(b, left())
	})
}

// A run whose instance dies before it has heard of its end is ended where it begins again.
func TestAKillFollowsItsRun(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Failover, cfg.Shards = true, 1
		a := b.start("a", "127.0.0.1", cfg)
		b.until("it has the item", func() bool { return spread(map[*instance]int{a: 1}) })
		stuck, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		a.onRun(func(context.Context, core.Shard) error { once.Do(func() { close(stuck) }); <-release; return nil })
		<-stuck
		c := b.start("c", "127.0.0.2", cfg)
		why := newCauses()
		defer close(why.free)
		c.onRun(why.run)
		items, err := b.Items(b.Context(), "hello")
		require.NoError(b, err)
		due := items[0].Run
		require.NoError(b, b.Kill(b.Context(), "hello", admin.Kill{Item: 0, Due: due}))
		require.True(b, b.expire(a.State().Session))
		b.until("it was ended at c", func() bool { return why.of(due, 0) != nil })
		require.EqualError(b, why.of(due, 0), "killed")
		close(release)
	})
}
