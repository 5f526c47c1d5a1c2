package harness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// Within bounds a wait of a test.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// Commit must succeed.
func Commit(t testing.TB, s registry.Session, ops ...registry.Op) registry.Revision {
	t.Helper()
	rev, err := s.Commit(Within(t, 20*time.Second), ops...)
	require.NoError(t, err)
	return rev
}

// Eventually polls until ok, or fails.
func Eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(d)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(t, "not within "+d.String(), what)
		}
	}
}

// A Follower keeps what a watcher delivers.
type Follower struct {
	t testing.TB

	// Watcher is the watcher itself; the test's end closes it.
	Watcher registry.Watcher
	// Nodes are the latest states by path, absences included.
	Nodes map[string]registry.Node
	// Synced and Events count what was delivered.
	Synced, Events int
}

// Follow returns a Follower without targets.
func Follow(t testing.TB, s registry.Session) *Follower {
	t.Helper()
	w, err := s.Watch(Within(t, 10*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return &Follower{t: t, Watcher: w, Nodes: map[string]registry.Node{}}
}

// Until takes events until ok, and checks that no path goes back.
func (f *Follower) Until(d time.Duration, what string, ok func() bool) {
	f.t.Helper()
	ctx := Within(f.t, d)
	for !ok() {
		events, err := f.Watcher.Next(ctx)
		require.NoError(f.t, err, "waiting for %s", what)
		for _, ev := range events {
			f.Events++
			if ev.Synced {
				f.Synced++
				continue
			}
			old := f.Nodes[ev.Node.Path]
			require.False(f.t, ev.Node.Exists() && ev.Node.Modified < old.Modified, "%s went back", ev.Node.Path)
			f.Nodes[ev.Node.Path] = ev.Node
		}
	}
}
