package coretest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/coretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hourly = core.JobConfig{Name: "orders", Cron: "0 0 * * * ?", Shards: 4, ItemParams: map[int]string{0: "north"}}

var errBroken = errors.New("broken")

// 1. Every item runs at each fire, and says what it was told.
func TestEveryItemRuns(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		c.Start("one", core.JobFunc(func(_ context.Context, s core.Shard) error {
			if s.Item == 3 {
				return errBroken
			}
			return nil
		}), hourly)
		due := c.Next("orders")
		require.Zero(t, due.Minute())
		require.Equal(t, time.Hour, c.Next("orders").Sub(due))
		runs := c.Runs("orders")
		require.Len(t, runs, 8)
		for _, r := range runs {
			require.True(t, r.Ended)
			require.Equal(t, r.Shard.Item == 3, r.Err != nil)
			require.Equal(t, r.Shard.Item == 0, r.Shard.Param == "north")
		}
	})
}

// 2. A job may take its time: fake time passes while it does.
func TestSlowJob(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		c.Start("one", core.JobFunc(func(context.Context, core.Shard) error {
			<-time.After(20 * time.Minute)
			return nil
		}), hourly)
		c.Next("orders")
		for _, r := range c.Runs("orders") {
			require.Equal(t, 20*time.Minute, r.Took)
		}
	})
}

// 3. The items of an instance that crashes are run by the others.
func TestCrash(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		idle := core.JobFunc(func(context.Context, core.Shard) error { return nil })
		one := c.Start("one", idle, hourly)
		two := c.Start("two", idle, hourly)
		require.Len(t, one.State().Jobs[0].Items, 2)
		one.Crash()
		c.WaitOwned()
		require.Len(t, two.State().Jobs[0].Items, 4)
		due := c.Next("orders")
		for _, r := range c.Runs("orders") {
			require.True(t, r.Shard.Due.Equal(due))
			require.Equal(t, two.State().Jobs[0].Instance, r.Shard.Instance)
		}
	})
}

// 4. A lost session cancels what runs; the instance comes back.
func TestExpire(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		causes := make(chan error, 100)
		one := c.Start("one", core.JobFunc(func(ctx context.Context, _ core.Shard) error {
			select {
			case <-ctx.Done():
				causes <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(50 * time.Minute):
				return nil
			}
		}), hourly)
		c.Advance(time.Hour) // the fire of that hour runs now
		before := one.State().Session
		one.Expire()
		require.ErrorIs(t, <-causes, core.ErrSessionLost)
		c.WaitOwned()
		require.NotEqual(t, before, one.State().Session)
		c.Next("orders")
	})
}

// 5. The function alone, now.
func TestFire(t *testing.T) {
	runs := coretest.Fire(t, core.JobFunc(func(_ context.Context, s core.Shard) error {
		if s.Item == 1 {
			panic("no")
		}
		return nil
	}), hourly)
	require.Len(t, runs, 4)
	require.Equal(t, "north", runs[0].Shard.Param)
	require.EqualError(t, runs[1].Err, "panic: no")
	require.Equal(t, core.SourceRequest, runs[1].Shard.Source)
}
