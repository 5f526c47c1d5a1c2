// Package barrier decides which begun items wait until the listener before their round has
// returned.
//
//	var b barrier.Barrier
//	b.Put(barrier.Rule{On: true, Wait: 10 * time.Second}, now)
//	if b.Arrive(3, due, now) == barrier.Waits {
//		// until Claim, Tick or Put returns a Release of item 3
//	}
//
// It is a state machine without lock, I/O and clock: instants are given, by a clock that
// nobody sets. Every item that waits is released exactly once, or leaves. It is for one
// goroutine at a time, and has no errors.
package barrier
