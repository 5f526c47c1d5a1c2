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
// says otherwise.
//
// # What a green run means
//
// No case is skipped: cases that need several servers are not in the list of a
// service with one, and a case whose fault did not hit fails as void. A case has
// 30 seconds and then fails with what it was waiting for; one whose calls ignore
// their context fails a little later. There are no false alarms on a service that
// keeps the contract and a machine that does not stand still for most of a
// session timeout; there may be defects that the suite does not see. Run it with
// the race detector, more than once, and let the adapter's TestMain look for
// leaked goroutines: what a Registry leaves behind after Close is found there.
//
// # The suite itself is proved
//
// The tests of this package break the rules below one at a time, on an adapter
// that is sound otherwise, and demand that the named case fails for that reason;
// and they run every case with faults that do nothing, and demand that it fails.
//
//	the failure index is always 0                        → Commit/FailureIndexMiddle
//	of two failures the later is named                   → Commit/FailureIndexTwoBadPicksFirst
//	the failure is no CommitError                        → Commit/ErrorIsTyped
//	operations before a failure stay applied             → Commit/NoneAppliedOnFailure
//	missing parents are made silently                    → Nodes/CreateNoParent
//	an ephemeral node accepts children                   → Nodes/CreateUnderEphemeral
//	Delete takes children along                          → Nodes/DeleteWithChildren
//	version 0 means any version                          → Nodes/SetWrongVersion
//	checks are not made                                  → Commit/CheckMissing
//	duplicate paths are accepted                         → Commit/DuplicatePathRefused
//	too many operations become two commits               → Commit/OverMaxOps
//	an oversized value is sent                           → Nodes/ValueOverLimitNothingSent
//	the revision is not that of the commit               → Commit/RevisionIsModified
//	an ended context is an uncertain outcome             → Commit/ContextCancelledBeforeSend
//	a refusal hits a neighbour                           → Commit/ConcurrentEachItsOwn
//	an uncertain commit is sent again                    → Uncertain/AnswerLostCreate
//	a lost request is sent again                         → Uncertain/RequestLostCommit
//	an uncertain outcome is called a failure             → Uncertain/AnswerLostCommit
//	a commit in flight at the loss is called failed      → Uncertain/CommitInFlightAtLoss
//	Version does not rise                                → Nodes/SetVersionIncrements
//	Version goes on over incarnations                    → Nodes/RecreateRestartsVersion
//	Created is the same for every incarnation            → Nodes/RecreateNewCreated
//	Set makes an ephemeral node persistent               → Commit/SetKeepsEphemeral
//	every ephemeral node is Owned                        → Sessions/OwnedFlag
//	reads are older than own writes                      → Nodes/ReadOwnWrites
//	absent nodes are left out of Get                     → Nodes/GetOrder
//	Children is not sorted                               → Lists/ChildrenSorted
//	Children lists deeper levels                         → Lists/ChildrenOneLevelOnly
//	a missing directory is an empty one                  → Lists/ChildrenMissingDir
//	ephemeral nodes outlive Close                        → Sessions/CloseRemovesEphemerals
//	ephemeral nodes are persistent                       → Sessions/ExpireRemovesEphemerals
//	Done is not closed while cut off                     → Sessions/DoneNotAfterDeadline
//	Deadline is too late                                 → Sessions/DeadlineNeverAfterServerDeletion
//	a dead session writes on in a new life               → Sessions/NoWriteAfterLoss
//	a broken connection ends the session                 → Sessions/DropReconnectSameSession
//	loss is another error                                → Sessions/ErrorEveryMethod
//	Synced is missing                                    → Watch/InitialThenSynced
//	deletions are not delivered                          → Watch/SeesDelete
//	absence is not delivered                             → Watch/AbsentNode
//	the newest change is held back until the next comes  → Watch/LastStateAlways
//	an older state comes again                           → Watch/PerPathMonotonic
//	a watch does not go on after its connection broke    → Watch/SurvivesDrop
//	what changed while cut off is not delivered          → Watch/ChangesDuringDropSeen
//	adding a target twice starts it again                → Watch/AddTwiceIsOne
//	a watch stays silent when its session is lost        → Watch/EndsOnSessionLoss
//	two callers on one session share a lock              → Locks/ExclusiveWithinOneSession
//	tokens do not rise                                   → Locks/TokenIncreases
//	the guard always passes                              → Locks/GuardFailsAfterRelease
//	Release empties the queue                            → Locks/ReleaseAfterTakeoverDoesNotDeleteSuccessor
//	a waiter that gives up keeps its place               → Locks/CancelWhileWaitingLeavesNoNode
//	a dead waiter believes to lead                       → Locks/NoPhantomLeader
//	a node that was ephemeral once is ephemeral for ever → Models/RapidSequential
//	after a broken connection commits are applied without their checks → Models/RapidSequential
//	the first read after a broken connection is as old as the one before → Models/LinearizableRegister
//	an uncertain commit is sent again behind the caller's back → Models/LinearizableRegister
//	versions are compared before the commit and not with it → Models/LinearizableCommit
//	a token is given again after the connection broke    → Models/LockContenders
//	a watcher loses a change, one broken connection in five → Models/WatchConverges
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
// its own and below a path of its own; those that disturb the whole service run
// alone. Most cases wait for the harness's session timeout once or twice: one to
// two seconds are right.
//
// # Speed
//
// [Bench] compares an adapter with the client that it is built on, in one run and
// by ratios, so that the figures of two machines can be compared.
//
// # Errors
//
// A harness that cannot inject a fault returns [ErrUnsupported], and the case
// fails.
package conformance
