// Package stall tells for how long this process has stood still: what is late by no more may be the doing of a busy
// machine, which tests must tell from a defect.
//
//	longest, end := stall.Watch()
//	defer end()
//	…
//	if d := longest(); d > 100*time.Millisecond {
//		// try again
//	}
//
// It sees what keeps this process from running, be it the machine, a debugger or the garbage collector; not what keeps
// another process from it. In a bubble of testing/synctest it is of no use: time there does not go on by itself.
//
// # Concurrency
//
// What Watch returns may be called concurrently. Its one goroutine is joined by end.
//
// # Errors
//
// There are none.
package stall
