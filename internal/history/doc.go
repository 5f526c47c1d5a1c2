// Package history keeps what happened in one run of many schedulers, a simulation or
// processes under faults, and judges it.
//
//	w := history.NewWriter(file, "worker-3", clock)
//	w.Write(history.Record{Kind: history.Entered, Job: "mail", Item: 4, Due: due, Fence: 17})
//	...
//	records, err := history.ReadDir(dir)
//	report := history.Check(records, history.Rules{Timetable: timetable})
//	for _, v := range report.Violations { fmt.Println(v) }
//
// A record is one line of JSON: what happened, to whom, and when, twice: by the wall
// clock of the process that saw it, and by one clock that all of them share.
//
// # Guarantees
//
// A line is written with one call, before Write returns: what was written is there
// after kill -9. Check is a pure function of the records and its rules; it sorts a
// copy by the common time and never panics, whatever the records hold.
//
// # Concurrency
//
// A Writer is safe for concurrent use. Everything else is plain data.
//
// # Errors
//
// A Writer remembers its first error (Err). A reader's error names the line. A last
// line without its end is what a killed process leaves; it is dropped.
package history
