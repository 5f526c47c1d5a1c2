// Package misfire decides what becomes of fires that came due before an item could
// begin them: after a stall, for a new owner of the item, at the end of a run that
// lasted too long, at a start, after a time in which no instance was up. One function
// decides all of them.
//
//	rule := misfire.Rule{Policy: misfire.Once, Window: time.Hour}
//	d := misfire.Decide(rule, schedule, misfire.Span{From: through, UpTo: now, Now: now})
//	for _, due := range d.Runs { ... }
//
// It is pure: no clock, no I/O, no state. Each fire of the span is in exactly one of
// Decision.Runs, Folded and Skipped; what is skipped lies before what is folded, and that
// before what runs.
package misfire
