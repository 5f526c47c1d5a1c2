package latch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/latch"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestLockLooks(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ses := w.session()
		lock := w.lock(ses)
		require.Regexp(t, "^/locks/one/_c_[0-9a-f-]{36}-latch-[0-9]+$", lock.Path())
		nodes, err := ses.Get(context.Background(), lock.Path())
		require.NoError(t, err)
		require.True(t, nodes[0].Owned)
		require.Equal(t, nodes[0].Created, lock.Token())
		require.Equal(t, ses.ID(), string(nodes[0].Value))
		require.Equal(t, registry.Check(lock.Path(), registry.AnyVersion), lock.Guard())
		require.True(t, held(t, ses, lock))
		require.False(t, closed(lock.Lost()))
		release(t, lock)
		require.False(t, held(t, ses, lock))
		require.Equal(t, "/locks \"\"\n/locks/one \"\"\n", w.Dump())
	})
}

// Contenders hold the lock one after the other in the order of arrival, those
// of one session too, with rising tokens.
func TestFairAndExclusive(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		shared := w.session()
		first := w.lock(w.session())
		var queue []*attempt
		for i := range 10 {
			ses := shared
			if i%2 == 0 {
				ses = w.session()
			}
			queue = append(queue, w.begin(ses))
		}
		last := first
		for i, a := range queue {
			for _, b := range queue[i:] {
				require.False(t, b.over())
			}
			release(t, last)
			require.True(t, a.over())
			require.NoError(t, a.err)
			require.Greater(t, a.lock.Token(), last.Token())
			last = a.lock
		}
		release(t, last)
		require.Empty(t, w.contenders())
	})
}

func TestRequests(t *testing.T) {
	namedBubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		_, before := w.dial()
		release(t, w.lock(before)) // makes the directory
		own, ses := w.dial()
		count := func(want memory.Counts) {
			t.Helper()
			synctest.Wait()
			got := own.Requests()
			got.Open, got.Heartbeat = 0, 0
			require.Equal(t, want, got)
			own.ResetRequests()
		}
		count(memory.Counts{})
		lock := w.lock(ses)
		count(memory.Counts{Commit: 1, Children: 1, Get: 1, WatchAdd: 1})
		release(t, lock)
		count(memory.Counts{Commit: 1})

		lock, err := ses.TryLock(ctx, dir, nil)
		require.NoError(t, err)
		count(memory.Counts{Commit: 1, Children: 2, Get: 1, WatchAdd: 1})
		release(t, lock)
		own.ResetRequests()

		lock = w.lock(before)
		_, err = ses.TryLock(ctx, dir, nil)
		require.ErrorIs(t, err, registry.ErrHeld)
		count(memory.Counts{Children: 2, Sync: 1})

		a := w.begin(ses)
		count(memory.Counts{Commit: 1, Children: 1, Get: 1, WatchAdd: 2})
		time.Sleep(time.Hour)
		count(memory.Counts{})
		release(t, lock)
		require.True(t, a.over())
		count(memory.Counts{Get: 1})
	})
}

// A release wakes one contender, however many wait.
func TestNoHerd(t *testing.T) {
	namedBubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		first := w.begin(w.session())
		for range 20 {
			w.begin(w.session())
		}
		w.ResetRequests()
		release(t, lock)
		require.True(t, first.over())
		require.Equal(t, memory.Counts{Commit: 1, Get: 1}, w.Requests())
	})
}

func TestTryLock(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		one, two := w.session(), w.session()
		lock, err := one.TryLock(ctx, dir, nil)
		require.NoError(t, err)
		for _, ses := range []registry.Session{one, two} {
			_, err = ses.TryLock(ctx, dir, nil)
			require.ErrorIs(t, err, registry.ErrHeld)
		}
		release(t, lock)
		lock, err = two.TryLock(ctx, dir, nil)
		require.NoError(t, err)
		release(t, lock)
		require.Empty(t, w.contenders())
	})
}

// Of those who try at once, when none looks held, one gets it and the others
// leave nothing.
func TestTryLockRace(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		const racers = 10
		sessions := make([]registry.Session, racers)
		for i := range sessions {
			sessions[i] = w.session()
		}
		release(t, w.lock(sessions[0]))
		resume := w.Pause()
		won := make(chan registry.Lock, racers)
		failed := make(chan error, racers)
		for _, ses := range sessions {
			go func() {
				lock, err := ses.TryLock(context.Background(), dir, nil)
				if err != nil {
					failed <- err
					return
				}
				won <- lock
			}()
		}
		synctest.Wait()
		resume()
		for range racers - 1 {
			require.ErrorIs(t, <-failed, registry.ErrHeld)
		}
		require.Len(t, w.contenders(), 1)
		release(t, <-won)
		require.Empty(t, w.contenders())
	})
}

func TestReleaseTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		release(t, lock)
		next := w.lock(w.session())
		release(t, lock)
		require.Len(t, w.contenders(), 1)
		require.False(t, closed(next.Lost()))
	})
}

