package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// What a long run keeps Stop waiting for was all that its instance did, and it kept what it did not run, of all its
// jobs; it was even given what others ran.
func TestWhatDoesNotRunMovesWhileStopWaits(t *testing.T) {
	inBubble(t, func(b *bed) {
		stuck, release := newWitness(), make(chan struct{})
		stuck.hold = func(ctx context.Context, _ core.Shard) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}
		w := newWitness()
		cfg := withFailover(core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 6})
		a, s, c := b.start("a", stuck, cfg), b.prepare("s", stuck, cfg), b.start("c", w, cfg)
		other := cfg
		other.Name = "other"
		require.NoError(b, s.Add(w, other))
		require.NoError(b, s.Start(b.Context()))
		require.NoError(b, c.Add(w, other))
		b.until("shared", func() bool { return allOwned(6, a, s, c) && len(a.job().Running) == 2 && len(s.job().Running) == 2 })
		running := s.job().Running
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(b.Context()) }()
		b.until("it stops", func() bool { return s.State().Stopping })
		b.crash(a)
		pause(10 * time.Second)
		require.Equal(b, running, s.job().Items)
		require.Len(b, c.job().Items, 4)
		require.Len(b, c.State().Jobs[1].Items, 6)
		require.Equal(b, core.PhaseStopped, s.State().Jobs[1].Phase)
		close(release)
		require.NoError(b, <-stopped)
		c.stop(b)
		for _, e := range of[event.Stopped](s) {
			require.Equal(b, event.StopCalled, e.Reason)
		}
		require.Len(b, of[event.Stopped](s), 2)
	})
}

// An instance that dies while it waits for what runs has crashed: that runs again.
func TestWhatRunsWhenAStoppingInstanceDiesRunsAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		stuck := newWitness()
		stuck.hold = func(ctx context.Context, _ core.Shard) error { <-ctx.Done(); return nil }
		w := newWitness()
		cfg := withFailover(core.JobConfig{Name: "hello", Cron: "0/30 * * * * ?", Shards: 4})
		s, c := b.start("s", stuck, cfg), b.start("c", w, cfg)
		b.until("shared", func() bool { return allOwned(4, s, c) && len(s.job().Running) == 2 })
		running := s.job().Running
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(b.Context()) }()
		b.until("it stops", func() bool { return s.State().Stopping })
		pause(3 * time.Second)
		require.Equal(b, running, s.job().Items)
		b.crash(s)
		b.until("what it ran runs again", func() bool { return len(w.again()) == len(running) })
		var again []int
		for _, shard := range w.again() {
			again = append(again, shard.Item)
			require.Equal(b, 2, shard.Attempt)
		}
		require.ElementsMatch(b, running, again)
		require.NoError(b, <-stopped)
		c.stop(b)
	})
}
