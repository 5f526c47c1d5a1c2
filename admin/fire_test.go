package admin_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
)

// A held fire is one that ends, at each item, when the test lets it.
type heldFire struct {
	mu   sync.Mutex
	from time.Time // one due before has begun at some items already
	due  time.Time // zero: the next one
	free map[int]chan struct{}
}

func newHeldFire() *heldFire {
	return &heldFire{free: map[int]chan struct{}{}, from: time.Now().Add(300 * time.Millisecond)}
}

func (f *heldFire) run(ctx context.Context, s core.Shard) error {
	f.mu.Lock()
	if f.due.IsZero() && s.Due.After(f.from) {
		f.due = s.Due
	}
	if !s.Due.Equal(f.due) {
		f.mu.Unlock()
		return nil
	}
	free := f.free[s.Item]
	if free == nil {
		free = make(chan struct{})
		f.free[s.Item] = free
	}
	f.mu.Unlock()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// held is the fire, and how many items run it.
func (f *heldFire) held() (due time.Time, items int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.due, len(f.free)
}

func (f *heldFire) release(item int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.free[item])
}

// awaited is a call of AwaitFire that goes on.
type awaited struct {
	done    chan struct{}
	answers []admin.Answer
	err     error
}

func (b *bed) awaitFire(due time.Time) *awaited {
	w := &awaited{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	b.Cleanup(func() { cancel(); <-w.done })
	go func() {
		defer close(w.done)
		w.answers, w.err = b.AwaitFire(ctx, "hello", due)
	}()
	return w
}

func (w *awaited) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func TestAFireIsAwaitedUntilAllItemsHaveEndedIt(t *testing.T) {
	onEach(t, func(b *bed) {
		a, c := b.start("a", "127.0.0.1", everySecond), b.start("c", "127.0.0.2", everySecond)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		f := newHeldFire()
		a.onRun(f.run)
		c.onRun(f.run)
		b.until("all items run", func() bool { _, n := f.held(); return n == 4 })
		due, _ := f.held()
		w := b.awaitFire(due)
		for n := range 4 {
			select {
			case <-time.After(300 * time.Millisecond):
			case <-w.done:
				require.FailNow(b, "it is over", "%d items have ended: %v, %v", n, w.answers, w.err)
			}
			f.release(n)
		}
		<-w.done
		require.NoError(b, w.err)
		require.Len(b, w.answers, 4)
		for n, ans := range w.answers {
			require.Equal(b, n, ans.Item)
			require.Contains(b, []admin.Outcome{admin.Ended, admin.Settled}, ans.Outcome, "%v", ans)
		}
	})
}

func TestAFireThatIsToComeIsAwaited(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", "127.0.0.1", core.JobConfig{Name: "hello", Cron: "0 0/5 * * * ?", TimeZone: "UTC", Shards: 2})
		b.until("it has all", func() bool { return spread(map[*instance]int{a: 2}) })
		due := time.Now().Truncate(5 * time.Minute).Add(5 * time.Minute)
		answers, err := b.AwaitFire(b.Context(), "hello", due)
		require.NoError(b, err)
		require.Len(b, answers, 2)
		require.Equal(b, admin.Ended, answers[0].Outcome)
		require.WithinDuration(b, due, time.Now(), time.Second)
	})
}

// What is switched off has no part in the fire, and what is to run again has.
func TestAFireIsAwaitedWithoutWhatIsSwitchedOff(t *testing.T) {
	inBubble(t, func(b *bed) {
		cfg := everySecond
		cfg.Failover = true
		a, c := b.start("a", "127.0.0.1", cfg), b.start("c", "127.0.0.2", cfg)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		require.NoError(b, b.DisableItem(b.Context(), "hello", 1))
		f := newHeldFire()
		a.onRun(f.run)
		c.onRun(f.run)
		b.until("the others run", func() bool { _, n := f.held(); return n == 3 })
		due, _ := f.held()
		w := b.awaitFire(due)
		require.True(b, b.expire(c.State().Session))
		b.until("c has left", func() bool { return spread(map[*instance]int{a: 4}) || w.over() })
		<-time.After(3 * time.Second)
		require.False(b, w.over(), "%v, %v", w.answers, w.err)
		for _, n := range []int{0, 2, 3} {
			f.release(n)
		}
		<-w.done
		require.NoError(b, w.err)
		require.Len(b, w.answers, 4)
		require.Contains(b, w.answers[1].Why, "disabled")
	})
}

// The items of a disabled server move to another one, and their fire is made up there: it is to come.
func TestAFireIsAwaitedWhereItsItemsMove(t *testing.T) {
	inBubble(t, func(b *bed) {
		a, c := b.start("a", "127.0.0.1", everySecond), b.start("c", "127.0.0.2", everySecond)
		b.until("both share", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
		f := newHeldFire()
		a.onRun(f.run)
		b.until("its items run", func() bool { _, n := f.held(); return n == 2 })
		due, _ := f.held()
		next := due.Add(10 * time.Second)
		w := b.awaitFire(next)
		require.NoError(b, b.Disable(b.Context(), admin.Target{Job: "hello", IP: "127.0.0.1"}))
		<-time.After(13 * time.Second)
		require.False(b, w.over(), "%v, %v", w.answers, w.err)
		for n := range f.free {
			f.release(n)
		}
		<-w.done
		require.NoError(b, w.err)
		for _, ans := range w.answers {
			require.NotEqual(b, admin.Owed, ans.Outcome, "%v", ans)
		}
	})
}

func TestWhatCannotBeAwaited(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.start("a", "127.0.0.1", core.JobConfig{Name: "hello", Cron: "0 0/5 * * * ?", TimeZone: "UTC", Shards: 2})
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
		defer cancel()
		_, err := b.AwaitFire(ctx, "nobody", time.Now())
		require.ErrorIs(b, err, admin.ErrNoJob)
		never := time.Now().Truncate(5 * time.Minute).Add(7 * time.Minute)
		_, err = b.AwaitFire(ctx, "hello", never)
		require.ErrorIs(b, err, admin.ErrNoFire)
		require.ErrorContains(b, err, "has no fire then")
		_, err = b.AwaitFire(ctx, "hello", time.Now().Add(time.Hour).Truncate(5*time.Minute))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		b.start("c", "127.0.0.1", core.JobConfig{Name: "loose", Cron: "* * * * * ?", Shards: 2, Monitor: core.MonitorOff})
		_, err = b.AwaitFire(b.Context(), "loose", time.Now().Truncate(time.Second))
		require.ErrorIs(b, err, admin.ErrNoFire)
		b.start("d", "127.0.0.1", core.JobConfig{Name: "delayed", Cron: "@delay 1s", Shards: 2})
		_, err = b.AwaitFire(b.Context(), "delayed", time.Now())
		require.ErrorIs(b, err, admin.ErrNoFire)
	})
}
