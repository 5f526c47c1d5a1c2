package firing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/barrier"
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

// A shown session shows every target at once, as one that is not there.
type shown struct{ unwatched }

func (shown) Follow(_ string, _ registry.Scope, handle func(registry.Event)) {
	go handle(registry.Event{Synced: true})
}

// A counting host counts the functions that are called.
type counting struct {
	idle
	called chan<- struct{}
}

func (h counting) Call(context.Context, *Run) error {
	h.called <- struct{}{}
	return nil
}

func (counting) FireEnded(*Fire) {}

// A bed is a firing of one item, which owns nothing yet, with what it works with.
type bed struct {
	firing  *Firing
	ledger  *ledger.Ledger
	clock   *timer.Clock
	session registry.Session
	place   execution.Place
	set     atomic.Int64 // by how much the wall clock was set, in nanoseconds
	closers []func()
}

func (b *bed) now() time.Time { return time.Now().Add(time.Duration(b.set.Load())) }

// newBed is made in a bubble, and closed there.
func newBed(t *testing.T, host Host, item ledger.Item, settings items.Settings) *bed {
	t.Helper()
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	job, err := layout.New("shop", "job")
	require.NoError(t, err)
	led := ledger.New(1, 1)
	led.Set(0, item)
	value := led.Write(0, ledger.Room{Value: 1 << 20, Ops: 100, Bytes: 1 << 20}).Root
	place := execution.Place{ID: "id", Life: job.Life("id"), Ledger: job.Ledger("id")}
	require.NoError(t, registry.EnsurePath(t.Context(), ses, job.Lives()))
	require.NoError(t, registry.EnsurePath(t.Context(), ses, job.Ledgers()))
	_, err = ses.Commit(t.Context(), registry.CreateEphemeral(place.Life, nil), registry.Create(place.Ledger, value))
	require.NoError(t, err)
	events, pool := dispatch.New(dispatch.Config{Log: slog.New(slog.DiscardHandler)}), workqueue.NewPool(1)
	b := &bed{ledger: led, session: ses, place: place}
	b.clock = timer.New(b.now, func(time.Duration) { b.firing.ClockSet() })
	b.firing = New(Config{
		Host: host, Job: job, Session: shown{unwatched{ses}}, Context: t.Context(), Life: t.Context(), Records: pool,
		Clock: b.clock, Now: b.now, Places: places.New(1, nil), Events: events,
	}, Start{Place: place, Node: b.node(t), Ledger: led, Settings: settings})
	b.closers = []func(){b.firing.Close, b.clock.Close, pool.Close, events.Close, func() { require.NoError(t, reg.Close()) }}
	return b
}

// node is that of the ledger.
func (b *bed) node(t *testing.T) registry.Node {
	t.Helper()
	nodes, err := b.session.Get(t.Context(), b.place.Ledger)
	require.NoError(t, err)
	return nodes[0]
}

func (b *bed) close(t *testing.T) {
	t.Helper()
	for _, f := range b.closers {
		f()
	}
}

// What an instance begins with may owe a fire that its owner before ran as it died. It was begun at once, before anybody
// could say that a listener wants it held up, or that the server is disabled.
func TestNothingBeginsBeforeItIsSaidWhatItGoesBy(t *testing.T) {
	cases := map[string]struct {
		say              func(f *Firing)
		recorded, called bool
	}{
		"nothing is said":          {say: func(*Firing) {}, recorded: true, called: true},
		"a listener is waited for": {say: func(f *Firing) { f.SetBefore(barrier.Rule{On: true, Wait: time.Hour}) }, recorded: true},
		"the server is disabled":   {say: func(f *Firing) { f.SetServer(false) }},
		"the clock is off":         {say: func(f *Firing) { f.SetStill(true) }},
		"another engine leads":     {say: func(f *Firing) { f.SetForeign(true) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				due := time.Now().Add(-time.Second)
				called := make(chan struct{}, 9)
				b := newBed(t, counting{called: called}, ledger.Item{Through: due, Redo: ledger.Redo{Due: due, Tries: 1, Lost: "dead"}},
					items.Settings{Fires: fireless{}, Monitor: true, Failover: true})
				f := b.firing
				changed := func() bool {
					synctest.Wait()
					return b.node(t).Version > 0
				}
				time.Sleep(time.Minute)
				require.False(t, changed(), "nothing is said yet")
				c.say(f)
				time.Sleep(time.Minute)
				require.False(t, changed(), "it owns nothing yet")
				f.Own(b.ledger)
				time.Sleep(time.Minute)
				require.Equal(t, c.recorded, changed())
				require.Equal(t, c.called, len(called) > 0)
				b.close(t)
			})
		})
	}
}
