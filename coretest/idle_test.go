package coretest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

// Where a test fails since nothing happens, it says which jobs begin nothing.
func TestIdleJobsAreNamed(t *testing.T) {
	Run(t, func(c *Cluster) {
		in := &Instance{cluster: c, reg: c.server.Registry("coretest")}
		in.Scheduler = core.New(in.reg, core.WithLogger(nil), core.WithIP("127.0.0.1"))
		c.instances = append(c.instances, in)
		nothing := core.JobFunc(func(context.Context, core.Shard) error { return nil })
		require.NoError(t, in.Add(nothing, core.JobConfig{Name: "orders", Cron: "0 0 * * * ?", Shards: 1, Disabled: true}))
		require.NoError(t, in.Start(c.t.Context()))
		require.Equal(t, `; job "orders" begins nothing: the job is disabled in its configuration`, c.idle())
	})
}
