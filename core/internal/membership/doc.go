// Package membership makes a job a member of its cluster in one session: it prepares
// the job's nodes, registers the instance, and follows by watches what the job depends
// on. What fires (package firing) and what leads (package leading) it only feeds.
//
//	m := membership.New(config)
//	m.Join()     // register, as soon as the registry lets it
//	m.Pause()    // begin nothing more
//	m.Close()    // the session ends
//
// # States of a member
//
//	preparing ──▶ watching ──▶ registered ──▶ firing ──▶ left
//	    ▲                          ▲            │  shut down from outside, and quiet
//	    │ the job's nodes are gone │            │
//	    └──────────────────────────┴────────────┘ its life, notice or ledger is gone:
//	                                              registers anew, with all that it has
//
// # Concurrency
//
// All methods are safe for concurrent use. One task does everything that needs the
// registry, one step at a time; watches and timers only note what they saw and poke it. Open
// runs are read, listeners called, and clocks compared, on tasks of their own.
package membership
