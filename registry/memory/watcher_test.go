package memory_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// pull returns what can be had without waiting, one line for each event.
func pull(t testing.TB, w registry.Watcher) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	lines := []string{}
	for {
		events, err := w.Next(ctx)
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return lines
		}
		for _, ev := range events {
			lines = append(lines, line(ev))
		}
	}
}

func line(ev registry.Event) string {
	switch {
	case ev.Synced:
		return fmt.Sprintf("%s %s synced", ev.Scope, ev.Path)
	case !ev.Node.Exists():
		return fmt.Sprintf("%s %s: %s gone", ev.Scope, ev.Path, ev.Node.Path)
	}
	return fmt.Sprintf("%s %s: %s=%s", ev.Scope, ev.Path, ev.Node.Path, ev.Node.Value)
}

func watch(t testing.TB, s registry.Store) registry.Watcher {
	t.Helper()
	w, err := s.Watch(context.Background())
	require.NoError(t, err)
	return w
}

func TestWatchInitialThenChangesInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		commit(t, ses, registry.Create("/d", []byte("d")), registry.Create("/d/b", []byte("1")),
			registry.Create("/d/a", []byte("2")), registry.Create("/d/a/deep", nil))
		w := watch(t, ses)
		require.NoError(t, w.Add("/d", registry.Children))
		require.NoError(t, w.Add("/d", registry.Self))
		require.NoError(t, w.Add("/x", registry.Self))
		require.NoError(t, w.Add("/x", registry.Children))
		require.Equal(t, []string{
			"children /d: /d/a=2", "children /d: /d/b=1", "children /d synced",
			"self /d: /d=d", "self /d synced",
			"self /x: /x gone", "self /x synced", "children /x synced",
		}, pull(t, w))
		commit(t, ses, registry.Create("/x", nil), registry.Set("/d/b", []byte("3"), 0), registry.Create("/x/y", []byte("y")),
			registry.Delete("/d/a/deep", registry.AnyVersion), registry.Delete("/d/a", registry.AnyVersion))
		require.Equal(t, []string{
			"self /x: /x=", "children /d: /d/b=3", "children /x: /x/y=y", "children /d: /d/a gone",
		}, pull(t, w))
		require.Empty(t, pull(t, w))
	})
}

func TestWatchCoalesces(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		commit(t, ses, registry.Create("/d", nil), registry.Create("/d/n", nil))
		w := watch(t, ses)
		require.NoError(t, w.Add("/d", registry.Children))
		require.NoError(t, w.Add("/d/n", registry.Self))
		commit(t, ses, registry.Set("/d/n", []byte("early"), 0))
		require.Equal(t, []string{"children /d: /d/n=early", "children /d synced", "self /d/n: /d/n=early", "self /d/n synced"}, pull(t, w))

		for i := range 1000 {
			commit(t, ses, registry.Set("/d/n", fmt.Append(nil, i), registry.AnyVersion))
		}
		require.Equal(t, []string{"self /d/n: /d/n=999", "children /d: /d/n=999"}, pull(t, w))

		commit(t, ses, registry.Create("/d/m", nil)) // comes and goes unseen
		commit(t, ses, registry.Delete("/d/m", 0))
		require.Empty(t, pull(t, w))

		commit(t, ses, registry.Delete("/d/n", registry.AnyVersion))
		created := commit(t, ses, registry.Create("/d/n", []byte("again")))
		ctx := context.Background()
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Len(t, events, 2)
		for _, ev := range events {
			require.Equal(t, created, ev.Node.Created)
		}

		commit(t, ses, registry.Delete("/d/n", registry.AnyVersion)) // seen: its end must be, too
		commit(t, ses, registry.Create("/d/n", nil))
		commit(t, ses, registry.Delete("/d/n", registry.AnyVersion))
		require.Equal(t, []string{"self /d/n: /d/n gone", "children /d: /d/n gone"}, pull(t, w))
	})
}

func TestWatchAddAndRemove(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		ctx := context.Background()
		_, ses := dial(t, srv)
		commit(t, ses, registry.Create("/a", nil), registry.Create("/b", nil))
		w := watch(t, ses)
		require.ErrorIs(t, w.Add("a", registry.Self), registry.ErrInvalid)
		require.ErrorIs(t, w.Add("/a", registry.Scope(7)), registry.ErrInvalid)
		w.Remove("/never", registry.Self)
		require.NoError(t, w.Add("/a", registry.Self))
		require.NoError(t, w.Add("/b", registry.Self))
		w.Remove("/a", registry.Self)
		require.Equal(t, []string{"self /b: /b=", "self /b synced"}, pull(t, w))
		require.NoError(t, w.Add("/a", registry.Self))
		require.NoError(t, w.Add("/b", registry.Self))
		require.Equal(t, []string{"self /a: /a=", "self /a synced"}, pull(t, w))
		commit(t, ses, registry.Set("/a", []byte("1"), 0), registry.Set("/b", []byte("1"), 0))
		w.Remove("/a", registry.Self)
		commit(t, ses, registry.Set("/a", []byte("2"), 1))
		require.NoError(t, w.Add("/a", registry.Self))
		require.Equal(t, []string{"self /b: /b=1", "self /a: /a=2", "self /a synced"}, pull(t, w))

		require.NoError(t, w.Add("/d", registry.Self))
		for range 3 {
			require.NoError(t, w.Add("/c", registry.Self))
			w.Remove("/c", registry.Self)
		}
		require.Equal(t, []string{"self /d: /d gone", "self /d synced"}, pull(t, w))

		waiting := background(func() error { _, err := w.Next(ctx); return err })
		synctest.Wait()
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
		require.ErrorIs(t, <-waiting, registry.ErrClosed)
		require.ErrorIs(t, w.Add("/c", registry.Self), registry.ErrClosed)
	})
}

func TestWatchEndsWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		_, ses := dial(t, srv)
		w := watch(t, ses)
		waiting := background(func() error { _, err := w.Next(context.Background()); return err })
		srv.Expire(ses.ID())
		require.ErrorIs(t, <-waiting, registry.ErrSessionLost)
		require.ErrorIs(t, w.Add("/c", registry.Self), registry.ErrSessionLost)
		require.NoError(t, w.Close())
	})
}

// A target that ended is not kept: its events would be counted as hit.
func TestWatchIsFreed(t *testing.T) {
	ends := map[string]func(*memory.Server, registry.Session, registry.Watcher){
		"remove":  func(_ *memory.Server, _ registry.Session, w registry.Watcher) { w.Remove("/n", registry.Self) },
		"close":   func(_ *memory.Server, _ registry.Session, w registry.Watcher) { _ = w.Close() },
		"session": func(_ *memory.Server, s registry.Session, _ registry.Watcher) { _ = s.Close(context.Background()) },
		"loss":    func(srv *memory.Server, s registry.Session, _ registry.Watcher) { srv.Expire(s.ID()); <-s.Done() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg, ses := dial(t, srv)
				_, other := dial(t, srv)
				w := watch(t, ses)
				require.NoError(t, w.Add("/n", registry.Self))
				hits := func(op registry.Op) int {
					defer reg.LoseAnswers()()
					before := reg.Hits()
					commit(t, other, op)
					return reg.Hits() - before
				}
				require.Equal(t, 1, hits(registry.Create("/n", nil)))
				end(srv, ses, w)
				require.Zero(t, hits(registry.Delete("/n", 0)))
			})
		})
	}
}

func TestWatchResumesAfterFaults(t *testing.T) {
	faults := map[string]func(*memory.Registry, *memory.Server) func(){
		"refuse":  func(r *memory.Registry, _ *memory.Server) func() { return r.Refuse() },
		"answers": func(r *memory.Registry, _ *memory.Server) func() { return r.LoseAnswers() },
		"both": func(r *memory.Registry, _ *memory.Server) func() {
			requests, answers := r.LoseRequests(), r.LoseAnswers()
			return func() { requests(); answers() }
		},
		"pause": func(_ *memory.Registry, s *memory.Server) func() { return s.Pause() },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *memory.Server) {
				reg, ses := dial(t, srv)
				_, other := dial(t, srv)
				w := watch(t, ses)
				require.NoError(t, w.Add("/n", registry.Self))
				require.Len(t, pull(t, w), 2)
				heal := fault(reg, srv)
				written := background(func() error {
					_, err := other.Commit(context.Background(), registry.Create("/n", []byte("v")))
					return err
				})
				require.NoError(t, w.Add("/m", registry.Self))
				require.Empty(t, pull(t, w))
				got := make(chan []registry.Event)
				go func() {
					events, _ := w.Next(context.Background())
					got <- events
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, got)
				heal()
				lines := []string{}
				for _, ev := range <-got {
					lines = append(lines, line(ev))
				}
				require.NoError(t, <-written)
				lines = append(lines, pull(t, w)...)
				require.ElementsMatch(t, []string{"self /n: /n=v", "self /m: /m gone", "self /m synced"}, lines)
			})
		})
	}
}

// With requests lost, what is watched already goes on; a new target waits.
func TestWatchUnderLostRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *memory.Server) {
		reg, ses := dial(t, srv)
		_, other := dial(t, srv)
		w := watch(t, ses)
		require.NoError(t, w.Add("/n", registry.Self))
		require.Len(t, pull(t, w), 2)
		heal := reg.LoseRequests()
		require.NoError(t, w.Add("/m", registry.Self))
		commit(t, other, registry.Create("/n", nil))
		require.Equal(t, []string{"self /n: /n="}, pull(t, w))
		heal()
		require.Equal(t, []string{"self /m: /m gone", "self /m synced"}, pull(t, w))
	})
}

func TestWatchTenThousandNodes(t *testing.T) { bubble(t, watchTenThousandNodes) }

func watchTenThousandNodes(t *testing.T, srv *memory.Server) {
	_, ses := dial(t, srv)
	commit(t, ses, registry.Create("/d", nil))
	w := watch(t, ses)
	const total = 10_000
	for i := range total {
		path := fmt.Sprintf("/d/%05d", i)
		commit(t, ses, registry.Create(path, nil))
		require.NoError(t, w.Add(path, registry.Self))
	}
	require.Len(t, pull(t, w), 2*total)
	require.NoError(t, w.Add("/d", registry.Children))
	require.Len(t, pull(t, w), total+1)
	names, err := ses.Children(context.Background(), "/d")
	require.NoError(t, err)
	require.Len(t, names, total)
	require.IsIncreasing(t, names)
	for i := range total {
		w.Remove(fmt.Sprintf("/d/%05d", i), registry.Self)
	}
	require.NoError(t, registry.DeleteTree(context.Background(), ses, "/d"))
	require.Len(t, pull(t, w), total)
	require.Empty(t, srv.Dump())
}
