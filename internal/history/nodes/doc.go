// Package nodes reads what stands in a registry into the form of a history, for those who
// watch a run: the simulation and chaos.
//
//	ledgers, broken, err := nodes.Ledgers(ctx, session.Get, roots...)
//	snapshot.Ledgers = append(snapshot.Ledgers, ledgers...)
//
// # Guarantees
//
// Everything that a value says and that a history has a field for is read. No function keeps
// what it is given.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Errors
//
// A value that the engine could not read either is an error of internal/layout or of
// internal/layout/ledger, unwrapped.
package nodes
