package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// This file is the only one that knows core: what a worker gives it, and what its
// events and shards are in a history.

// endsUntold: core tells no end of a single item yet.
const endsUntold = true

// newScheduler returns the scheduler of a worker with all jobs.
func newScheduler(w *worker, reg registry.Registry, log *slog.Logger) (*core.Scheduler, error) {
	s := core.New(reg,
		core.WithInstanceName(w.task.Name), core.WithIP(w.task.IP), core.WithClock(w.now), core.WithLogger(log),
		core.WithListener(w.tell))
	for _, spec := range jobs {
		work := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			return w.run(ctx, spec, history.Record{
				Job: s.Job, Total: s.Total, Item: s.Item, Due: s.Due, Instance: s.Instance, Fence: int64(s.Fence),
			})
		})
		err := s.Add(work, core.JobConfig{
			Name: spec.name, Cron: spec.crons[0], TimeZone: "UTC", Shards: spec.totals[0], MonitorOff: spec.unmonitored,
			Concurrency: 64,
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// tell writes down an event.
func (w *worker) tell(e core.Event) {
	switch e := e.(type) {
	case core.Started:
		w.instanceOf(e.Job, e.Instance)
		w.out.Write(history.Record{Kind: history.Started, Job: e.Job, Instance: e.Instance})
	case core.Stopped:
		w.out.Write(history.Record{Kind: history.Stopped, Job: e.Job, Instance: e.Instance, Err: text(e.Err)})
	case core.LeaderChanged:
		w.out.Write(history.Record{Kind: history.Led, Job: e.Job, Of: e.Leader, Self: e.Self})
	case core.Resharded:
		w.out.Write(history.Record{Kind: history.Resharded, Job: e.Job, Total: e.Total, Count: len(e.Moves), Took: e.Took})
	case core.ItemsChanged:
		w.out.Write(history.Record{Kind: history.Owns, Job: e.Job, Items: e.Items, Total: e.Total, Instance: w.instance(e.Job)})
	case core.ItemsSkipped:
		w.skipped(e)
	case core.SessionRegained:
		w.out.Write(history.Record{Kind: history.Regained, Session: e.Session, Took: e.Outage})
	case core.Waiting:
		w.out.Write(history.Record{Kind: history.Waits, Job: e.Job, Reason: e.For})
	case core.Warning:
		w.out.Write(history.Record{Kind: history.Warned, Job: e.Job, Reason: e.Problem, Err: text(e.Err)})
	}
}

// skipped tells a run that its instance's death cut short as what it is.
func (w *worker) skipped(e core.ItemsSkipped) {
	if e.Reason == core.SkipCrashed {
		for _, item := range e.Items {
			w.out.Write(history.Record{Kind: history.Cut, Job: e.Job, Item: item, Due: e.Due})
		}
		return
	}
	w.out.Write(history.Record{
		Kind: history.Skipped, Job: e.Job, Items: e.Items, Due: e.Due, Count: e.Count, Reason: string(e.Reason),
	})
}

// start starts it and waits until all jobs are registered.
func start(ctx context.Context, s *core.Scheduler) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return s.Start(ctx)
}

// startTime is more than any fault takes.
const startTime = time.Minute
