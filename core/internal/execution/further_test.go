package execution

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// demanding has changes committed that share a further operation.
func (b *bed) demanding(k kind, d time.Time, f *demand, items ...int) {
	var changes []Change
	for _, n := range items {
		changes = append(changes, &step{item: n, due: d, kind: k, further: f})
	}
	b.rec.Submit(changes...)
	synctest.Wait()
}

func TestAFurtherOperationGoesWithTheCommitOnce(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.do(registry.Create("/asked", nil))
		check := &demand{op: registry.Check("/asked", registry.AnyVersion)}
		b.demanding(begin, due(1), check, 0, 1, 2)
		b.requireRequests(1, 0)
		require.Len(t, b.take().steps(), 3)
		require.Equal(t, 3, check.changes)
		write := &demand{op: registry.Create("/asked/result", []byte("done"))}
		b.demanding(end, due(1), write, 0, 1, 2)
		b.requireRequests(1, 0)
		require.Equal(t, "done", string(b.node("/asked/result").Value))
		b.requireAtRest(due(1))
	})
}

// What is demanded and does not hold refuses the changes that demand it, and no others.
func TestADemandThatDoesNotHoldRefusesItsChanges(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		check := &demand{op: registry.Check("/asked", registry.AnyVersion)}
		b.rec.Submit(&step{item: 0, due: due(1), kind: begin, further: check}, &step{item: 1, due: due(1), kind: begin})
		synctest.Wait()
		is := b.take()
		require.Len(t, is.no, 1)
		require.Equal(t, Overruled, is.no[0].why)
		require.Equal(t, 0, is.no[0].item)
		require.Len(t, is.steps(), 1)
		require.False(t, b.item(0).Running())
		require.True(t, b.item(1).Running())
	})
}

// What is written and cannot be is left out: it hinders no end.
func TestAFurtherWriteThatIsRefusedHindersNoEnd(t *testing.T) {
	for name, op := range map[string]registry.Op{
		"no parent": registry.Create("/nowhere/result", nil),
		"exists":    registry.Create(lifePath, nil),
		"gone":      registry.Set("/asked", nil, registry.AnyVersion),
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.submit(begin, due(1), 0, 1)
				synctest.Wait()
				write := &demand{op: op, forgo: true}
				b.demanding(end, due(1), write, 0, 1)
				b.pass(time.Second)
				require.True(t, write.gone)
				require.Len(t, slices.DeleteFunc(b.take().steps(), func(s *step) bool { return s.kind != end }), 2)
				b.requireAtRest(due(1))
			})
		})
	}
}
