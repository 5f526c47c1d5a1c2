// Package polledtest runs the conformance suite on a polled.Store. The whole test
// of an adapter that package polled makes is:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(tb testing.TB) conformance.Harness {
//			file := filepath.Join(tb.TempDir(), "registry.db")
//			return polledtest.New(tb, polled.Config{Name: "sqlite"}, func(ctx context.Context) (polled.Store, error) {
//				return openStore(ctx, file)
//			})
//		})
//	}
//
// # What it tries
//
// The harness opens one store, as a server would, and gives each client of the suite a wire to it: a polled.Store of
// its own whose requests travel, are served whether or not their caller still waits, and come back. All faults of the
// suite act on the wires: they swallow requests or answers, cut, refuse, lose one answer, or serve a commit late. A
// restart closes the store when what runs in it has ended, and opens it again.
//
// Where the store is a polled.Bell, what it tells travels by the wires too, and
// clients learn by it alone what others write.
//
// Before each group of cases it asks the store itself for what a suite of
// registries cannot see: that a heartbeat in time saves its session, that the
// revision rises when a session's nodes go, that Read and Commit are one step each,
// that no bytes are kept which are the caller's, and that a bell leaves out nothing.
//
// So a run proves the rules of the tree, atomicity, revisions, what becomes of a session's nodes, that data outlives
// Close, and that all of it stands many callers at once. It does not try what the store's own client does when its
// connection breaks, since the wires break before it: which errors mean that nothing was applied
// (registry.ErrUnavailable), and that a commit is never sent twice, is for a test of the store itself.
//
// # Concurrency
//
// As conformance.Harness says. Close joins what the harness has started and closes
// the store.
//
// # Errors
//
// A fault for a session of another harness fails, and so does the case that
// needs it; LoseLeader is conformance.ErrUnsupported, and no case for one server
// needs it.
package polledtest
