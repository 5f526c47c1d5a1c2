// Package registry is the contract between Elasticron and a coordination service: a strict tree of small nodes,
// atomic commits, ephemeral nodes bound to a session, converging watches, and fair, fenced locks. The adapters etcd,
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
// # Rules
//
// A number, as in (R7), marks a rule that every adapter keeps. A case of package conformance tries each of them, and
// an adapter that breaks it on purpose shows that the case would see it; docs/adapters.md has the table.
//
// # The tree
//
// Paths are absolute and strict, as in ZooKeeper: the parent of a node exists (R1), an ephemeral node has no children
// (R2), a node with children cannot be deleted (R3). Only [EnsurePath] and locks make parents. A directory that
// another client made may vanish by itself when it is empty (ZooKeeper's containers), so that Create may meet
// ErrNoParent at any time (R1). The root "/" always exists; it can be listed and watched (R4). It can never be part
// of a commit (R5), and what Get returns for it is undefined. [ValidatePath] has the rules of a path.
//
// Names and values are bytes: they are kept one by one, and none is folded, trimmed, normalized or taken for a
// pattern (R6). A Registry addresses the whole tree: two that differ in their namespace see the same nodes (R7).
//
// # Guarantees
//
//   - A session is one life. Once lost it stays lost: Done is closed, every call
//     fails with ErrSessionLost (R8), and its ephemeral nodes are or will be gone
//     (R9). Nothing that it had in flight makes an ephemeral node any more (R10).
//     Persistent writes in flight may still apply: guard them with a Check of a
//     node that is unique to the session. All its ephemeral nodes go in one
//     revision (R11), and their names are free for others, which the dead session
//     does not disturb (R12).
//   - Done is closed no later than Deadline, with or without a network (R13).
//     Connection loss is not session loss: a blip within the session deletes
//     nothing and re-creates nothing (R14). While the service can be reached a
//     session lives, whatever its user does: a consumer that does not come, a Lock
//     that waits, thousands of calls at once (R15). Sessions of one Registry share
//     nothing but connections: the end of one harms no other (R16).
//   - A commit is all or nothing, also where it is as large as it may be (R17).
//     Its failure names the first operation that could not be applied, as a
//     *CommitError (R18). An outcome that is not known is ErrUncertain, which is
//     never retried by an adapter (R19): the commit was applied, was not, or will be
//     later. Only a conflicting write that is acknowledged rules the last one out;
//     a read does not (R20).
//   - Reads are consistent within a session: never older than its own writes
//     (R21), than the events it has seen (R22), than what it has read (R23). Sync
//     makes later reads linearizable (R24).
//   - A watch delivers the present state, then Synced, then changes. Changes
//     may be coalesced; per path the state never goes back (R25); the last state
//     always arrives (R26). Absence is a state: what does not exist can be watched
//     (R27).
//   - Created of a node is never reused (R28), Version restarts with every
//     incarnation (R29). So versions of a node that is deleted and created again
//     under one name say nothing: use names that are unique, or a permanent node.
//   - What is passed to a call belongs to the caller: an adapter changes none of
//     it, and reads none of it after the return (R30). What a call returns belongs
//     to the caller too: no two callers share it, and the adapter forgets it (R31).
//   - A context bounds the call that it is passed to. When it ends once the call
//     has returned, it touches nothing that the call has made (R32), and nothing
//     waits for its end (R115). When it has ended before the call, nothing is sent
//     and the error wraps the context's (R33), but for Close and Release, which
//     then try once (R34).
//
// # Errors
//
// Callers branch with errors.Is on the sentinels of this package. An error is of one class: it matches one sentinel,
// or the pairs that are named here (R35). The client library's own error stays reachable with errors.As.
//
// # Concurrency
//
// Registry, Store, Session and Lock are safe for concurrent use. A Watcher's
// Add, Remove and Close are; Next is for one goroutine.
package registry
