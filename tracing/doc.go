// Package tracing hands everything that ElasticJob keeps in its tables JOB_EXECUTION_LOG and
// JOB_STATUS_TRACE_LOG to a sink: to a log, a database, whatever implements Sink.
//
//	trace := tracing.New(tracing.Slog(logger), tracing.Config{})
//	defer trace.Close(ctx) // after the scheduler has stopped
//	sched := core.New(reg, core.WithListener(trace.Listen))
//
// Scheduler.Runs has the latest runs of a job without any of this.
//
// # Guarantees
//
//   - A sink never delays a run, nor other listeners: what it is to get waits in a queue of bounded
//     length, and what finds the queue full is dropped, and counted (Tracer.Stats). Nothing of it is
//     kept over a crash.
//   - A sink is called on one goroutine, in the order in which things happened. One that fails, or
//     panics, is counted, and gets what comes next all the same.
//   - An Execution is handed over twice under one ID: when the function is called, and when it has
//     returned. A run that was cut off by the death of its process has only the first.
//
// # What is different from ElasticJob
//
// A TaskID is another one for each run. Where an item runs again after the death of its instance, TaskID
// and Source of the Execution say FAILOVER, as ElasticJob's Cloud wrote it: its Lite, which has the words,
// says READY and NORMAL_TRIGGER then too. TaskID and ExecutionType of a Status say READY here as there.
// ElasticJob writes three rows for a fire that has no items on an instance; here nothing happens then,
// and nothing is told. What is skipped is TASK_DROPPED, what was cut by the death of an instance
// TASK_LOST; ElasticJob writes neither.
//
// # Concurrency
//
// A Tracer is safe for concurrent use, and may listen to several schedulers.
//
// # Errors
//
// Those of a sink go to Config.Failed. Close fails when its context ends before everything is handed over.
package tracing
