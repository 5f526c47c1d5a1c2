package core_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// fireCalls notes what listeners to fires were called for.
type fireCalls struct {
	mu            sync.Mutex
	before, after []core.Fire
	hold          func(ctx context.Context, f core.Fire) error
}

func (x *fireCalls) listen(l core.FireListeners) core.Option {
	note := func(to *[]core.Fire) func(context.Context, core.Fire) error {
		return func(ctx context.Context, f core.Fire) error {
			x.mu.Lock()
			*to = append(*to, f)
			hold := x.hold
			x.mu.Unlock()
			if hold != nil {
				return hold(ctx, f)
			}
			return nil
		}
	}
	l.Before, l.After = note(&x.before), note(&x.after)
	return core.WithFireListeners(everySecond.Name, l)
}

func (x *fireCalls) all() (before, after []core.Fire) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.before), slices.Clone(x.after)
}

func TestListenersOfEachInstance(t *testing.T) {
	onEach(t, func(b *bed) {
		w, of2 := newWitness(), [2]*fireCalls{{}, {}}
		failed := errors.New("by the test")
		w.hold = func(_ context.Context, s core.Shard) error {
			pause(50 * time.Millisecond)
			if s.Item == 1 {
				return failed
			}
			return nil
		}
		var early []core.Shard
		var mu sync.Mutex
		work := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			called := false
			for _, x := range of2 {
				before, _ := x.all()
				called = called || slices.ContainsFunc(before, func(f core.Fire) bool { return f.Instance == s.Instance && f.Due.Equal(s.Due) })
			}
			if !called {
				mu.Lock()
				early = append(early, s)
				mu.Unlock()
			}
			return w.Run(ctx, s)
		})
		a := b.start("a", work, everySecond, of2[0].listen(core.FireListeners{}))
		c := b.start("c", work, everySecond, of2[1].listen(core.FireListeners{}))
		b.until("shared", func() bool { return allOwned(4, a, c) })
		_, had := of2[0].all()
		b.until("some fires", func() bool { _, after := of2[0].all(); return len(after) >= len(had)+5 })
		a.stop(b)
		c.stop(b)
		require.Empty(b, early, "an item was called before its listener")
		for i, in := range []*instance{a, c} {
			before, after := of2[i].all()
			require.Len(b, after, len(before), "Stop waits for the last")
			ended := of[event.FireEnded](in)
			require.Len(b, after, len(ended), "one call for each fire here")
			for n, f := range after {
				require.NotEmpty(b, f.Items)
				require.Equal(b, slices.Contains(f.Items, 1), errors.Is(f.Errs[1], failed))
				require.NotZero(b, f.Took)
				require.Equal(b, 4, f.Total)
				require.True(b, slices.ContainsFunc(ended, func(e event.FireEnded) bool { return e.Due.Equal(f.Due) && slices.Equal(e.Items, f.Items) }), "%d", n)
			}
			require.Len(b, of[event.FireHeard](in), 2*len(after))
		}
	})
}

// What a listener to fires does wrong is told, and changes nothing.
func TestAFireListenerThatFails(t *testing.T) {
	inBubble(t, func(b *bed) {
		w, x := newWitness(), &fireCalls{}
		wrong := errors.New("by the test")
		x.hold = func(ctx context.Context, f core.Fire) error {
			switch f.Due.Second() % 3 {
			case 0:
				return wrong
			case 1:
				panic("by the test")
			default:
				<-ctx.Done()
				return ctx.Err()
			}
		}
		a := b.start("a", w, everySecond, x.listen(core.FireListeners{Timeout: 100 * time.Millisecond}))
		b.until("nine fires", func() bool { return w.count() >= 9*4 })
		a.stop(b)
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
		var errs []error
		for _, e := range of[event.FireHeard](a) {
			errs = append(errs, e.Err)
			if errors.Is(e.Err, context.DeadlineExceeded) {
				require.GreaterOrEqual(b, e.Took, 100*time.Millisecond)
			}
		}
		eachKindOf(b, errs, wrong)
	})
}

// With a fixed delay each item has fires of its own, and so have their listeners; without
// monitoring they are called too.
func TestFireListenersNeedNoRounds(t *testing.T) {
	for _, cfg := range []core.JobConfig{
		{Name: everySecond.Name, Cron: "@delay 1s", Shards: 2},
		{Name: everySecond.Name, Cron: "* * * * * ?", Shards: 2, Monitor: core.MonitorOff},
	} {
		inBubble(t, func(b *bed) {
			w, x := newWitness(), &fireCalls{}
			a := b.start("a", w, cfg, x.listen(core.FireListeners{}))
			b.until("ten runs", func() bool { return w.count() >= 10 })
			a.stop(b)
			before, after := x.all()
			require.Len(b, after, len(before))
			items := 0
			for _, f := range after {
				items += len(f.Items)
			}
			require.Equal(b, w.count(), items)
		})
	}
}

func TestFireListenersAreChecked(t *testing.T) {
	err := everySecond.Validate(core.WithFireListeners(everySecond.Name, core.FireListeners{Timeout: -1}))
	var wrong *core.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "FireListeners.Timeout", wrong.Field)
}

// A name that is written wrong: nobody would ever be called.
func TestListenersOfAJobThatIsNotThereAreTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		x, y := &fireCalls{}, &rounds{}
		cfg := everySecond
		cfg.Name = "other"
		a := b.start("a", newWitness(), cfg, x.listen(core.FireListeners{}), y.listen(everySecond.Name), y.listen(cfg.Name))
		b.until("it is told", func() bool { return len(of[event.Warning](a)) > 0 })
		var told []string
		for _, e := range of[event.Warning](a) {
			told = append(told, e.Job+": "+e.Problem)
		}
		require.Equal(b, []string{everySecond.Name + ": there are listeners for this job, and it has not been added so far; is its name right?"}, told)
	})
}
