// Package strategy decides which instance of a job runs which of its sharding
// items: pure functions from instances and items to an assignment. There is no
// I/O, no clock and no randomness in it.
//
//	s, err := strategy.ByName("AVG_ALLOCATION")
//	...
//	a := s.Assign(strategy.Input{
//		Job:       "orders",
//		Instances: []string{"10.0.0.1@-@web-k3f", "10.0.0.2@-@web-9qd"},
//		Total:     3,
//	})
//	// map[10.0.0.1@-@web-k3f:[1] 10.0.0.2@-@web-9qd:[0 2]]
//
// # Strategies
//
//   - [AvgAllocation] (AVG_ALLOCATION, the default), [Odevity] (ODEVITY) and
//     [RoundRobin] (ROUND_ROBIN) answer exactly what ElasticJob 2.x and 3.x
//     answer, so that Go and Java members of one job agree. They follow
//     ElasticJob's code; its documentation says otherwise in places. They ignore
//     what was assigned before: one instance more or less may move most items.
//   - [Sticky] (STICKY) moves as few items as any balanced assignment can, and
//     knows an instance again that comes back under a new id. Java members do not
//     know it: use it where all members are Go.
//
// ElasticJob's SINGLE_SHARDING_BALANCE is refused by [ByName]. It depends on the
// clock and on a node outside the assignment, so it is no function of its input.
//
// # Guarantees
//
// For each of these strategies, and any input:
//
//   - Every item from 0 to Total-1 belongs to exactly one instance.
//   - The numbers of items of two instances differ by at most one.
//   - Equal input gives an equal answer, on every machine. The order of
//     Instances does not matter, and a repeated instance counts once.
//   - No instances: the answer is an empty Assignment, no item has an owner.
//     Total is zero or negative: every instance is there, without items.
//   - The input is neither changed nor kept; the answer belongs to the caller.
//
// Time and memory grow with Total: bound it before calling.
//
// A Strategy written elsewhere promises only what [Strategy] says; what it
// returns can be tested with [Assignment.Check].
//
// # Java's strings
//
// Java sees a string as UTF-16 code units; hash and order here do the same. Each
// byte that is not valid UTF-8 counts as U+FFFD.
//
// # Errors
//
// Only [ByName] and [Assignment.Check] return errors. Assign never fails.
//
// # Concurrency
//
// Everything is safe for concurrent use.
package strategy
