// Package registry is the contract between Elasticron and a coordination
// service: a strict tree of small nodes, atomic commits, ephemeral nodes bound
// to a session, converging watches, and fair, fenced locks. The adapters etcd,
// zookeeper and memory implement it; package conformance proves them.
//
//	reg, err := registry.Open(ctx, "etcd://127.0.0.1:2379/shop")
//	...
//	defer reg.Close()
//	ses, err := reg.Open(ctx)
//	...
//	defer ses.Close(ctx)
//	rev, err := ses.Commit(ctx,
//		registry.Check("/shop/leader", registry.AnyVersion),
//		registry.Set("/shop/state", []byte("ready"), 7))
//
// # The tree
//
// Paths are absolute and strict, as in ZooKeeper: the parent of a node exists,
// an ephemeral node has no children, a node with children cannot be deleted.
// Only [EnsurePath] and locks make parents. A directory that another client made
// may vanish by itself when it is empty (ZooKeeper's containers), so that Create
// may meet ErrNoParent at any time. The root "/" always exists; it can
// be listed and watched, never written, and what Get returns for it is undefined. [ValidatePath] has the rules of a path.
//
// # Guarantees
//
//   - A session is one life. Once lost it stays lost: Done is closed, every call
//     fails with ErrSessionLost, its ephemeral nodes are or will be gone, and
//     nothing it had in flight creates an ephemeral node any more. Persistent
//     writes in flight may still apply: guard them with a Check of a node that is
//     unique to the session.
//   - Done is closed no later than Deadline, with or without a network.
//     Connection loss is not session loss: a blip within the session deletes
//     nothing and re-creates nothing.
//   - A commit is all or nothing. Its failure names the first operation that
//     could not be applied, as a *CommitError. An outcome that is not known is
//     ErrUncertain, which is never retried by an adapter: the commit was
//     applied, was not, or will be later. Only a conflicting write that is
//     acknowledged rules the last one out; a read does not.
//   - Reads are consistent within a session: never older than its own writes
//     and the events it has seen. Sync makes later reads linearizable.
//   - A watch delivers the present state, then Synced, then changes. Changes
//     may be coalesced; per path the state never goes back; the last state
//     always arrives. Absence is a state: what does not exist can be watched.
//   - Created of a node is never reused, Version restarts with every
//     incarnation. Never compare versions of a node that is deleted and created
//     again under one name: use names that are unique, or a permanent node.
//
// # Errors
//
// Callers branch with errors.Is on the sentinels of this package. The client
// library's own error stays reachable with errors.As.
//
// # Concurrency
//
// Registry, Store, Session and Lock are safe for concurrent use. A Watcher's
// Add, Remove and Close are; Next is for one goroutine.
package registry
