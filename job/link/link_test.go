package link_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/job/link"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

func failing(n int, calls *[]core.Shard) core.Job {
	return core.JobFunc(func(_ context.Context, s core.Shard) error {
		*calls = append(*calls, s)
		if len(*calls) <= n {
			return errBroken
		}
		return nil
	})
}

func TestChainOrder(t *testing.T) {
	var trail []string
	mark := func(name string) link.Link {
		return func(next core.Job) core.Job {
			return core.JobFunc(func(ctx context.Context, s core.Shard) error {
				trail = append(trail, name)
				return next.Run(ctx, s)
			})
		}
	}
	end := core.JobFunc(func(context.Context, core.Shard) error { trail = append(trail, "job"); return nil })
	require.NoError(t, link.Chain(end, mark("a"), mark("b")).Run(t.Context(), core.Shard{}))
	require.Equal(t, []string{"a", "b", "job"}, trail)
}

func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		r     link.Retries
		fails int
		calls int
		err   string
	}{
		"succeeds at once":   {link.Retries{}, 0, 1, ""},
		"succeeds at last":   {link.Retries{}, 2, 3, ""},
		"gives up":           {link.Retries{}, 3, 3, "after 3 attempts: broken"},
		"one attempt":        {link.Retries{Max: 1}, 3, 1, "broken"},
		"without a bound":    {link.Retries{Max: -1}, 40, 41, ""},
		"not worth it":       {link.Retries{If: func(err error) bool { return !errors.Is(err, errBroken) }}, 3, 1, "broken"},
		"worth it":           {link.Retries{If: func(err error) bool { return errors.Is(err, errBroken) }}, 1, 2, ""},
		"more than it needs": {link.Retries{Max: 9}, 4, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []core.Shard
				err := link.Retry(c.r)(failing(c.fails, &calls)).Run(t.Context(), core.Shard{Attempt: 1, Fence: 7, TaskID: "x"})
				require.Len(t, calls, c.calls)
				for i, s := range calls {
					require.Equal(t, core.Shard{Attempt: i + 1, Fence: 7, TaskID: "x"}, s)
				}
				if c.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, c.err)
				}
			})
		})
	}
}

// The pauses double, are spread by half, and are bounded.
func TestRetryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		job := core.JobFunc(func(context.Context, core.Shard) error { at = append(at, time.Now()); return errBroken })
		_ = link.Retry(link.Retries{Max: 6, First: time.Second, Longest: 4 * time.Second})(job).Run(t.Context(), core.Shard{})
		require.Len(t, at, 6)
		for i, want := range []float64{1, 2, 4, 4, 4} {
			require.InDelta(t, want, at[i+1].Sub(at[i]).Seconds(), want/2+1e-6, "pause %d", i)
		}
	})
}

// A pause ends when the item is wanted elsewhere or the run is cancelled, and nothing is
// tried again.
func TestRetryYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var calls []core.Shard
		yield := make(chan struct{})
		close(yield)
		err := link.Retry(link.Retries{First: time.Hour})(failing(9, &calls)).Run(t.Context(), core.Shard{Yield: yield})
		require.EqualError(t, err, "broken")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = link.Retry(link.Retries{First: time.Hour})(failing(9, &calls)).Run(ctx, core.Shard{})
		require.EqualError(t, err, "broken")
		require.Len(t, calls, 2)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// A panic is an error that can be tried again, and keeps its stack.
func TestRetryOfAPanic(t *testing.T) {
	job := core.JobFunc(func(context.Context, core.Shard) error { panic("no") })
	err := link.Retry(link.Retries{Max: 1})(job).Run(t.Context(), core.Shard{})
	var p *core.PanicError
	require.ErrorAs(t, err, &p)
	require.Contains(t, string(p.Stack), "TestRetryOfAPanic")
}

func TestListen(t *testing.T) {
	var told []string
	l := link.Listener{
		Before: func(_ context.Context, s core.Shard) error {
			if s.Item == 9 {
				return errBroken
			}
			return nil
		},
		After: func(_ context.Context, s core.Shard, _ time.Duration, err error) {
			told = append(told, fmt.Sprint(s.Item, " ", err))
		},
	}
	ran := 0
	job := link.Listen(l)(core.JobFunc(func(_ context.Context, s core.Shard) error {
		ran++
		switch s.Item {
		case 1:
			return errBroken
		case 2:
			panic("no")
		}
		return nil
	}))
	require.NoError(t, job.Run(t.Context(), core.Shard{}))
	require.ErrorIs(t, job.Run(t.Context(), core.Shard{Item: 1}), errBroken)
	require.EqualError(t, job.Run(t.Context(), core.Shard{Item: 2}), "panic: no")
	require.ErrorIs(t, job.Run(t.Context(), core.Shard{Item: 9}), errBroken)
	require.Equal(t, []string{"0 <nil>", "1 broken", "2 panic: no", "9 broken"}, told)
	require.Equal(t, 3, ran)
	require.NoError(t, link.Listen(link.Listener{})(core.JobFunc(func(context.Context, core.Shard) error { return nil })).Run(t.Context(), core.Shard{}))
}

