// Package polled makes a registry of a store that can only be asked: a database, or a store of keys with transactions,
// that has no sessions which expire by themselves and no watches. Its author implements [Store], seven requests, and
// has an adapter:
//
//	func init() { registry.Register("sqlite", openURL) }
//
//	func openURL(ctx context.Context, u *url.URL) (registry.Registry, error) {
//		cfg := polled.Config{Name: "sqlite", Namespace: strings.Trim(u.Path, "/"), Data: u.Query().Get("file")}
//		if err := cfg.Validate(); err != nil {
//			return nil, err
//		}
//		store, err := openStore(ctx, u) // a polled.Store
//		if err != nil {
//			return nil, err
//		}
//		return polled.New(store, cfg)
//	}
//
// The folder examples/adapter of this project is such an adapter, on SQLite, in 200 lines; package polledtest runs
// the conformance suite on a Store. A service that has leases and watches of its own is better served by an adapter
// that uses them: it implements registry.Registry.
//
// # Guarantees
//
// Those of package registry, if the store keeps what [Store] asks for: steps are atomic, a read sees every step that
// was answered before, and a commit finds its session alive in the step that applies it. So every read is linearizable,
// and Sync sends nothing; every commit returns its revision.
//
// A session is a row with a counter that its heartbeats raise. Deadline is when the last heartbeat that was answered
// was sent, plus nine tenths of the timeout; Done is closed a fiftieth of the timeout before it, by a timer. Whoever
// has seen a counter stand still for that session's timeout, on its own monotonic clock, removes the row if the counter
// still stands there, and with it the ephemeral nodes. So steps of a wall clock do no harm. (A machine that is
// suspended stops its monotonic clock too: what it owned may be somebody else's when it goes on, which its next request
// finds out. Guards and fencing tokens are for that.) Sessions expire only while another one is open, by their timeout
// and two polls.
//
// A commit of this registry wakes those of its watchers whose targets it touched, and those of registries in the same
// process that name the same [Config].Data. What others write is seen with the next heartbeat, at most [Config].Poll
// later: half a second, unless the timeout is short.
//
// # Cost
//
//	an idle session     two requests a poll: Beat, Sessions
//	Get, Children       one Read; Children reads values too
//	Commit              one Commit, never repeated
//	Add of a target     one Read, shared by those that were added since Next was called last
//	a change            one Read a watcher, of what its own registry touched; and, with the next
//	                    heartbeat after any change in the store, one of all its targets
//	a free lock         as package latch says: a Commit, and three Reads
//	a session's end     one End; of a silent one, one by each session that has noticed
//
// Targets cost the store nothing, and here what each node that was told is, less its
// value. A consumer who does not call Next causes no Reads.
//
// # Concurrency
//
// As package registry says. Of one registry's reads and commits at most [Config].MaxInFlight are with the store at
// once, so that many of them cannot keep heartbeats from it, whose session would be lost. A session owns one goroutine,
// and one for each lock it holds; Close joins them. A watcher owns none, a registry neither.
//
// # Errors
//
// Those of package registry; what the store failed with begins with [Config].Name, and can be reached with errors.Is
// and errors.As. Reads, Open and the end of a session are repeated until they succeed or their context ends, unless the
// store says registry.ErrDenied; one attempt takes half a timeout at most, and each next one at a Read that was too slow
// a quarter more. A commit is classified as [Store] says. A Watcher gives up the targets of a Read that was refused.
package polled
