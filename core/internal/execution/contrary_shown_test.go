package execution

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
)

// unshown is a session at a server that lacks a change of the ledger: the recorder's own, and nothing can be shown by it.
type unshown struct {
	registry.Session
	lacks   atomic.Bool
	commits atomic.Int32
}

func (u *unshown) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if u.lacks.Load() && ops[0].Kind == registry.OpCheck && ops[0].Path == ledgerPath {
		u.commits.Add(1)
		return 0, &registry.CommitError{Op: ops[0], Err: registry.ErrVersion}
	}
	return u.Session.Commit(ctx, ops...)
}

// What is to be shown goes by the ledger's version: where that is refused, and shown as it was, nobody asks as fast as
// the registry answers.
func TestWhatIsShownIsAskedForRarely(t *testing.T) {
	var u *unshown
	wrap := func(s registry.Session) registry.Session { u = &unshown{Session: s}; return u }
	onBedOf(t, 5, wrap, func(b *bed) {
		u.lacks.Store(true)
		b.submit(begin, due(1), 0, 1)
		b.pass(showAfter + 10*again)
		require.LessOrEqual(t, u.commits.Load(), int32(12), "once a second")
		b.requireShown()
		u.lacks.Store(false)
		b.pass(2 * again)
		b.requireShown(0, 1)
		_ = b.take()
		b.submit(end, due(1), 0, 1)
		b.pass(time.Second)
		b.requireShown()
	})
}
