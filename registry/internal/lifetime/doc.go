// Package lifetime is what the sessions of all adapters have in common: a deadline that heartbeats move, an end that
// comes before it, goroutines that are joined, and the list of a registry's sessions that are still open.
//
//	life := lifetime.New("etcd")
//	life.Begin(id, deadline, lead)
//	...
//	life.Extend(deadline, lead) // a heartbeat was acknowledged
//	...
//	life.Lose(errExpired)       // Done is closed; the first reason stays
//	life.Wait()
//
// # Concurrency
//
// Everything here is safe for concurrent use.
package lifetime
