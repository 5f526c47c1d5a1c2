package execution

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// lagging is a session at a server that shows the ledger as it was for a while.
type lagging struct {
	registry.Session
	was  registry.Node
	till time.Time
}

func (l *lagging) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	nodes, err := l.Session.Get(ctx, paths...)
	for i, n := range nodes {
		if n.Path == l.was.Path && time.Now().Before(l.till) {
			nodes[i] = l.was
		}
	}
	return nodes, err
}

// A begin whose answer was lost is found in the ledger once that is shown, however long a server has shown it as it was.
func TestABeginWhoseAnswerWasLostAtAServerThatLags(t *testing.T) {
	l := &lagging{}
	onBedOf(t, 2, func(s registry.Session) registry.Session { l.Session = s; return l }, func(b *bed) {
		l.was, l.till = b.node(ledgerPath), time.Now().Add(10*time.Second)
		b.fates(memory.AnswerLost)
		b.submit(begin, due(1), 0)
		b.pass(5 * time.Second)
		b.submit(begin, due(2), 1)
		b.pass(time.Minute)
		is := b.take()
		t.Log(is.steps(), is.no, b.item(0), b.item(1))
		require.Len(t, is.steps(), 2)
		require.Empty(t, is.no)
	})
}
