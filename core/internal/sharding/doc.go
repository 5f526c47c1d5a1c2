// Package sharding derives what the leader must write from what is: who owns which
// item, who lives, which epoch it is, and who should own what. It is pure: no I/O, no
// clock.
//
//	plan := sharding.Derive(view)
//	for s := range plan.Steps(room) { commit s }
//
// An item whose owner is dead is assigned at once, before the living give anything
// away. Between the living an item moves when it does not run; one that runs is marked
// as leaving first, so that its owner begins it no more.
//
// With static sharding an item stays with its owner, over that one's restarts: a dead
// owner's ledger keeps it until an instance of its name is there. Only what is to run
// again is lent to another instance meanwhile.
//
// Steps write of a ledger its root and the pages of the items that move. Where a root has
// become too long, a step of its own moves items into pages first.
//
// A change of the sharding total count starts an epoch, since items of two totals
// overlap in data. First every living ledger is held: its owner begins nothing more.
// When all are, no fire after the latest recorded one can begin, and the base of the
// next epoch says so: every fire up to it belongs to the epoch that ends, whose owners
// run what they still owe of it. Once none owes or runs anything, the items of the new
// total are assigned. Whatever leader looks, at any moment, derives the same.
package sharding
