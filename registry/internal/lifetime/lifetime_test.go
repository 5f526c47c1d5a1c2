package lifetime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/lifetime"
)

func isDone(l *lifetime.Lifetime) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

func TestDoneComesBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lifetime.New("test")
		start := time.Now()
		l.Begin("7", start.Add(10*time.Second), time.Second)
		time.Sleep(8 * time.Second)
		require.True(t, l.Extend(start.Add(15*time.Second), 2*time.Second))
		require.True(t, l.Extend(start.Add(12*time.Second), 9*time.Second), "an older heartbeat")
		require.Equal(t, start.Add(15*time.Second), l.Deadline())
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		require.False(t, isDone(l))
		require.NoError(t, l.Err())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.True(t, isDone(l))
		require.ErrorIs(t, l.Err(), registry.ErrSessionLost)
		require.EqualError(t, l.Err(), "test: session lost: session 7: no heartbeat was acknowledged in time")
		require.False(t, l.Extend(start.Add(time.Hour), time.Second), "it is lost for good")
		require.Equal(t, start.Add(15*time.Second), l.Deadline())
	})
}

// What is answered when Done should have been closed comes too late, though the timer
// has not run yet.
func TestExtendComesTooLate(t *testing.T) {
	l := lifetime.New("test")
	l.Begin("7", time.Now().Add(time.Hour), time.Hour+time.Second)
	require.False(t, l.Extend(time.Now().Add(2*time.Hour), time.Second))
	l.Lose(lifetime.ErrClosed)
}

func TestTheFirstReasonStays(t *testing.T) {
	l := lifetime.New("test")
	reason := errors.New("reason")
	require.True(t, l.Lose(reason))
	require.False(t, l.Lose(lifetime.ErrClosed))
	require.ErrorIs(t, l.Err(), reason)
	require.NotErrorIs(t, l.Err(), lifetime.ErrClosed)
	require.ErrorIs(t, context.Cause(l.Context()), reason)
	l.Begin("7", time.Now().Add(time.Hour), 0)
	require.Zero(t, l.Deadline())
}

func TestGoroutinesAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lifetime.New("test")
		var ended atomic.Int32
		require.True(t, l.Go(func() { time.Sleep(time.Minute); ended.Add(1) }))
		l.Spawn(func(ctx context.Context) { <-ctx.Done(); ended.Add(1) })
		l.Lose(lifetime.ErrClosed)
		require.False(t, l.Go(func() { ended.Add(100) }))
		l.Spawn(func(ctx context.Context) {
			require.Error(t, ctx.Err())
			ended.Add(1)
		})
		l.Wait()
		require.EqualValues(t, 3, ended.Load())
	})
}

func TestBoundAndAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lifetime.New("test")
		own, cancel := context.WithCancel(context.Background())
		require.NoError(t, l.Alive(own))
		ctx, release := l.Bound(own)
		defer release()
		cancel()
		require.Equal(t, context.Canceled, l.Alive(own))
		require.Error(t, ctx.Err())
		ctx, release = l.Bound(context.Background())
		defer release()
		l.Lose(lifetime.ErrClosed)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), registry.ErrSessionLost)
		require.ErrorIs(t, l.Alive(own), registry.ErrSessionLost)
	})
}

func TestCloseHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within := func(ctx context.Context) time.Duration {
			start := time.Now()
			_ = lifetime.New("test").CloseOnce(ctx, 8*time.Second, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			return time.Since(start)
		}
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Equal(t, time.Second, within(short))
		require.Equal(t, 2*time.Second, within(short), "it has ended")
		require.Equal(t, 8*time.Second, within(context.Background()))
	})
}

type session struct {
	open   *lifetime.Open[*session]
	closed atomic.Int32
}

func (s *session) Close(ctx context.Context) error {
	s.closed.Add(1)
	<-ctx.Done()
	s.open.Remove(s)
	return ctx.Err()
}

func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open lifetime.Open[*session]
		a, b := &session{open: &open}, &session{open: &open}
		require.True(t, open.Add(a))
		require.True(t, open.Add(b))
		open.Remove(b)
		require.False(t, open.Closed())
		start := time.Now()
		require.True(t, open.Close(time.Second))
		require.Equal(t, time.Second, time.Since(start))
		require.True(t, open.Closed())
		require.False(t, open.Close(time.Second))
		require.False(t, open.Add(b))
		require.EqualValues(t, 1, a.closed.Load())
		require.Zero(t, b.closed.Load())
	})
}

func TestOneCloseBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := lifetime.New("test"), 0
		l.Begin("7", time.Now().Add(time.Hour), time.Second)
		after := func(wait time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			start := time.Now()
			err := l.CloseOnce(ctx, time.Minute, func(ctx context.Context) error {
				told++
				l.End()
				<-ctx.Done()
				return ctx.Err()
			})
			return time.Since(start), err
		}
		go after(9 * time.Second)
		synctest.Wait()
		took, err := after(time.Second)
		require.Equal(t, time.Second, took)
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		took, err = after(time.Hour)
		require.Equal(t, 8*time.Second, took)
		require.Equal(t, context.DeadlineExceeded, err, "the first one's")
		took, _ = after(time.Hour)
		require.Zero(t, took)
		require.Equal(t, 1, told)
	})
}
