// Package tool makes a registry.StoreCloser of what an adapter has already: a store that
// lives as long as it is open, or sessions that follow one another. Each is what it and package
// retry have in common: a store that does the same about each of its calls.
//
// # Guarantees
//
// Nothing ephemeral passes. After Close every call, and every Watcher, fails with registry.ErrClosed. None fails with
// registry.ErrSessionLost: reads, and commits that were not sent, go to the next store; a commit that was in flight
// is registry.ErrUncertain, and a Watcher of the store that was lost ends with registry.ErrUnavailable.
//
// # Concurrency
//
// Everything is safe for concurrent use, but for Watcher.Next. No goroutine runs but to end a session that is lost.
package tool
