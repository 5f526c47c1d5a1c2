package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// An operator pauses an instance by its stable name: it gives its items away, begins
// nothing, does not lead, and stays so over a restart.
func TestPausedInstance(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a, c := b.start("a", w, everySecond), b.start("c", w, everySecond, core.WithIP("127.0.0.2"))
		b.until("both fire", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && w.count() >= 8 })
		b.create(c, b.own(c, "inforce/paused@a"), "")
		b.until("the other has all", func() bool { return len(c.job().Items) == 4 && allOwned(4, a, c) })
		require.Contains(b, a.job().Disabled, "paused")
		b.until("the other leads", func() bool { return a.job().Leader == c.job().Instance && c.job().Leader == c.job().Instance })
		a.stop(b)
		a = b.start("a", w, everySecond)
		b.until("it says so", func() bool { return strings.Contains(a.job().Disabled, "paused") })
		ran := w.count()
		b.until("the other fires on", func() bool { return w.count() >= ran+8 })
		require.Empty(b, a.job().Items)
		b.remove(c, b.own(c, "inforce/paused@a"))
		b.until("both share again", func() bool { return allOwned(4, a, c) && len(a.job().Items) == 2 && a.job().Disabled == "" })
		for _, in := range []*instance{a, c} {
			in.stop(b)
		}
		require.Empty(b, w.doubled())
		require.Empty(b, w.missing(4, time.Second))
	})
}

// A process that begins nothing since an operator has switched it off says so, also when it starts.
func TestASwitchedOffInstanceSaysSo(t *testing.T) {
	inBubble(t, func(b *bed) {
		log := &page{}
		said := func(n int, text string) func() bool {
			return func() bool { return strings.Count(log.String(), text) == n }
		}
		a := b.start("a", newWitness(), everySecond, core.WithLogger(log.logger()))
		paused := "the instance a is paused; nothing begins here until somebody resumes it (package admin, Resume)"
		b.create(a, b.own(a, "inforce/paused@a"), "")
		b.until("it says that it is paused", said(1, paused))
		a.stop(b)
		a = b.start("a", newWitness(), everySecond, core.WithLogger(log.logger()))
		b.until("it says so when it starts", said(2, paused))
		b.remove(a, b.own(a, "inforce/paused@a"))
		b.until("it begins", func() bool { return a.job().Disabled == "" })
		b.set(a, b.path(a, "servers/127.0.0.1"), "DISABLED")
		b.until("it says that its server is disabled", said(1,
			"the server 127.0.0.1 is disabled; nothing begins here until somebody enables it (package admin, Enable)"))
		b.set(a, b.path(a, "servers/127.0.0.1"), "ENABLED")
		b.until("it begins", func() bool { return a.job().Disabled == "" })
		a.stop(b)
		require.Equal(b, 3, strings.Count(log.String(), "nothing begins here"), "each is told once: %s", log.String())
	})
}

// Where all instances are paused nothing begins, and what was due is accounted for when one
// is resumed.
func TestPausedAlone(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 8 })
		b.create(a, b.own(a, "inforce/paused@a"), "")
		b.until("it is paused", func() bool { return a.job().Disabled != "" })
		pause(1200 * time.Millisecond)
		ran := w.count()
		pause(5 * time.Second)
		require.Equal(b, ran, w.count())
		b.remove(a, b.own(a, "inforce/paused@a"))
		b.until("it fires again", func() bool { return w.count() >= ran+8 })
		a.stop(b)
		require.NotEmpty(b, skips(a, event.SkipDisabled))
		require.Empty(b, w.doubled())
	})
}

// A job that an operator has removed is not made again by a process that starts with it.
func TestRemovedJobIsNotMadeAgain(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		a.stop(b)
		own, config := strings.TrimSuffix(b.own(a, ""), "/"), b.path(a, "config")
		b.set(a, own, string(layout.MarshalTombstone(layout.Tombstone{Removed: time.Now()})))
		b.remove(a, config)
		c := b.prepare("c", w, everySecond)
		err := c.Start(b.Context())
		require.ErrorIs(b, err, core.ErrConfig)
		require.ErrorContains(b, err, "an operator removed this job")
		nodes, err := b.store(a).Get(b.Context(), config)
		require.NoError(b, err)
		require.False(b, nodes[0].Exists())
		b.set(a, own, "")
		d := b.start("d", w, everySecond)
		ran := w.count()
		b.until("it fires", func() bool { return w.count() >= ran+4 })
		d.stop(b)
	})
}

