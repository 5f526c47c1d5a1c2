package core_test

import (
	"context"
	"sync/atomic"
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

// What runs while Stop waits runs nowhere else meanwhile, whether runs are recorded or not, and whoever else has its item.
func TestWhatRunsWhileStopWaitsRunsNowhereElse(t *testing.T) {
	for name, monitor := range map[string]core.Monitor{"recorded": core.MonitorOn, "unrecorded": core.MonitorOff} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w, release := newWitness(), make(chan struct{})
				var holder atomic.Pointer[string]
				w.hold = func(ctx context.Context, shard core.Shard) error {
					if id := holder.Load(); id != nil && shard.Instance == *id {
						select {
						case <-release:
						case <-ctx.Done():
						}
					}
					return nil
				}
				cfg := core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 4, Monitor: monitor}
				s, c := b.start("s", w, cfg), b.start("c", w, cfg)
				b.until("shared", func() bool { return allOwned(4, s, c) && len(s.job().Items) == 2 })
				id := s.job().Instance
				holder.Store(&id)
				b.until("it runs", func() bool { return len(s.job().Running) == 2 })
				running := s.job().Running
				stopped := make(chan error, 1)
				go func() { stopped <- s.Stop(b.Context()) }()
				pause(20 * time.Second)
				require.Equal(b, running, s.job().Running)
				require.Len(b, c.job().Items, 2)
				close(release)
				require.NoError(b, <-stopped)
				b.until("the other has all", func() bool { return allOwned(4, c) })
				before := w.count()
				b.until("and runs them", func() bool { return w.count() >= before+8 })
				require.Empty(b, w.overlap)
				c.stop(b)
			})
		})
	}
}

// Whom somebody has shut down from outside says so, also when Stop is called before it has left.
func TestAnInstanceThatWasShutDownSaysSoAfterStop(t *testing.T) {
	inBubble(t, func(b *bed) {
		hold := func(release chan struct{}) *witness {
			w := newWitness()
			w.hold = func(context.Context, core.Shard) error { <-release; return nil }
			return w
		}
		first, last := make(chan struct{}), make(chan struct{})
		cfg := core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 1}
		s := b.prepare("s", hold(first), cfg)
		cfg.Name = "other"
		require.NoError(b, s.Add(hold(last), cfg))
		require.NoError(b, s.Start(b.Context()))
		b.until("both run", func() bool {
			return len(s.State().Jobs[0].Running) == 1 && len(s.State().Jobs[1].Running) == 1
		})
		b.remove(s, b.path(s, "instances/"+s.job().Instance))
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(b.Context()) }()
		pause(5 * time.Second)
		close(first)
		b.until("one has left", func() bool { return len(of[event.Stopped](s)) == 1 })
		close(last)
		require.NoError(b, <-stopped)
		told := of[event.Stopped](s)
		require.Len(b, told, 2)
		require.Equal(b, event.StopShutDown, told[0].Reason)
		require.Equal(b, event.StopCalled, told[1].Reason)
	})
}
