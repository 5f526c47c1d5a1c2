// Package simulation runs whole clusters of schedulers in fake time, each from one
// number, and judges what they did. It is all tests:
//
//	go test ./core/simulation -run TestSimulation -seeds 1000
//	go test ./core/simulation -run TestSimulation -seed 42 -faults 1c -v
//
// A seed decides everything: jobs, latencies, how long functions run and how they
// end, and which faults come when. Engines run on registry/memory in a
// testing/synctest bubble. Each request waits before it is sent and again before its
// answer is returned, each batch of watch events before it is delivered, each function
// before it returns; the driver lets them go on one at a time, at instants that the
// seed draws to the nanosecond, and looks at what that brought before it goes on.
// What waits is named by what it is (scheduler, kind, paths), never by when it came.
//
// After the faults everything is healed; a quiet minute follows, more where many fires that
// have killed two instances run again, one at a time, and a snapshot of the tree.
// internal/history judges the records. A seed that fails is run again with fewer and fewer
// faults, as long as it still fails, before its history is told.
//
// In a third of the seeds the registry's values are so short that ledgers have pages, more
// and fewer of them as their records differ, and somebody does damage to those.
//
// TestOffsets has the runs set offsets (package core/offset) too, each its fencing token, and judges that none goes
// back, and that each that was set counts once.
//
// # Splitting
//
// Everything happens on one processor (GOMAXPROCS is 1), or the order in which
// goroutines reach a mutex would be the machine's. More processors are used by more
// processes: -first 1 -seeds 500, -first 501 -seeds 500. The race detector shuffles
// goroutines, so that seeds do not reproduce under it.
package simulation
