// Package sharding derives what the leader must write from what is: who owns
// which item, who lives, and who should own what. It is pure: no I/O, no clock.
//
//	plan := sharding.Derive(view)
//	for _, s := range plan.Steps(maxOps, cost) { commit s }
//
// An item whose owner is dead is assigned at once. Between the living an item
// moves when it does not run; one that runs is marked as leaving first, so that
// its owner begins it no more. When the sharding total count changes, every
// running item is waited for, since items of two totals overlap in data.
package sharding
