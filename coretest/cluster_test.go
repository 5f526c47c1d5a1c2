package coretest_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/coretest"
)

// A fire for which a later run stands, or that was skipped with others, is complete, too.
func TestManyFiresAtOnce(t *testing.T) {
	for _, policy := range []core.Misfire{core.MisfireOnce, core.MisfireSkip} {
		coretest.Run(t, func(c *coretest.Cluster) {
			long := hourly
			long.Misfire = policy
			c.Start("one", core.JobFunc(func(context.Context, core.Shard) error {
				<-time.After(150 * time.Minute) // two fires come due meanwhile
				return nil
			}), long)
			due := c.Next("orders")
			c.Complete("orders", due.Add(time.Hour))
			require.Less(t, time.Since(due), 5*time.Hour)
		})
	}
}

// What ends its goroutine has ended, as in Fire and in a scheduler.
func TestGoexitHasEnded(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		c.Start("one", core.JobFunc(func(context.Context, core.Shard) error {
			runtime.Goexit()
			return nil
		}), hourly)
		c.Next("orders")
		for _, r := range c.Runs("orders") {
			require.True(t, r.Ended)
			require.Equal(t, core.ErrGoexit, r.Err)
		}
	})
}

// A test may end while a function runs that looks at no context: fake time passes until it returns.
func TestEndsWhileAFunctionRuns(t *testing.T) {
	coretest.Run(t, func(c *coretest.Cluster) {
		c.Start("one", core.JobFunc(func(context.Context, core.Shard) error {
			<-time.After(20 * time.Minute)
			return nil
		}), hourly)
		c.Advance(time.Hour)
		require.False(t, c.Runs("orders")[0].Ended)
	})
}
