// Command quickstart is the main job on real input: three worker processes share
// a job that indexes the Go toolchain's own source tree every two seconds, less often
// where a single pass takes long. One of them is killed while its items run, the others
// finish these in the same round (JobConfig.Failover), and another one joins.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -zookeeper
//	go run ./examples/quickstart -registry etcd://127.0.0.1:2379/demo?session-timeout=2s
//	go run ./examples/quickstart -registry zookeeper://127.0.0.1:2181/demo?session-timeout=2s
//	go run ./examples/quickstart -registry postgres://127.0.0.1:5432/postgres/demo?session-timeout=2s
//
// The parent starts an embedded etcd, or with -zookeeper a ZooKeeper by the first
// way that works (ELASTICRON_ZOOKEEPER, a container, a local Java process) and says
// which; -registry names a registry that runs. It executes itself once for each
// worker. Workers tell what happens as JSON lines.
// The parent adds the items of each round up and compares them with a single
// pass of its own: a difference is the item's name and exit status 1. The status is
// 2 for a wrong command line and 130 after Ctrl-C.
package main
