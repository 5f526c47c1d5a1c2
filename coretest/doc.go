// Package coretest tests jobs: a whole cluster in one process, in fake time, so that an hour of
// fires takes milliseconds.
//
//	func TestOrders(t *testing.T) {
//		coretest.Run(t, func(c *coretest.Cluster) {
//			c.Start("one", job, core.JobConfig{Name: "orders", Cron: "0 0 * * * ?", Shards: 3})
//			c.Next("orders") // an hour passes, and every item has run
//			for _, r := range c.Runs("orders") {
//				if r.Err != nil {
//					t.Error(r.Shard.Item, r.Err)
//				}
//			}
//		})
//	}
//
// Run makes a testing/synctest bubble with a registry in memory. Time stands still while
// anything works, and jumps ahead when all wait: a job may sleep, and may use timers, but what
// it waits for must be inside the bubble, so it reaches no network.
//
// For the function of a job alone there is Fire, which calls it once for each item, without a
// scheduler and without a bubble.
//
// docs/testing.md shows five tests.
package coretest
