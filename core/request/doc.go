// Package request holds what somebody says who asks for a run of a job, and what became of
// it. Package admin asks (Trigger, Await); the run itself sees core.Shard.Request and
// RequestParam.
//
//	id, err := a.Trigger(ctx, "report", request.Request{Items: []int{3}, Param: "2026-11"})
//	result, err := a.Await(ctx, "report", id)
//	if err == nil {
//		err = result.Err()
//	}
//
// # Guarantees
//
// The leader accepts a request once. From then on each item begins the run at most once, and
// again only where failover is on and a life ended in it; never beside another run of the item,
// runs in the order in which they were accepted. Each item has one outcome. What the
// schedule says of the item is not touched: what comes due while it runs for a request is
// missed, and JobConfig.Misfire says what becomes of it.
//
// A run ends early where somebody asks for it (package admin, Kill): its context ends, with a
// *KilledError as its cause.
//
// # Concurrency
//
// These are values.
//
// # Errors
//
// Result.Err is an *Error: what did not succeed. The texts of errors come from the instances,
// and are cut where those of one instance take more than 64 KiB.
package request
