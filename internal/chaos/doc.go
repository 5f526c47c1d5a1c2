// Chaos runs jobs in worker processes on a real registry while faults are drawn by a
// seed, keeps a history of what happened, and judges it:
//
//	go run ./internal/chaos -duration 2m -registry zookeeper
//	go run ./internal/chaos -seed 7 -servers 3 -dir /tmp/run
//
// Half of the time is spent on one server, half on three, unless -servers says
// otherwise. The seed decides which faults come when and whom they hit; the same seed
// draws the same ones. The table at the end says what was done and seen, and each
// invariant that was broken, with the history of the item around it (package history).
//
// Workers listen to the rounds of some jobs, and the driver asks for runs all the time, of all
// items or some, with requests and with ElasticJob's triggers.
//
// With -strikes, in a build with the tag failpoint, no faults are drawn: one worker after
// the other is killed, paused or cut off from answers where it comes to a failpoint of
// the engine (package failpoint), at every one of them and in every one of these ways.
//
// A witness counts in a node of its own, past all proxies. Where an acknowledged count is
// lost, the servers themselves have lost it; ZooKeeper does now and then. A census asks each
// of ZooKeeper's servers by itself whether it shows what another one has shown before. Such
// a part says nothing about Elasticron: it is told, and run again with other faults.
// While a count takes long, though no fault stands, the machine or the service is too busy for
// what is promised within seconds: that is written down as a fault of its own, "slow service".
//
// # Processes
//
// The driver is the parent of all: workers and etcd's servers are this program again,
// with their task in the environment; ZooKeeper is run by package zkserver. Each
// worker reaches the servers through proxies of its own. All end with the driver,
// however it ends. Everything listens on the loopback interface only.
//
// # Errors
//
// The exit status is 0 when nothing was broken, 1 when something was, 2 for a wrong
// command line, and 3 when the run is void: too few faults, a kind of fault that never
// hit, too few fires, runs that were asked for or calls of listeners, no quiescence. The
// histories of a run that did not end well are kept, and their folder is named.
package main
