// Package memory is a registry inside the process: the reference semantics of package registry without a network. Tests
// use it to run hours of fake time in milliseconds, programs to try Elasticron without a service.
//
//	reg, err := registry.Open(ctx, "memory://local/shop")
//
// Every Open of one name in a process reaches the same [Server], which lives as
// long as one of its registries is open. A test makes its own:
//
//	srv := memory.NewServer(memory.Config{})
//	reg := srv.Registry("shop")
//	defer reg.Close()
//
// # Guarantees
//
// All that package registry promises, and more: every read is linearizable, every commit returns its revision, commits
// and expiries are instantaneous, a watcher gets the changes of one commit in the order of its operations. A session
// expires exactly one timeout after the last heartbeat that reached the server.
//
// # Faults
//
// The server and each of its registries (a registry is one client) can be made to fail: see [Server.Pause],
// [Server.Restart], [Server.Expire], [Server.Intercept], and on both Drop, Refuse, LoseRequests and LoseAnswers. Faults
// of a server act on all of its clients. Requests are counted by kind.
//
// # Concurrency
//
// Everything is safe for concurrent use, but for Watcher.Next, which is for one goroutine. A session owns one goroutine
// for its heartbeats and one for each lock it holds; Close joins them. A watcher owns none and costs memory for its
// targets and the nodes that they show. Nothing runs before the first session is open. Inside a testing/synctest bubble
// make the server, too, inside it.
//
// # Errors
//
// Those of package registry. There is no client library below.
package memory
