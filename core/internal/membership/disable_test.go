package membership

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/internal/session"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A lagging session reads the configuration as it was, and is refused what goes by that.
type lagging struct {
	registry.Session
	config  registry.Node
	commits int
}

func (l *lagging) Get(context.Context, ...string) ([]registry.Node, error) {
	return []registry.Node{l.config}, nil
}

func (l *lagging) Commit(_ context.Context, ops ...registry.Op) (registry.Revision, error) {
	l.commits++
	return 0, &registry.CommitError{Op: ops[0], Err: registry.ErrVersion}
}

// A server that lacks a change is not asked all the time.
func TestDisableBesideAServerThatLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, err := layout.New("shop", "orders")
		require.NoError(t, err)
		text, err := layout.MarshalConfig(layout.Config{JobName: "orders", ShardingTotalCount: 1})
		require.NoError(t, err)
		ses := &lagging{config: registry.Node{Path: job.Config(), Created: 1, Value: text}}
		m := &Member{cfg: Config{Job: job, Session: &session.Part{Session: &session.Session{Session: ses}}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, m.Disable(ctx, "it is broken"), registry.ErrVersion)
		require.Error(t, ctx.Err())
		require.Less(t, ses.commits, 100)
	})
}
