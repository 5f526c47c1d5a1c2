package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry/memory"
)

// runs counts what ran, by fire and item.
type runs struct {
	mu   sync.Mutex
	seen map[string]int
}

func (r *runs) job() core.JobFunc {
	return func(_ context.Context, s core.Shard) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.seen == nil {
			r.seen = map[string]int{}
		}
		r.seen[fmt.Sprintf("%d/%d", s.Due.Unix(), s.Item)]++
		return nil
	}
}

func TestOneInstanceRunsEveryFireOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry("shop")
		defer reg.Close()
		var r runs
		s := core.New(reg, core.WithListener(func(e event.Event) { t.Logf("%v %T %+v", time.Now().Format("05.000"), e, e) }))
		require.NoError(t, s.Add(r.job(), core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 3}))
		require.NoError(t, s.Start(t.Context()))
		pause(61 * time.Second)
		require.NoError(t, s.Stop(t.Context()))
		require.Len(t, r.seen, 36)
		for k, n := range r.seen {
			require.Equal(t, 1, n, k)
		}
		t.Log(srv.Dump())
	})
}
