// Package pending holds what the consumer of a watcher has not taken yet: the latest state of each path of each
// target, in the order in which it first changed, and the Synced of each target in its place.
//
//	var q pending.Queue
//	t := &pending.Target{Path: "/d", Scope: registry.Children}
//	q.Put(t, node)
//	q.Synced(t)
//	events := q.Take(100)
//
// # Guarantees
//
// A state replaces an older one of its path that still waits, in its place. A child that came and went unseen leaves
// nothing. So memory is in proportion to the nodes that exist or that the consumer believes to exist, not to the number
// of changes, and values are kept only while they wait. A state that is no newer than the last of its path, by
// Modified, is left out. An absence has no revision: its user puts it in order.
//
// A Consumer is such a queue with the methods of a registry.Watcher, for which Hooks say what
// the adapter does about a target.
//
// # Concurrency
//
// A Queue, its Targets and a Consumer are guarded by their user, with one mutex.
package pending
