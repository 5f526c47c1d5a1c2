package core_test

import (
	"context"

	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// rounds notes for which rounds listeners were called, and what had ended by then.
type rounds struct {
	mu    sync.Mutex
	calls []core.Round
	hold  func(ctx context.Context, r core.Round) error
}

func (x *rounds) after(ctx context.Context, r core.Round) error {
	x.mu.Lock()
	x.calls = append(x.calls, r)
	hold := x.hold
	x.mu.Unlock()
	if hold != nil {
		return hold(ctx, r)
	}
	return nil
}

func (x *rounds) all() []core.Round {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.calls)
}

// listen is the option by which an instance of a job listens.
func (x *rounds) listen(job string) core.Option {
	return core.WithRoundListeners(job, core.RoundListeners{AfterAll: x.after, Again: true, Timeout: 5 * time.Second})
}

// ran counts the items of a fire that have returned.
func (w *witness) ran(due time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.runs {
		for _, s := range of {
			if s.Due.Equal(due) {
				n++
			}
		}
	}
	return n
}

// ordered requires that each round was called for once, in order, and is whole.
func (x *rounds) ordered(b *bed) {
	b.Helper()
	var last time.Time
	for _, r := range x.all() {
		require.True(b, r.Due.After(last), "%v after %v", r.Due, last)
		require.Equal(b, 1, r.Attempt)
		last = r.Due
	}
}

func TestAfterAllItemsOfARoundHaveEnded(t *testing.T) {
	onEach(t, func(b *bed) {
		w, x := newWitness(), &rounds{}
		var ended atomic.Int64
		w.hold = func(_ context.Context, s core.Shard) error {
			pause(time.Duration(s.Item) * 20 * time.Millisecond)
			ended.Add(1)
			return nil
		}
		var early atomic.Int64
		x.hold = func(_ context.Context, r core.Round) error {
			if int(ended.Load()) < 4 || w.ran(r.Due) < 4 {
				early.Add(1)
			}
			return nil
		}
		a := b.start("a", w, everySecond, x.listen(everySecond.Name))
		c := b.start("c", w, everySecond)
		b.until("shared", func() bool { return allOwned(4, a, c) })
		from := len(x.all())
		b.until("five rounds are over", func() bool { return len(x.all()) >= from+5 })
		x.ordered(b)
		for i, r := range x.all()[from+1:] {
			require.Zero(b, r.Merged, "%v", r)
			require.Equal(b, x.all()[from+i].Due.Add(time.Second), r.Due, "no round is left out")
			require.Equal(b, a.job().Instance, r.Instance)
		}
		require.Zero(b, early.Load())
		b.until("it is told", func() bool { return len(of[event.RoundHeard](a)) >= 5 })
		require.Empty(b, of[event.RoundLost](a))
	})
}
