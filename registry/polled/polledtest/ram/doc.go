// Package ram is a polled.Store in memory, for tests of the kit and of its harness.
//
//	var db ram.Database
//	store := db.Store()
//
// # Guarantees
//
// Those of polled.Store. A [Database] outlives its stores: what is opened after one
// was closed has the data. It reads no clock, so that it runs inside a synctest
// bubble.
//
// # Concurrency
//
// All methods may be called from many goroutines. There are none in the background.
//
// # Errors
//
// Those that polled.Store asks for; a store that was closed is
// registry.ErrUnavailable.
package ram