// A release that does not get through within its context goes on.
func TestReleaseGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		reg, ses := w.dial()
		lock := w.lock(ses)
		heal := reg.Refuse()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, lock.Release(ctx), context.DeadlineExceeded)
		require.True(t, closed(lock.Lost()))
		require.Len(t, w.contenders(), 1)
		heal()
		require.NoError(t, lock.Release(context.Background()))
		require.Empty(t, w.contenders())
	})
}

func TestLostWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		reg, ses := w.dial()
		lock := w.lock(ses)
		other := w.session()
		a := w.begin(other)
		deadline := ses.Deadline()
		defer reg.LoseRequests()()
		<-lock.Lost()
		require.False(t, time.Now().After(deadline))
		require.False(t, a.over())
		<-a.done
		require.True(t, time.Now().After(deadline))
		require.NoError(t, a.err)
		require.False(t, held(t, other, lock))
		require.ErrorIs(t, lock.Release(context.Background()), registry.ErrSessionLost)
		require.True(t, held(t, other, a.lock))
	})
}

func TestLostByCloseOfTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ses := w.session()
		lock, waiter := w.lock(ses), w.begin(ses)
		require.NoError(t, ses.Close(context.Background()))
		require.True(t, closed(lock.Lost()))
		require.True(t, waiter.over())
		require.ErrorIs(t, waiter.err, registry.ErrSessionLost)
		require.Empty(t, w.contenders())
		_, err := ses.Lock(context.Background(), dir, nil)
		require.ErrorIs(t, err, registry.ErrSessionLost)
	})
}

// An owner whose node somebody else deletes learns of it.
func TestLostByDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		lock := w.lock(w.session())
		other := w.session()
		a := w.begin(other)
		_, err := other.Commit(context.Background(), registry.Delete(lock.Path(), registry.AnyVersion))
		require.NoError(t, err)
		<-lock.Lost()
		require.True(t, a.over())
		require.NoError(t, a.err)
		release(t, lock)
		require.Len(t, w.contenders(), 1)
		require.False(t, closed(a.lock.Lost()))
	})
}

func TestInvalid(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ctx := context.Background()
		ses := w.session()
		_, err := ses.Lock(ctx, "no", nil)
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, err = ses.Lock(ctx, dir, make([]byte, ses.Limits().MaxValue+1))
		require.ErrorIs(t, err, registry.ErrInvalid)
		_, err = ses.Lock(ctx, dir+"/"+strings.Repeat(strings.Repeat("x", 200)+"/", 9)+"x", nil)
		require.NoError(t, err)
		_, err = ses.Commit(ctx, registry.CreateEphemeral("/e", nil))
		require.NoError(t, err)
		_, err = ses.Lock(ctx, "/e", nil)
		require.ErrorIs(t, err, registry.ErrEphemeralParent)
		_, err = ses.TryLock(ctx, "/e/f", nil)
		require.ErrorIs(t, err, registry.ErrEphemeralParent)
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = ses.Lock(canceled, dir, nil)
		require.ErrorIs(t, err, context.Canceled)
		release(t, w.lock(ses))
	})
}

func TestRootAsDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, w world) {
		ses := w.session()
		lock, err := ses.Lock(context.Background(), "/", nil)
		require.NoError(t, err)
		require.Regexp(t, "^/_c_", lock.Path())
		_, err = ses.TryLock(context.Background(), "/", nil)
		require.ErrorIs(t, err, registry.ErrHeld)
		release(t, lock)
	})
}

// A lock that was not had in time says that the service could not be reached, when
// that was the reason, and nothing else.
func TestLockSaysThatTheServiceWasUnavailable(t *testing.T) {
	for _, outcome := range []error{registry.ErrUnavailable, registry.ErrUncertain} {
		bubble(t, func(t *testing.T, w world) {
			ses := cutOff{w.session(), outcome}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			var opts []latch.Option
			if w.numbers != nil {
				opts = append(opts, latch.WithForm(ses))
			}
			_, err := latch.Acquire(ctx, ses, dir, nil, false, func(fn func(context.Context)) { fn(ctx) }, opts...)
			require.ErrorIs(t, err, registry.ErrUnavailable)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, registry.ErrUncertain)
		})
	}
}

// cutOff is a session whose commits wait for their context, and a form that does not know
// the path of what it could not make.
type cutOff struct {
	registry.Session
	outcome error
}

func (c cutOff) Commit(ctx context.Context, _ ...registry.Op) (registry.Revision, error) {
	<-ctx.Done()
	return 0, fmt.Errorf("%w: %w", c.outcome, ctx.Err())
}

func (cutOff) Sync(ctx context.Context) error { return ctx.Err() }

func (c cutOff) Join(ctx context.Context, _ string, _ []byte) (string, error) {
	_, err := c.Commit(ctx)
	return "", err
}

func (cutOff) Place(string) (int64, bool, error) { return 0, true, nil }

func (cutOff) Settle(context.Context) bool { return false }
