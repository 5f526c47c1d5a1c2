// Package testbed starts real servers for tests and disturbs the way to them.
//
//	bed := testbed.StartEtcd(t, testbed.Options{})
//	client := bed.Client()
//	reg, err := etcd.Open(ctx, etcd.Config{
//		Endpoints: client.Endpoints(), DialOptions: client.DialOptions(), Namespace: "test",
//	})
//	heal := client.Blackhole(testbed.Both)
//
// A [Proxy] stands between one client and one server and can drop, refuse,
// delay, hold or swallow what passes. An [Etcd] is a cluster in this process
// with short ticks, that can be paused, restarted, compacted and deprived of its
// leader. A [Client] is one client's way to all its members: proxies, counters
// of requests, and the fate of single commits.
//
// # Guarantees
//
// A fault that has hit something counts it: a test whose fault hit nothing is
// void and must say so. What a blackhole has swallowed is gone; a connection that
// lost bytes is cut when the blackhole heals, as no protocol could go on. What a
// pause holds up arrives afterwards.
//
// # Concurrency and errors
//
// Everything is safe for concurrent use. What cannot be started fails the test.
// Everything is stopped at the end of the test.
package testbed
