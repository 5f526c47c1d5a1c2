// Package conformance proves that an adapter keeps the contract of package
// registry. An adapter's test is a harness and one line:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(tb testing.TB) conformance.Harness { return newHarness(tb) })
//	}
//
// The [Harness] starts the service, hands out clients and injects [Faults]. Each
// case is a subtest, so that go test -run TestConformance/Watch/SurvivesDrop runs
// one. [Cases] lists them; the last line of log counts what ran. A failure says
// which rule was broken, what the case did, what it saw, and where the contract
// says otherwise. docs/adapters.md tells how to read it.
//
// # What a green run means
//
// No case is skipped: cases that need several servers are not in the list of a
// service with one, and a case whose fault did not hit fails as void. A case
// waits 30 seconds for one thing, and then fails with what it was waiting for; it
// has no more in all, or 2 minutes where it makes hundreds of requests. One whose
// calls ignore their context fails a little later. There are no false alarms on a
// service that keeps the contract and a machine that does not stand still for
// most of a session timeout three times in a row; there may be defects that the
// suite does not see. Run it with the race detector, more than once, and let the
// adapter's TestMain look for leaked goroutines: what a Registry leaves behind
// after Close is found there.
//
// # The suite itself is proved
//
// The rules of the contract have numbers. The tests of this package break each of them, on
// an adapter that is sound otherwise, and demand that the named case fails for that reason;
// docs/adapters.md has the table. They also run every case with faults that do nothing, with one
// kind of fault that does nothing, and with faults that lie, and demand that each case that
// uses them fails.
//
// The harness is proved as well: each fault that a case has used is counted for itself, and
// tried once on clients of its own. Where it does not do what it says, a case that passes is void.
// The group Harness runs these trials first.
//
// # Models
//
// The group Models tries what nobody thought of. RapidSequential and
// WatchConverges run sequences of steps that rapid makes from fixed seeds, the
// same for every adapter and every run: 20, or as many as 6 seconds allow (the log
// tells), but at least 4. One that fails is shrunk, within a few seconds, to the
// steps that matter. The others record what several clients
// did and saw, and let porcupine look for an order in time that explains it: a
// commit whose outcome nobody knows may take effect at any later time, or never.
// A failure lists the shortest part of the history that nothing explains. A
// history that could not be decided in time is a failure too.
//
// # Time and parallel runs
//
// Cases of a group share one service and run side by side, each on clients of
// its own and below a path of its own; those that disturb or load the whole
// service run alone. On a service in the process that costs next to nothing two
// groups run at the same time ([LightHarness]). Most cases wait for the harness's
// session timeout once or twice: one to two seconds are right.
//
// # Speed
//
// [Bench] compares an adapter with the client that it is built on, in one run and
// by ratios, so that the figures of two machines can be compared.
//
// # Errors
//
// A harness that cannot inject a fault returns [ErrUnsupported], and the case
// fails. Faults that not every service can have are interfaces of their own ([DelayFaults],
// [DenyFaults] and others); a harness without one says why ([Lacking]). A session that is lost
// though nothing was done to it, or after a fault that left it a fifth of its timeout, stands
// in the failure, and the case is tried again, twice; while the machine is seen to stand
// still, or the service to be slow to a client to which nothing is done, as often as five times. From the third attempt
// on no other case of the group runs beside it, for a dozen attempts a group.
package conformance
