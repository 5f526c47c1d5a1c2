package zookeeper

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

// A second target of what is watched already gets the state of a read that began
// after its Add, and the first one does not hear it again.
func TestAddReadsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "1")
		first, second := view(t, s), view(t, s)
		first.add("/a", registry.Self)
		synctest.Wait()
		events, err := first.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 2)
		require.Equal(t, 1, f.reads)
		second.add("/a", registry.Self)
		synctest.Wait()
		require.Equal(t, 2, f.reads)
		events, err = second.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 2)
		require.Equal(t, "1", string(events[0].Node.Value))
		events[0].Node.Value[0] = 'x'
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = first.w.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A read that was under way when a target was added does not count for it: the
// session may have written since.
func TestAddDoesNotTakeWhatWasOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "old")
		f.late = func(string, bool) time.Duration { return 10 * time.Millisecond }
		notify := f.notify
		f.notify = func(zk.Event) {} // an event that is late
		first, second := view(t, s), view(t, s)
		first.add("/a", registry.Self)
		elapse(15 * time.Millisecond) // the service has answered, the answer is not here
		f.put("/a", "new")
		second.add("/a", registry.Self)
		for i, want := range []string{"old", "new"} {
			events, err := []*viewer{first, second}[i].w.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, string(events[0].Node.Value))
		}
		f.notify = notify
	})
}

// A child that went and came between two lists, so that none lacks it, and whose
// answer from between arrives last: nothing but the list can say to ask again.
func TestListAsksAgainForWhatIsBeingRead(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "first")
		v := view(t, s)
		v.add("/a", registry.Children)
		synctest.Wait()
		f.late = func(what string, served bool) time.Duration {
			switch {
			case what == "list /a" && !served:
				return 4 * time.Millisecond // served at 5
			case what == "data /a/x" && !served:
				return 2 * time.Millisecond // served at 2
			case what == "data /a/x":
				return 20 * time.Millisecond
			}
			return 0
		}
		f.put("/a/x", "second")
		elapse(time.Millisecond)
		f.remove("/a/x")
		elapse(2 * time.Millisecond)
		f.put("/a/x", "third")
		elapse(time.Second)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			v.take(e)
		}
		require.Equal(t, f.want(pending.Key{Path: "/a", Scope: registry.Children}), v.state(pending.Key{Path: "/a", Scope: registry.Children}))
	})
}

func TestDeniedTargets(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "")
		f.put("/b", "")
		f.fails = func(path string) error {
			if path == "/a/x" {
				return zk.ErrNoAuth
			}
			return nil
		}
		v := view(t, s)
		v.add("/a/x", registry.Self)
		_, err := v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "watch /a/x (self): ")
		v.add("/a", registry.Children)
		_, err = v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.ErrorContains(t, err, "watch /a (children): zookeeper: watch /a/x: ")
		v.add("/b", registry.Self)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/b", events[0].Path)
		require.NoError(t, v.w.Close())
		synctest.Wait()
		require.Empty(t, s.tracker.nodes)
	})
}

// The end of a child is what its watch reports: it is not asked for again.
func TestEndOfAChildCostsNoRead(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		for i := range 100 {
			f.put(fmt.Sprint("/a/", i), "")
		}
		v := view(t, s)
		v.add("/a", registry.Children)
		synctest.Wait()
		require.Equal(t, 101, f.reads)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 101)
		for i := range 100 {
			f.remove(fmt.Sprint("/a/", i))
		}
		synctest.Wait()
		require.LessOrEqual(t, f.reads, 201, "lists only")
		events, err = v.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 100)
		require.Len(t, s.tracker.nodes, 1)
		require.Empty(t, s.tracker.nodes["/a"].names)
	})
}

func TestWatchersGiveWatchesBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "")
		v := view(t, s)
		v.add("/a", registry.Children)
		v.add("/a", registry.Self)
		v.add("/a/x", registry.Self)
		synctest.Wait()
		v.remove("/a", registry.Children)
		synctest.Wait()
		require.Equal(t, []string{"list /a"}, f.disarmed, "the nodes are watched by themselves too")
		require.NoError(t, v.w.Close())
		synctest.Wait()
		require.ElementsMatch(t, []string{"list /a", "data /a", "data /a/x"}, f.disarmed)
		require.Empty(t, s.tracker.nodes)
	})
}

func TestWatcherEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.late = func(string, bool) time.Duration { return time.Hour }
		s := live(f, Config{Namespace: "test"})
		v := view(t, s)
		v.add("/a", registry.Self)
		synctest.Wait()
		require.NoError(t, s.Close(t.Context()), "which does not wait for the read")
		_, err := v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.ErrorIs(t, v.w.Add("/b", registry.Self), registry.ErrSessionLost)
		require.NoError(t, v.w.Close())
		require.ErrorIs(t, v.w.Add("/b", registry.Self), registry.ErrClosed)
		ran := false
		s.Spawn(func(ctx context.Context) { ran = ctx.Err() != nil })
		require.True(t, ran, "what is spawned after the end runs at once, with a context that has ended")
	})
}
