package core_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
)

// On ZooKeeper itself: somebody takes the right to write the ledger away.
func TestTheLedgerIsMadeReadOnly(t *testing.T) {
	s := startZooKeeper(t)
	b := s.bed(t)
	w := newWitness()
	a := b.start("a", w, everySecond)
	b.until("it fires", func() bool { return w.count() >= 4 })
	allow := s.readOnly(t, "/elasticron"+b.path(a, "ledgers/"+a.job().Instance))
	b.until("it is told", func() bool { return deniedWarning(a) })
	ran := w.count()
	allow()
	b.until("it fires again", func() bool { return w.count() >= ran+8 })
	require.Empty(b, of[event.SessionLost](a))
	require.Empty(b, w.doubled())
}

func deniedWarning(in *instance) bool {
	return slices.ContainsFunc(of[event.Warning](in), func(e event.Warning) bool { return errors.Is(e.Err, registry.ErrDenied) })
}

// Whose writes are denied keeps its registration and says so, asks now and then
// instead of without a pause, and goes on where it was once it may.
func TestWritesAreDeniedForAWhile(t *testing.T) {
	for name, fates := range map[string][]fate{
		"first": {deniedFirst}, "last": {deniedLast}, "whole": {deniedWhole},
		"applied before": {answerLost, answerLost, deniedLast}, "lost before": {requestLost, requestLost, deniedWhole},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				w := newWitness()
				cfg := everySecond
				a := b.start("a", w, cfg)
				b.until("it fires", func() bool { return w.count() >= 2*cfg.Shards })
				id := a.job().Instance
				var sent int
				a.gate.decide(func([]registry.Op) fate { // its mutex is held
					sent++
					return fates[min(sent, len(fates))-1]
				})
				b.setConfig(a, "shardingTotalCount: 4", "shardingTotalCount: 6") // the leader has work, too
				before := a.gate.calls.Load()
				pause(6 * time.Second)
				asked := a.gate.calls.Load() - before
				require.Positive(b, asked)
				require.Less(b, asked, int64(60))
				require.True(b, deniedWarning(a))
				a.gate.decide(nil)
				b.until("it is settled", func() bool { return allOwned(6, a) })
				ran := w.count()
				b.until("it fires again", func() bool { return w.count() >= ran+12 })
				require.Equal(b, id, a.job().Instance)
				require.Empty(b, of[event.SessionLost](a))
				require.Empty(b, w.doubled())
			})
		})
	}
}
