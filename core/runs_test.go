package core_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// The latest runs of a job are kept, the running ones too, with how they ended.
func TestRuns(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Shards = 4
		let := make(chan struct{})
		broken := errors.New("broken")
		a := b.start("a", core.JobFunc(func(_ context.Context, s core.Shard) error {
			switch s.Item {
			case 0:
				return broken
			case 1:
				panic("no")
			case 2:
				runtime.Goexit()
			}
			<-let
			return nil
		}), cfg, core.WithLogger(nil))
		b.until("three have ended", func() bool { return len(of[event.ItemReturned](a)) >= 3 })
		runs := a.Runs(cfg.Name)
		require.NotEmpty(b, runs)
		for _, r := range runs {
			require.Equal(b, a.job().Instance, r.Instance)
			require.Equal(b, cfg.Name, r.Job)
			require.Equal(b, 4, r.Total)
			require.NotZero(b, r.Began)
			require.Equal(b, 1, r.Attempt)
			require.Positive(b, r.Fence)
			switch r.Item {
			case 0:
				require.Equal(b, broken, r.Err)
			case 1:
				require.EqualError(b, r.Err, "panic: no")
			case 2:
				require.Equal(b, core.ErrGoexit, r.Err)
			case 3:
				require.Zero(b, r.Ended)
				continue
			}
			require.False(b, r.Ended.Before(r.Began))
		}
		require.Empty(b, a.Runs("another"))
		close(let)
		b.until("there are many", func() bool { return len(of[event.ItemReturned](a)) > 70 })
		runs = a.Runs(cfg.Name)
		require.Len(b, runs, 64, "and no more")
		for i := range runs[1:] {
			require.False(b, runs[i+1].Began.Before(runs[i].Began), "in the order in which they began")
		}
		for _, e := range of[event.ItemCalled](a) {
			require.Zero(b, e.Ended)
			require.NoError(b, e.Err)
		}
	})
}

// How many are kept is the program's choice.
func TestKeptRuns(t *testing.T) {
	inBubble(t, func(b *bed) {
		for name, n := range map[string]int{"none": -1, "three": 3} {
			g := &gather{}
			a := b.start(name, g, everySecond, core.WithKeptRuns(n))
			b.until("it fires", func() bool { return len(g.all()) > 5 })
			require.Len(b, a.Runs(everySecond.Name), max(n, 0))
			require.NoError(b, a.Stop(context.Background()))
		}
	})
}
