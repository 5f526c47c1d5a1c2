// Package misfire decides what becomes of fires that came due before an item could
// begin them: after a stall, for a new owner of the item, at the end of a run that
// lasted too long, at a start. One function decides all of them.
//
//	line := misfire.Line{Now: schedule}
//	d := misfire.Decide(misfire.Rule{Run: 10}, line, through, now)
//	for _, due := range d.Runs { ... }
//
// It is pure: no clock, no I/O, no state.
package misfire
