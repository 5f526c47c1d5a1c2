// Package sqlite is a registry adapter of somebody else's, as an example: the
// members of a cluster that runs on one machine share a file of SQLite instead of
// a service. CONTRIBUTING.md, "Add an adapter", walks through it.
//
//	reg, err := registry.Open(ctx, "sqlite:///shop?file=/var/lib/shop/registry.db")
//	...
//	defer reg.Close()
//	err = core.Run(ctx, reg, job, core.JobConfig{Name: "hello", Cron: "0/5 * * * * ?", Shards: 3})
//
// # What it is made of
//
//   - schema.sql: the tree and its rules, as tables and triggers.
//   - store.go: the requests of a polled.Store, each one statement, so that it is
//     atomic and a client that stops in the middle holds nobody up; and what errors
//     of the database mean.
//   - adapter.go: the URL.
//   - conformance_test.go: the proof.
//
// Everything else, sessions and watches above all, is package registry/polled.
//
// # Guarantees
//
// Those of package registry, with the costs and the delays of package
// registry/polled: SQLite tells nobody what other processes write, which is seen
// half a second later at most. Sessions have a timeout of 10 seconds.
//
// The file must be on a local disk, as SQLite demands: its locks and its WAL do
// not work over a network file system.
//
// # Concurrency
//
// As package registry says. Requests of one process take turns on one connection.
//
// # Errors
//
// Those of package registry; errors.As finds the driver's *sqlite.Error. A commit
// is ErrUnavailable when the file is locked, cannot be opened or is full, ErrDenied
// when it is read-only, and ErrUncertain after every other error of the driver.
package sqlite
