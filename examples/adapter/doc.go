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
//   - schema.sql: the tree and its rules, as tables and triggers. Every request is
//     one statement, so that a commit is atomic, and is sent whole or not at all.
//   - adapter.go: [Registry], which opens sessions.
//   - store.go: Get, Children and Commit, and what errors of the database mean.
//   - session.go: heartbeats, Deadline and Done, and the end of silent sessions.
//   - watch.go: a watcher looks at its targets, and compares them with what it told.
//
// # Guarantees
//
// Those of package registry. Every read is linearizable, so that Sync sends
// nothing; every commit returns its revision.
//
// SQLite knows neither sessions nor time. A session is a row with a counter that
// its heartbeats raise; whoever has seen a counter stand still for that session's
// timeout, on its own monotonic clock, deletes the row, and with it the nodes. So
// steps of the wall clock do no harm; a machine that is suspended stops all clocks
// alike. Sessions expire only while another one is open: there is no server.
//
// SQLite tells nobody what other processes write. Commits of this process wake
// the watchers whose targets they touch, and everything else is seen with the next
// heartbeat: half a second later at most, a quarter of the timeout where that is less.
// A watch target costs nothing in the database.
//
// The file must be on a local disk, as SQLite demands: its locks and its WAL do
// not work over a network file system.
//
// # Concurrency
//
// As package registry says. A session owns one goroutine, and one for each lock it
// holds; Close joins them. A watcher owns none.
//
// # Errors
//
// Those of package registry; errors.As finds the driver's *sqlite.Error. A commit
// is ErrUnavailable when the file is locked, cannot be opened or is full, ErrDenied
// when it is read-only, and ErrUncertain after every other error of the driver.
package sqlite
