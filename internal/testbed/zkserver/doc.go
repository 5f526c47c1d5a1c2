// Package zkserver starts ZooKeeper servers for tests and examples, and disturbs
// them.
//
//	cluster, err := zkserver.Start(ctx, zkserver.Options{Members: 3})
//	if err != nil { ... }
//	defer cluster.Close()
//	fmt.Println(cluster.Way(), cluster.Addrs())
//
// # Ways
//
// The first way that works serves:
//
//   - an address: ELASTICRON_ZOOKEEPER names the servers (host:port, comma
//     separated) that somebody else runs. Not for Options.Own, nor for ensembles.
//   - a container: a Docker engine answers, and has the image that
//     ELASTICRON_ZOOKEEPER_IMAGE names, or can pull it. Without the variable that
//     is zookeeper:3.9, and where it cannot be pulled elasticron/zookeeper:3.8-debian,
//     which .ci/zookeeper-image builds.
//   - a process: Java and Debian's package zookeeper are installed.
//   - maven: Java and Maven are installed; the server's jars are resolved once for
//     each version and kept in the user's cache directory.
//
// Options.Way ("address", "container", "process", "maven") forces one;
// ELASTICRON_ZOOKEEPER_WAY does so for servers that no address names. When none
// works the error is an [UnavailableError], which says of each why.
//
// # Guarantees
//
// Each server has ports of its own on the loopback interface and a folder of its
// own. Both are gone after Close, and also when the process that called Start dies
// in whatever way: each server is guarded by a shell that waits for the end of a
// pipe from that process. Data survives Kill and Restart.
//
// # Concurrency and errors
//
// A Cluster is safe for concurrent use. What a way cannot do is an [ErrUnsupported].
package zkserver
