// Package firing fires one job's items in one registration: it joins the item machine
// (package items), the recorder of its ledger (package execution), the timer and the
// places of the items' functions, and tells what happens.
//
//	f := firing.New(config, start)
//	f.Configure(settings)   // the configuration, or the schedule in force, has changed
//	f.Own(ledger)           // begins what the ledger holds
//	f.Stop()                // begins nothing more
//	f.Quiet()               // whether nothing is in hand
//
// # Concurrency
//
// All methods are safe for concurrent use. One lock guards the machine; while it is
// held the locks of the recorder, of places, of the timer and of whoever gets events
// and watches are taken, never the other way round.
package firing