// A run that ends its goroutine is told too.
func TestListenGoexit(t *testing.T) {
	var told error
	job := link.Listen(link.Listener{After: func(_ context.Context, _ core.Shard, _ time.Duration, err error) { told = err }})(
		core.JobFunc(func(context.Context, core.Shard) error { (&testing.T{}).SkipNow(); return nil }))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = job.Run(context.Background(), core.Shard{})
	}()
	<-done
	require.ErrorIs(t, told, core.ErrGoexit)
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := link.Timeout(link.Limit{After: time.Second})
		var cause error
		err := limit(core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})).Run(t.Context(), core.Shard{})
		require.EqualError(t, err, "timeout after 1s: context deadline exceeded")
		require.ErrorIs(t, err, link.ErrTimeout)
		require.Equal(t, link.ErrTimeout, cause)

		// What had another reason is told as it is, and what succeeded late has succeeded.
		require.Equal(t, errBroken, limit(core.JobFunc(func(context.Context, core.Shard) error { return errBroken })).Run(t.Context(), core.Shard{}))
		require.NoError(t, limit(core.JobFunc(func(ctx context.Context, _ core.Shard) error { <-ctx.Done(); return nil })).Run(t.Context(), core.Shard{}))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(core.ErrStopped)
		err = limit(core.JobFunc(func(ctx context.Context, _ core.Shard) error { return context.Cause(ctx) })).Run(ctx, core.Shard{})
		require.Equal(t, core.ErrStopped, err)
	})
	require.PanicsWithValue(t, "link: a timeout of 0s; give a positive one", func() { link.Timeout(link.Limit{}) })
}

// ignores does not heed its context.
func ignores(release <-chan struct{}) core.Job {
	return core.JobFunc(func(context.Context, core.Shard) error {
		<-release
		return nil
	})
}

// A run that does not return after its timeout is told as stuck, once, with its stack; it
// goes on to run, and ends when it returns.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry("shop")
		defer reg.Close()
		events := make(chan event.Event, 1000)
		sched := core.New(reg, core.WithLogger(nil), core.WithIP("127.0.0.1"), core.WithListener(func(e event.Event) { events <- e }))
		release := make(chan struct{})
		let := sync.OnceFunc(func() { close(release) })
		defer let()
		work := link.Timeout(link.Limit{After: time.Minute, Grace: time.Minute, Stack: true})(ignores(release))
		require.NoError(t, sched.Add(work, core.JobConfig{Name: "stuck", Cron: "0 0 * * * ?", Shards: 1}))
		require.NoError(t, sched.Start(t.Context()))
		var stuck event.ItemStuck
		for found := false; !found; {
			stuck, found = (<-events).(event.ItemStuck)
		}
		require.Equal(t, "stuck", stuck.Job)
		require.Equal(t, 2*time.Minute, stuck.Running)
		require.Equal(t, 2*time.Minute, time.Since(stuck.Due).Round(time.Second))
		require.Contains(t, stuck.Stack, "ignores")
		require.NotContains(t, stuck.Stack, "\ngoroutine ", "its own stack alone")
		require.Equal(t, []int{0}, sched.State().Jobs[0].Running)
		let()
		require.NoError(t, sched.Stop(t.Context()))
		close(events)
		for e := range events {
			_, again := e.(event.ItemStuck)
			require.False(t, again)
		}
	})
}

// What returns within its grace is not stuck.
func TestNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, grace := range []time.Duration{0, -1, time.Minute} {
			work := link.Timeout(link.Limit{After: time.Second, Grace: grace, Stack: true})(core.JobFunc(func(ctx context.Context, _ core.Shard) error {
				<-ctx.Done()
				return ctx.Err()
			}))
			require.ErrorIs(t, work.Run(t.Context(), core.Shard{}), link.ErrTimeout)
		}
	})
}
