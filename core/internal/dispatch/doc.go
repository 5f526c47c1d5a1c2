// Package dispatch tells events: to listeners, one at a time and in order, and to a log.
//
//	d := dispatch.New(dispatch.Config{Listeners: listeners})
//	defer d.Close()
//	dispatch.Emit(d, event.Started{Job: "hello", Instance: id})
//
// It is the only place that decides how an event reads in a log. Emit never waits for a
// listener or a log, and costs no allocation for an event that nobody wants: the type
// decides before a value is kept. Who would have to gather what goes into an event asks
// Wants first.
//
// Listeners hear every event. Of the warnings of one problem that troubles many jobs the log
// has ten in ten seconds, and then a record of how many more there were ("more").
//
// # Concurrency
//
// Everything is safe for concurrent use. Listeners and the log are called on the one
// goroutine of the Dispatcher, which New starts and Close joins; that a listener is slow is
// logged on one of its own, which Close joins too. Whoever emits waits for neither: it may
// hold any lock. It asks the log's handler whether it is enabled.
//
// # Errors
//
// None: telling cannot fail. What a listener does wrong is told as an error in the log: one
// that panics, or ends the goroutine (runtime.Goexit), is called again with the next event.
// An error in an event may be the user's, and its methods may do the same: the record says so
// in its place. A log that does so itself is given the record once more, with nothing of the
// user's in it, and the default log says so, once. Text and Find are for whoever else asks
// such an error.
package dispatch
