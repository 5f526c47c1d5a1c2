// Package schedule says when a job fires: at the readings of a wall clock that a
// Quartz cron expression names, at a fixed rate, or a fixed delay after a run.
//
//	s, err := schedule.Parse(schedule.Config{Expr: "0 30 2 * * ?", Zone: "Europe/Berlin"})
//	...
//	next, ok := s.Next(time.Now()) // ok is false: it never fires again
//
// # Expressions
//
// Six or seven fields, separated by white space: seconds 0-59, minutes 0-59, hours
// 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 1-7 or SUN-SAT with
// 1=SUN, and optionally year 1970-2099. Names may be in any case. Each field is a
// list of
//
//	5          one value
//	*          every value
//	22-2       a range; it wraps around when its end lies before its start (not years)
//	5/15       from 5 in steps of 15 to the end of the field; */15 and /15 from its start
//	22-6/2     a range in steps, counted from its start
//	L L-3      day of month: the last, the third before the last
//	15W        day of month: the weekday nearest to the 15th, within the month
//	LW L-3W    day of month: the weekday nearest to L or L-3
//	6L         day of week: the last Friday of the month
//	6#3 FRI#3  day of week: the third Friday of the month
//	L          day of week: 7, every Saturday
//
// Exactly one of day of month and day of week must be ?, which means: not by this
// field. A step of 0 after * or a single value means no step, as in Quartz. A month
// without the day that is named (31, 31W, L-30, 6#5) is passed over.
//
// The descriptors @yearly (@annually), @monthly, @weekly (Sunday), @daily
// (@midnight) and @hourly stand for the start of each period. All of it is compared
// with the fires of Quartz 2.3.2; testdata/quartz-differences.tsv has every kind of
// difference that is known, with its reason.
//
// "@every 90s" fires at the multiples of its period since the Unix epoch, so that
// all members of a cluster agree and a restart shifts nothing. "@delay 90s" fires
// that long after the instant given to Next, which is the end of the last run. Both
// take 10ms to 87600h and measure elapsed time, whatever the zone.
//
// # Zones and changes of the clock
//
// A zone is an IANA name, UTC, or a fixed offset in Java's form (GMT+8, GMT-03:30).
// Programs that may run on a machine without a zone database import time/tzdata. A
// zone in front of the expression (TZ=, CRON_TZ=) is refused.
//
// An expression whose hours are all of 0-23, however written, follows elapsed time:
// it fires whenever the clock shows a matching reading, as often as it shows it, and
// not for readings that are left out. Gap and Overlap do not apply to it.
//
// Any other expression is meant for certain readings of each day:
//
//   - Gap. The clock goes forward and leaves readings out. If one or more that match
//     are among them, the schedule fires once, at the first instant after the gap
//     (RunAfterGap), or not at all (SkipGap). A fire that is due at that instant anyway
//     is the same fire.
//   - Overlap. The clock goes back and shows readings again. A matching one fires the
//     first time only (FirstOnly), or both times (Both).
//
// In New York 0 30 2 * * ? thus fires on 8 March 2026 at 03:00, and 0 30 1 * * ? on
// 1 November 2026 at 01:30 EDT and not at 01:30 EST. A day that a zone leaves out as
// a whole, such as 30 December 2011 in Apia, is a gap of a day.
//
// # Guarantees
//
// Next is strictly after its argument, monotonic, and depends on nothing but the
// Schedule and its argument. It takes less than a microsecond for nearly every
// expression, and looks no further than the last matching reading: after it, and
// for an expression without any, the answer is immediate. The slowest known search,
// some 50 microseconds, is for readings that fall into a gap every year with
// SkipGap. No schedule fires before 1970 or after 2099.
//
// Parse and all methods are safe for concurrent use. Parse's errors are *field.Error,
// one line each, of the field cron, timeZone, gap or overlap; nothing panics, whatever the text.
package schedule
