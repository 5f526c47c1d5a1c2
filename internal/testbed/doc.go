// Package testbed starts real servers for tests and disturbs the way to them.
//
//	bed := testbed.StartEtcd(t, testbed.Options{})
//	client := bed.Client()
//	reg, err := etcd.Open(ctx, etcd.Config{
//		Endpoints: client.Endpoints(), DialOptions: client.DialOptions(), Namespace: "test",
//	})
//	heal := client.Blackhole(testbed.Both)
//
// and for ZooKeeper
//
//	bed := testbed.SharedZooKeeper(t) // or StartZooKeeper, to restart it
//	client := bed.Client()
//	reg, err := zookeeper.Open(ctx, zookeeper.Config{Servers: client.Addrs(), Namespace: "test"})
//	hit := client.NextCommit(testbed.AnswerLost)
//
// A [Proxy] stands between one client and one server and can drop, refuse,
// delay, hold or swallow what passes. An [Etcd] is a cluster in this process, or
// of child processes (ELASTICRON_ETCD_MEMBER), with short ticks, that can be paused, restarted, compacted,
// parted and deprived of its leader. A [ZooKeeper] is the same with real servers, which
// package zkserver runs by the first way that works: a container, a process. A
// [Client] or [ZooKeeperClient] is one client's way to all members: proxies,
// counters of requests, and the fate of single commits.
//
// # Guarantees
//
// A fault that has hit something counts it: a test whose fault hit nothing is
// void and must say so. What a blackhole has swallowed is gone; a connection that
// lost bytes is cut when the blackhole heals, as no protocol could go on. What a
// pause holds up arrives afterwards.
//
// Servers in other processes and in containers end when this process ends, in
// whatever way, and leave no folder behind.
//
// # Concurrency and errors
//
// Everything is safe for concurrent use. What cannot be started fails the test.
// Where nothing is installed that could run ZooKeeper, the tests that need it are
// skipped, loudly; with ELASTICRON_ZOOKEEPER_REQUIRED=1 they fail. Likewise for
// StartEtcdProcess and ELASTICRON_ETCD_REQUIRED. Everything is stopped at the end
// of the test, SharedZooKeeper's server at the end of the process.
package testbed
