// Package retry repeats what a registry refused for the moment: connecting at start, reads, and
// commits that were certainly not applied. It goes around any registry:
//
//	reg, err := retry.Open(ctx, "zookeeper://127.0.0.1:2181/shop", retry.Config{Base: time.Second, Max: 3 * time.Second, Retries: 3})
//
// In a file that package config reads, the block registry.retry does the same.
//
// # What is repeated
//
//   - Open, and the opening of sessions and stores, that failed with registry.ErrUnavailable;
//   - Get, Children, Sync, and the making of a Watcher, likewise. The adapters go on with reads of
//     their own accord until their context ends, so that it is seldom needed there;
//   - a Commit that failed with registry.ErrUnavailable, which says that it was not applied.
//
// Nothing else is. A commit whose outcome is unknown (registry.ErrUncertain) was perhaps applied,
// and only who sent it can find out: it is never repeated, here or in an adapter. What was refused
// for good (a version, a permission, a request that is wrong) is refused again.
//
// Who calls waits during the pauses. The engine of Elasticron repeats by itself what it has to, so
// that nothing is lost without this package.
//
// Pauses double from Base to Max and are spread at random by half. They end early when the
// context, the session or the registry ends.
//
// # Concurrency
//
// As the registry that is wrapped: every method may be called from many goroutines. No goroutine is started.
//
// # Errors
//
// The error is that of the last attempt, unchanged; Config.Validate's names the field and the fix.
package retry
