// Package offset keeps how far the data of a sharding item are processed, in the registry:
// durably, and so that only the owner of the item moves it.
//
//	at, err := offset.Open(ctx, shard, offset.Config{})
//	...
//	rows := after(at.Position().Offset)
//	...
//	err = at.Set(ctx, rows[len(rows)-1].ID, offset.Counted{Success: len(rows)})
//
// job.Dataflow does this for each batch. What an offset says is the job's own affair: a key, a
// position in a file, an instant.
//
// # Guarantees
//
//   - Set is one commit, which is refused unless the registration that runs the item lives and its
//     ledger still owns the item: an instance that was paused, and whose item is another's now, sets
//     nothing (ErrNotOwner).
//   - The counts are set in the same commit. One whose answer is lost is settled before Set returns,
//     so it counts once.
//   - Set says ErrMoved when somebody else has set the offset since it was read.
//   - An item without an offset starts at the one that ElasticJob 1 kept at /{namespace}/{job}/offset/{item},
//     which is only read, until the first Set.
//   - In the steady state Set is one commit of four operations, and no read.
//
// What was processed after the last Set is processed again by whoever runs the item next: at least
// once. What the run writes to can refuse a second time by Shard.Fence, or by the offset itself.
//
// # Another sharding total count
//
// With another total an item stands for other data, so an offset counts only under the total under
// which it was set. Offset.Before has those of the total before; the job says what follows from them.
//
// # Concurrency
//
// An Offset may be used by several goroutines of its run, and by none after it.
//
// # Errors
//
// ErrNotOwner, ErrMoved; those of package registry; what the context says. After an error of Set it is
// not known what stands in the registry: Open reads it anew.
package offset
