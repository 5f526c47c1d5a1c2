// Package leading is one instance's part in leading a job: it is a candidate while
// nobody leads, and as the leader it makes what is into what should be: the epoch, the
// schedule in force, and who owns which item (package sharding derives it).
//
//	l := leading.New(config)
//	l.OnLeader(node)   // from the watches
//	l.Look()            // something has changed that the assignment depends on
//	l.Close()
//
// # States
//
//	            nobody leads, able             seen: it is us
//	following ─────────────────────▶ candidate ───────────────▶ leading
//	    ▲                                │                        │
//	    │  another one won               │                        │ not able any more,
//	    ├────────────────────────────────┘                        │ or the term is gone
//	    └─────────────────────────────────────────────────────────┘ abdicates
//
// Every commit of a leader checks its life and sets its term at the version that it
// knows: nothing of a former leader applies, and one whose answer was lost is found out
// by the term's value (package settle). Nothing is flagged: what is to be done is
// derived from what is, so that a leader that dies leaves no need behind.
//
// What is in force, and was destroyed by somebody, no ledger says: the leader makes it again as its process saw it last
// (Memory).
//
// A leader that goes on being refused, or denied, for some ten seconds steps down as well, where
// another instance may be given items, and stands back for two seconds: others may have more
// rights, or be connected to another server. Where nobody is elected meanwhile it leads again.
//
// Work stands on three tasks of the session's control pool: leading itself, which does
// nothing that takes long, tidying, which takes its time, and saying what the leader's
// clock says, which changes nothing that a term guards.
//
// # Concurrency
//
// All methods are safe for concurrent use and return at once. Facts, Emit, Waits,
// Follow and Unfollow are called without a lock held.
package leading
