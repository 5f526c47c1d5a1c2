package polled_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// follow returns a watcher that has told the state of the targets.
func follow(t *testing.T, s registry.Session, targets map[string]registry.Scope) registry.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context())
	require.NoError(t, err)
	for path, scope := range targets {
		require.NoError(t, w.Add(path, scope))
	}
	for synced := 0; synced < len(targets); {
		for _, e := range next(t, w) {
			if e.Synced {
				synced++
			}
		}
	}
	return w
}

func next(t *testing.T, w registry.Watcher) []registry.Event {
	t.Helper()
	events, err := w.Next(soon(t))
	require.NoError(t, err)
	return events
}

// quiet requires that nothing comes for a while.
func quiet(t *testing.T, w registry.Watcher, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	events, err := w.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "%v", events)
}

func TestTheStateComesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		commit(t, ses, registry.Create("/d", nil), registry.Create("/d/a", []byte("x")))
		w, err := ses.Watch(t.Context())
		require.NoError(t, err)
		l.counts()
		require.NoError(t, w.Add("/d", registry.Children))
		require.NoError(t, w.Add("/d", registry.Children), "again")
		require.Empty(t, cmp.Diff([]registry.Event{
			{Path: "/d", Scope: registry.Children, Node: registry.Node{Path: "/d/a", Value: []byte("x"), Created: 1, Modified: 1}},
			{Path: "/d", Scope: registry.Children, Synced: true},
		}, next(t, w)))
		require.NoError(t, w.Add("/none", registry.Self))
		require.Empty(t, cmp.Diff([]registry.Event{
			{Path: "/none", Node: registry.Node{Path: "/none"}}, {Path: "/none", Synced: true},
		}, next(t, w)))
		require.NoError(t, w.Add("/none", registry.Children))
		require.Empty(t, cmp.Diff([]registry.Event{{Path: "/none", Scope: registry.Children, Synced: true}}, next(t, w)))
		require.Equal(t, map[string]int{"read": 3}, l.counts())
		require.ErrorIs(t, w.Add("none", registry.Self), registry.ErrInvalid)
		require.NoError(t, w.Close())
	})
}

// What a registry commits itself wakes its watchers at once, and only those
// whose targets it touched; the others have nothing to read.
func TestOwnCommitsWakeAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		writer, err := reg.Open(t.Context())
		require.NoError(t, err)
		ses, err := reg.Open(t.Context())
		require.NoError(t, err)
		commit(t, ses, registry.Create("/d", nil))
		w := follow(t, ses, map[string]registry.Scope{"/d": registry.Children, "/d/a": registry.Self})
		aside := follow(t, ses, map[string]registry.Scope{"/x": registry.Children})
		elapse(poll)
		quiet(t, w, poll/4)
		quiet(t, aside, poll/4)
		l.counts()
		start := time.Now()
		go func() { _, _ = aside.Next(t.Context()) }()
		commit(t, writer, registry.Create("/d/a", nil))
		require.Len(t, next(t, w), 2)
		commit(t, writer, registry.Delete("/d/a", 0))
		for _, e := range next(t, w) {
			require.Empty(t, cmp.Diff(registry.Node{Path: "/d/a"}, e.Node))
		}
		synctest.Wait()
		require.Zero(t, time.Since(start))
		require.Equal(t, map[string]int{"commit": 2, "read": 2}, l.counts())
		require.NoError(t, aside.Close())
	})
}

func TestRegistriesOfTheSameDataWakeEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		sessions := make([]registry.Session, 3)
		for i, data := range []string{"this", "this", "that"} {
			reg, err := polled.New(db.Store(), polled.Config{Name: "ram", Namespace: "shop", Data: data})
			require.NoError(t, err)
			defer reg.Close()
			sessions[i], err = reg.Open(t.Context())
			require.NoError(t, err)
		}
		targets := map[string]registry.Scope{"/a": registry.Self}
		this, that := follow(t, sessions[1], targets), follow(t, sessions[2], targets)
		commit(t, sessions[0], registry.CreateEphemeral("/a", nil))
		start := time.Now()
		require.Len(t, next(t, this), 1)
		require.Zero(t, time.Since(start))
		quiet(t, that, poll-1)
		require.NoError(t, sessions[0].Close(t.Context()))
		require.Len(t, next(t, this), 1)
		require.LessOrEqual(t, time.Since(start), 2*poll, "nobody knows here which nodes have gone: the poll sees them")
	})
}

func TestWhatOthersWriteIsSeenByThePoll(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		writer, _ := open(t, db)
		ses, l := open(t, db)
		targets := map[string]registry.Scope{"/": registry.Children}
		for i := range 100 {
			targets[fmt.Sprint("/", i)] = registry.Self
		}
		w := follow(t, ses, targets)
		quiet(t, w, poll+poll/2)
		for i := range 10 {
			l.counts()
			start := time.Now()
			commit(t, writer, registry.Create(fmt.Sprint("/", i), nil))
			require.Len(t, next(t, w), 2)
			require.Equal(t, poll/2, time.Since(start))
			require.Equal(t, 1, l.counts()["read"], "one request for all targets")
			quiet(t, w, poll/2)
		}
		commit(t, writer, registry.CreateEphemeral("/e", nil))
		require.Len(t, next(t, w), 1)
		require.NoError(t, writer.Close(t.Context()))
		require.Empty(t, cmp.Diff([]registry.Event{{Path: "/", Scope: registry.Children, Node: registry.Node{Path: "/e"}}}, next(t, w)))
	})
}