// The mark may come while a process prepares: what it makes then is refused.
func TestRemovedWhilePreparing(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		a.stop(b)
		b.remove(a, b.path(a, "config"))
		c := b.prepare("c", w, everySecond)
		marked := false
		c.gate.hold(func(ops []registry.Op) {
			if !marked { // it has looked, and is about to write
				marked = true
				b.set(a, strings.TrimSuffix(b.own(a, ""), "/"), string(layout.MarshalTombstone(layout.Tombstone{Removed: time.Now()})))
			}
		})
		require.ErrorContains(b, c.Start(b.Context()), "an operator removed this job")
		nodes, err := b.store(a).Get(b.Context(), b.path(a, "config"))
		require.NoError(b, err)
		require.False(b, nodes[0].Exists())
	})
}

// A server whose node is removed while an instance registers stands again.
func TestRegistrationDemandsItsServer(t *testing.T) {
	inBubble(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		a.stop(b)
		c := b.prepare("c", w, everySecond)
		removed := false
		c.gate.hold(func(ops []registry.Op) {
			for _, op := range ops {
				if op.Kind == registry.OpCreateEphemeral && !removed {
					removed = true
					b.remove(a, b.path(a, "servers/127.0.0.1"))
				}
			}
		})
		require.NoError(b, c.Start(b.Context()))
		ran := w.count()
		b.until("it fires", func() bool { return w.count() >= ran+4 })
		require.True(b, removed)
		c.stop(b)
	})
}

// Notices of jobs that were shut down go at once, Stopped says why, and so does Run.
func TestShutDownLeavesNothing(t *testing.T) {
	onEach(t, func(b *bed) {
		w := newWitness()
		a := b.start("a", w, everySecond)
		b.until("it fires", func() bool { return w.count() >= 4 })
		id := a.job().Instance
		b.remove(a, b.path(a, "instances/"+id))
		b.until("it has left", func() bool { return a.job().Phase == core.PhaseStopped })
		nodes, err := b.store(a).Get(b.Context(), b.own(a, "lives/"+id), b.own(a, "notices/"+id), b.own(a, "rounds/"+id))
		require.NoError(b, err)
		for _, n := range nodes {
			require.False(b, n.Exists(), n.Path)
		}
		a.stop(b)
		told := of[event.Stopped](a)
		require.Len(b, told, 1)
		require.Equal(b, event.StopShutDown, told[0].Reason)
		require.Equal(b, id, told[0].Instance)
	})
}

// An instance that was elected, and shut down before its watch had shown that, left the leader's node to a session that
// lives on: nobody led then.
func TestWhoIsShutDownWhenElectedGivesTheTermBack(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", newWitness(), everySecond)
		b.until("it leads", func() bool { return a.job().Leader != "" })
		c := b.start("c", newWitness(), everySecond)
		b.until("both own", func() bool { return allOwned(4, a, c) })
		leader, elected := b.path(a, "leader/election/instance"), make(chan struct{})
		c.gate.hold(func(ops []registry.Op) {
			if slices.ContainsFunc(ops, func(op registry.Op) bool { return op.Path == leader }) {
				c.gate.hold(nil)
				c.gate.lag(leader)
				close(elected)
			}
		})
		a.stop(b)
		<-elected
		synctest.Wait()
		id := c.job().Instance
		b.remove(c, b.path(c, "instances/"+id))
		b.until("it has left", func() bool { return c.job().Phase == core.PhaseStopped })
		nodes, err := b.store(c).Get(b.Context(), leader, b.own(c, "term"), b.own(c, "lives/"+id))
		require.NoError(b, err)
		for _, n := range nodes {
			require.False(b, n.Exists(), n.Path)
		}
		d := b.start("d", newWitness(), everySecond)
		b.until("it owns all", func() bool { return allOwned(4, d) })
	})
}

func TestLifeNamesItsHost(t *testing.T) {
	inBubble(t, func(b *bed) {
		a := b.start("a", core.JobFunc(func(context.Context, core.Shard) error { return nil }), everySecond)
		nodes, err := b.store(a).Get(b.Context(), b.own(a, "lives/"+a.job().Instance))
		require.NoError(b, err)
		life, err := layout.UnmarshalLife(nodes[0].Value)
		require.NoError(b, err)
		require.NotEmpty(b, life.Host)
	})
}
