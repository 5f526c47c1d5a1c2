package execution

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// contrary is a session at a server that lacks a change: what goes by a node is refused, and the node is shown as it
// was.
type contrary struct {
	registry.Session
	lacks   atomic.Bool
	commits atomic.Int32
}

func (c *contrary) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if !c.lacks.Load() {
		return c.Session.Commit(ctx, ops...)
	}
	c.commits.Add(1)
	return 0, &registry.CommitError{Index: 1, Op: ops[1], Err: registry.ErrVersion}
}

// A recorder asked such a server as fast as it answered.
func TestARegistryThatContradictsItself(t *testing.T) {
	var c *contrary
	wrap := func(s registry.Session) registry.Session { c = &contrary{Session: s}; return c }
	onBedOf(t, 3, wrap, func(b *bed) {
		c.lacks.Store(true)
		steps := b.submit(begin, due(1), numbers(3)...)
		b.pass(10*again - time.Millisecond)
		require.EqualValues(t, 10, c.commits.Load(), "once a second")
		is := b.take()
		require.Len(t, is.late, 10)
		for _, err := range is.late {
			require.ErrorIs(t, err, errContrary)
		}
		require.Empty(t, is.applied)
		require.Empty(t, is.gone, "what is registered may run on")
		c.lacks.Store(false)
		b.pass(again)
		synctest.Wait()
		require.Equal(t, steps, b.take().steps())
	})
}
