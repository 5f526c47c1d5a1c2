// Package items is the state machine of one instance's sharding items of one job: when
// an item is offered a fire, begins, runs, ends, and what becomes of fires that came
// due meanwhile. It is pure: events go in as method calls with the time, actions come
// out, and whoever owns the machine commits, runs and tells them.
//
//	m := items.New(config)
//	for _, a := range m.Own(ledger, now) { ... }
//	for _, a := range m.Tick(now) { ... } // Begin: commit it, then m.Begun
//
// # States of an item
//
//	         Begin               Begun              Entered
//	 idle ─────────▶ beginning ─────────▶ queued ─────────────▶ running
//	  ▲ │ Account      │ Refused            │ Dropped: GiveBack     │ Returned: End
//	  │ ▼              ▼                    ▼                       │
//	accounting       idle                ending ◀───────────────────┘
//	  │ Committed                           │ Committed
//	  ▼                                     ▼
//	 idle, and offered what is next         idle too
//
// An idle item has a cursor: every fire due at or before it has an outcome. Whatever
// happens, the fires after the cursor are still owed, here or to the item's next owner;
// so no fire is lost by an event that comes late, twice or not at all. Of one that is lent
// only what is to run again begins; its cursor is its owner's. An item that the
// ledger does not hold any more goes on to its end as a stray. With monitoring
// off the states are the same, but nothing is committed: Begin and End are left out.
//
// # Concurrency
//
// None: a machine belongs to one goroutine at a time. Its cost: an event touches the
// items that it names; Own, Tick and the switches touch all.
package items