// A consumer who does not come costs no requests, and gets the last state.
func TestAnAbsentConsumerMissesTheStepsInBetween(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		commit(t, ses, registry.Create("/a", nil))
		l.counts()
		for i := range 1000 {
			commit(t, ses, registry.Set("/a", fmt.Append(nil, i), registry.AnyVersion))
		}
		commit(t, ses, registry.Create("/passing", nil))
		commit(t, ses, registry.Delete("/passing", 0))
		elapse(10 * poll)
		require.Zero(t, l.counts()["read"])
		events := next(t, w)
		require.Len(t, events, 1)
		require.Equal(t, "999", string(events[0].Node.Value))
		commit(t, ses, registry.Delete("/a", registry.AnyVersion))
		commit(t, ses, registry.Create("/a", nil))
		events = next(t, w)
		require.Len(t, events, 1)
		require.Equal(t, registry.Version(0), events[0].Node.Version)
	})
}

func TestValuesAreTheReceiversOwn(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, _ := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/d": registry.Children, "/d/a": registry.Self})
		commit(t, ses, registry.Create("/d", nil), registry.Create("/d/a", []byte("x")))
		events := next(t, w)
		require.Len(t, events, 2)
		events[0].Node.Value[0] = 'y'
		require.Equal(t, "x", string(events[1].Node.Value))
	})
}

func TestARemovedTargetIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self, "/b": registry.Self})
		commit(t, ses, registry.Create("/a", nil))
		w.Remove("/a", registry.Self)
		l.counts()
		quiet(t, w, poll/2)
		require.Zero(t, l.counts()["read"], "what had changed before need not be read")
		quiet(t, w, 3*poll)
		require.NoError(t, w.Add("/a", registry.Self))
		require.Len(t, next(t, w), 2, "its state and Synced again")
		for _, path := range []string{"/a", "/b"} {
			w.Remove(path, registry.Self)
		}
		commit(t, ses, registry.Delete("/a", 0))
		l.counts()
		quiet(t, w, 3*poll)
		require.Zero(t, l.counts()["read"])
	})
}

func TestAWatcherGoesOnAfterTheStoreWasAway(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		writer, _ := open(t, db)
		ses, l := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		commit(t, writer, registry.Create("/a", nil))
		l.disturb(refuse, nil)
		quiet(t, w, timeout/2)
		require.NoError(t, ses.Err())
		l.disturb(nil, nil)
		require.True(t, next(t, w)[0].Node.Exists())
		l.disturb(only("read", hang), nil)
		commit(t, writer, registry.Delete("/a", 0))
		quiet(t, w, 3*poll) // gave up in the middle of a look
		l.disturb(nil, nil)
		require.False(t, next(t, w)[0].Node.Exists())
	})
}

func TestTargetsThatAreRefusedAreGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		l.disturb(only("read", func(context.Context, string) error { return registry.ErrDenied }), nil)
		require.NoError(t, w.Add("/secret", registry.Self))
		_, err := w.Next(soon(t))
		require.ErrorIs(t, err, registry.ErrDenied)
		l.disturb(nil, nil)
		quiet(t, w, 3*poll)
		commit(t, ses, registry.Create("/a", nil), registry.Create("/secret", nil))
		events := next(t, w)
		require.Len(t, events, 1, "the others go on")
		require.Equal(t, "/a", events[0].Path)
	})
}

func TestAWatcherEnds(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		closed := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		require.NoError(t, closed.Close())
		require.NoError(t, closed.Close(), "again")
		_, err := closed.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrClosed)
		require.ErrorIs(t, closed.Add("/b", registry.Self), registry.ErrClosed)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		l.disturb(hang, nil)
		_, err = w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.ErrorIs(t, w.Add("/b", registry.Self), registry.ErrSessionLost)
		l.disturb(nil, nil)
	})
}

func TestLocks(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		reg, l := dial(t, db)
		first, err := reg.Open(t.Context())
		require.NoError(t, err)
		second, err := reg.Open(t.Context())
		require.NoError(t, err)
		commit(t, first, registry.Create("/lock", nil))
		l.counts()
		lock, err := first.Lock(t.Context(), "/lock", nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]int{"commit": 1, "read": 3}, l.counts())
		_, err = second.TryLock(t.Context(), "/lock", nil)
		require.ErrorIs(t, err, registry.ErrHeld)
		start, got := time.Now(), make(chan registry.Lock, 1)
		go func() {
			defer close(got)
			if next, err := second.Lock(context.Background(), "/lock", nil); err == nil {
				got <- next
			}
		}()
		synctest.Wait()
		l.counts()
		require.NoError(t, lock.Release(t.Context()))
		next := <-got
		require.NotNil(t, next)
		require.Zero(t, time.Since(start))
		synctest.Wait()
		require.Equal(t, map[string]int{"commit": 1, "read": 2}, l.counts(), "the next in line sees it gone, and looks once more at all")
		require.Greater(t, next.Token(), lock.Token())
		require.NoError(t, second.Close(t.Context()))
		<-next.Lost()
	})
}

// Whoever waits for less than an answer takes sees it with a later call.
func TestALookOutlivesTheCallThatBeganIt(t *testing.T) {
	bubble(t, func(t *testing.T, db *ram.Database) {
		ses, l := open(t, db)
		w := follow(t, ses, map[string]registry.Scope{"/a": registry.Self})
		l.disturb(nil, only("read", func(ctx context.Context, _ string) error {
			if wait.For(ctx, timeout/4) {
				return nil
			}
			return ctx.Err()
		}))
		commit(t, ses, registry.Create("/a", nil))
		l.counts()
		var events []registry.Event
		calls := 0
		for ; len(events) == 0 && calls < 100; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), timeout/16)
			events, _ = w.Next(ctx)
			cancel()
		}
		require.Len(t, events, 1)
		require.Equal(t, 1, l.counts()["read"], "%d calls", calls)
		require.NoError(t, w.Close())
	})
}
