// Package core runs jobs: a job is split into sharding items, the items are spread
// over all live instances, and spread again when instances come, go or crash.
//
//	reg, err := registry.Open(ctx, "etcd://127.0.0.1:2379/shop")
//	...
//	defer reg.Close()
//	hello := core.JobFunc(func(ctx context.Context, s core.Shard) error {
//		log.Printf("%s: item %d of %d (%s)", s.Job, s.Item, s.Total, s.Param)
//		return nil
//	})
//	err = core.Run(ctx, reg, hello, core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 3})
//
// Several jobs: New, Add, Start, Stop. What happens is told as events (package event,
// WithListener), as log records made from them, and as a State that can be asked at any
// time. Warnings and errors go to slog.Default(); WithLogger gives another logger, which
// gets all, or with nil none.
//
// # Guarantees
//
// Among instances of this package, with monitoring on:
//
//   - No item runs under two live sessions at once. The contexts of its runs are
//     cancelled by the session's Deadline, on the clock of the owner. Shard.Fence
//     is for what ignores its context or is stopped.
//   - Every fire of every item that comes due has one outcome: event.ItemEnded, or
//     event.ItemCut when its instance's life ended before its end was recorded, or
//     event.ItemsSkipped, which says why, or event.ItemsFolded when a later run stands
//     for it. The record precedes the event, and what is told as skipped or folded never
//     runs. JobConfig.Misfire says which missed fires are made up. None begins twice: not
//     over moves, crashes, a changed sharding total count or a changed schedule.
//   - With JobConfig.Failover a fire whose instance died while it ran does begin again: at
//     once at the item's next owner, before anything else of the item, until three
//     instances have died of it. event.ItemCut says of every other why it does not.
//   - A crash leaves nothing behind that blocks a later fire.
//   - A registry outage loses no configuration and no job: everything resumes by
//     itself.
//   - WithRoundListeners has one instance called after all items of a fire have ended,
//     wherever they ran.
//   - A fire is two commits and no read for each instance while its items fit one
//     commit. With MonitorOff it is none, and the first three guarantees are void.
//   - An idle job has no goroutine and makes no request; the leader reconciles
//     every JobConfig.ReconcileInterval.
//
// # Concurrency
//
// Everything is safe for concurrent use. Listeners are called one at a time, in
// order, on one goroutine.
//
// # Errors
//
// *ConfigError (ErrConfig) names the field and the fix; JobConfig.Validate joins one for
// each fault. *StartError names the jobs that cannot run, beside those that do. *RunningError names the items that Stop could not end. *PanicError is the
// error of an item that panicked. ErrStopped and ErrSessionLost are causes of a run's
// context.
package core
