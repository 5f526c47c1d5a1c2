// Package execution records the begin and the end of an instance's items in its
// ledger, one commit at a time.
//
//	rec := execution.NewRecorder(config, owner)
//	rec.Begin(due, []int{0, 1})      // owner.Begun or owner.Refused follows
//	rec.End(0, due, due)             // owner.Ended follows
//
// A commit checks the life, sets the ledger at the version that is known, and
// makes and deletes the items' running nodes. What is asked while one is in
// flight shares the next. Since every commit sets the ledger at a version, an
// uncertain one is settled by submitting it again: the answer is either that it
// is applied now, or that the version has moved on, after which nothing in
// flight can apply and the ledger says what did.
//
// All methods are safe for concurrent use and return at once; the owner is
// called from the recorder's lane, one call at a time.
package execution
