//go:build unix

package core_test

import (
	"context"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// Finding C 18: a second interrupt did nothing. One that comes with the first is no second one. The signals are this
// process's own.
func TestFindingC18ASecondInterruptEndsRunAtOnce(t *testing.T) {
	b := &bed{T: t, ns: freshNamespace(), client: onMemoryInRealTime()}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	var asked atomic.Bool
	causes := make(chan error, 8)
	const later = 300 * time.Millisecond
	var waits, ended atomic.Int64
	work := core.JobFunc(func(ctx context.Context, _ core.Shard) error {
		if asked.CompareAndSwap(false, true) {
			interrupt(t)
		}
		<-ctx.Done()
		ended.CompareAndSwap(0, time.Now().UnixNano())
		causes <- context.Cause(ctx)
		return nil
	})
	cfg := everySecond
	cfg.Shards = 1
	done := make(chan error, 1)
	begun := time.Now()
	go func() {
		done <- core.Run(ctx, b.registry(), work, cfg, core.WithIP("127.0.0.1"), core.WithRunPatience(time.Hour),
			core.WithLogger(nil), core.WithListener(func(e event.Event) {
				if e, ok := e.(event.Waiting); ok && e.Job == "" {
					waits.Store(time.Now().UnixNano())
					interrupt(t)
					time.AfterFunc(later, func() { interrupt(t) })
				}
			}))
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.FailNow(t, "a second interrupt ended nothing")
	}
	require.ErrorIs(t, <-causes, core.ErrStopped)
	require.Less(t, time.Since(begun), 30*time.Second)
	require.GreaterOrEqual(t, time.Duration(ended.Load()-waits.Load()), later, "the interrupt that came with the first ended what ran")
}

func interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Error(err) // it is called by other goroutines
	}
}
