// Command quickstart is the main job on real input: three worker processes share
// a job that indexes the Go toolchain's own source tree every two seconds, one of
// them is killed while its items run, and another one joins.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -registry etcd://127.0.0.1:2379/demo?session-timeout=2s
//
// The parent starts an embedded etcd (unless -registry names another one) and
// executes itself once for each worker. Workers tell what happens as JSON lines.
// The parent adds the items of each round up and compares them with a single
// pass of its own: a difference is the item's name and exit status 1.
package main
