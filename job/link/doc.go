// Package link stands between the scheduler and a job: each link is a
// func(core.Job) core.Job that does something around one run of one item.
//
//	work := link.Chain(job,
//		link.Listen(link.Listener{After: count}),
//		link.Retry(link.Retries{Max: 3, If: temporary}),
//		link.Timeout(link.Limit{After: 30 * time.Second}),
//	)
//	err := sched.Add(work, cfg)
//
// # Order
//
// The first link is the outermost. The usual order is the one above, with error handlers
// (package errorhandler) behind the listeners:
//
//  1. Listen sees a run as a whole, once, with the error that it ends with.
//  2. An error handler sees the error that is left when all attempts have failed.
//  3. Retry calls what follows again.
//  4. Timeout bounds each attempt. In front of Retry it bounds all of them together.
//
// A link of one's own is a function of the same form; it passes the Shard on, and returns
// only when the job has returned: the scheduler takes the item for ended then.
//
// # What a link sees of a failure
//
// Listen and Retry turn a panic of what they call into its error, a *core.PanicError, as the
// scheduler would. runtime.Goexit, which t.FailNow calls, ends the whole run: it is not
// tried again, and Listener.After is told core.ErrGoexit.
//
// # Concurrency
//
// A link is called for many items at once, and so are its functions. Nothing here starts a
// goroutine that outlives the run.
package link
