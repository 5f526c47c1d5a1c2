package firing

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/dispatch"
	"github.com/elasticron/elasticron/core/internal/execution"
	"github.com/elasticron/elasticron/core/internal/items"
	"github.com/elasticron/elasticron/core/internal/places"
	"github.com/elasticron/elasticron/core/internal/timer"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A lasting run is what a session before has left behind.
type lasting struct{ end chan struct{} }

func (r lasting) Item() int                 { return 0 }
func (r lasting) First() bool               { return false }
func (r lasting) Enter() bool               { return true }
func (r lasting) Call() error               { <-r.end; return nil }
func (r lasting) Left(error, time.Duration) {}
func (r lasting) Dropped()                  {}

// A fireless schedule never fires.
type fireless struct{}

func (fireless) Next(time.Time) (time.Time, bool)            { return time.Time{}, false }
func (fireless) Prev(time.Time, time.Time) (time.Time, bool) { return time.Time{}, false }

// An unwatched session shows nothing.
type unwatched struct{ registry.Session }

func (unwatched) Follow(string, registry.Scope, func(registry.Event)) {}
func (unwatched) Unfollow(string, registry.Scope)                     {}

// An idle host is told of changes, and of nothing else.
type idle struct{ Host }

func (idle) Changed() {}

// A function that a session before has left behind returns after New has looked, and before anybody can be told to
// unblock its item: it would have been kept until the end of the session.
func TestAnItemIsNotKeptByAFunctionThatReturnedMeanwhile(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	job, err := layout.New("shop", "job")
	require.NoError(t, err)
	held := places.New(1, nil)
	before := lasting{make(chan struct{})}
	held.Submit(before)
	require.Eventually(t, func() bool { return len(held.Running()) == 1 }, 5*time.Second, time.Millisecond)

	events, pool, clock := dispatch.New(dispatch.Config{Log: slog.New(slog.DiscardHandler)}), workqueue.NewPool(1), timer.New(time.Now, func(time.Duration) {})
	t.Cleanup(events.Close)
	t.Cleanup(pool.Close)
	t.Cleanup(clock.Close)
	led := ledger.New(1, 1)
	led.Set(0, ledger.Item{Through: time.Now()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := New(Config{
		Host: idle{}, Job: job, Session: unwatched{ses}, Context: ctx, Life: ctx, Records: pool, Clock: clock, Now: time.Now, Places: held, Events: events,
	}, Start{Place: execution.Place{ID: "id"}, Ledger: led, Settings: items.Settings{Fires: fireless{}}})
	t.Cleanup(f.Close)
	f.Own(led)
	require.True(t, f.machine.Blocked(0))
	f.Unblock(0) // another function of the item has returned, or was not called after all
	require.True(t, f.machine.Blocked(0), "this one runs")
	close(before.end)
	held.Wait()
	require.True(t, f.machine.Blocked(0), "nobody has said so")
	f.Relieve()
	require.False(t, f.machine.Blocked(0))
}
