package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry/memory"
)

func Example() {
	_ = run(context.Background())
	// Output:
	// the run of now:   <nil>
	// the one before it: a later run has written this row
}

// A real zombie: its session has ended, the item runs elsewhere, and it writes all the same.
func TestAZombieIsRefused(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "stock.db"))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), table)
	require.NoError(t, err)

	srv := memory.NewServer(memory.Config{SessionTimeout: 2 * time.Second})
	start := func(name string, work core.JobFunc) (*core.Scheduler, func()) {
		reg := srv.Registry("shop")
		sched := core.New(reg, core.WithInstanceName(name), core.WithIP("127.0.0.1"), core.WithLogger(nil))
		require.NoError(t, sched.Add(work, core.JobConfig{Name: "count", Cron: "* * * * * ?", Shards: 1}))
		require.NoError(t, sched.Start(t.Context()))
		return sched, func() {
			require.NoError(t, sched.Stop(context.Background()))
			require.NoError(t, reg.Close())
		}
	}
	paused, wake, woken := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	first := true
	zombie, end := start("zombie", func(_ context.Context, s core.Shard) error { // it does not heed its context
		if first {
			first = false
			close(paused)
			<-wake
			woken <- write(context.Background(), db, s, "zombie")
		}
		return nil
	})
	defer end()
	<-paused
	written := make(chan error, 100)
	_, end = start("other", func(ctx context.Context, s core.Shard) error {
		written <- write(ctx, db, s, "other")
		return nil
	})
	defer end()
	srv.Expire(zombie.State().Session)
	require.NoError(t, <-written)
	close(wake)
	require.ErrorIs(t, <-woken, errZombie)
	var counted string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT counted FROM stock WHERE item = 0").Scan(&counted))
	require.Equal(t, "other", counted)
}
