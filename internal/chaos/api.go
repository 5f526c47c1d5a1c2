package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// This file is the only one that knows core: what a worker gives it, and what its
// events and shards are in a history.

// newScheduler returns the scheduler of a worker with all jobs.
func newScheduler(w *worker, reg registry.Registry, log *slog.Logger) (*core.Scheduler, error) {
	opts := []core.Option{
		core.WithInstanceName(w.task.Name), core.WithIP(w.task.IP), core.WithClock(w.now), core.WithLogger(log),
		core.WithListener(w.tell),
	}
	for _, spec := range jobs {
		if spec.listened {
			opts = append(opts, core.WithRoundListeners(spec.name, core.RoundListeners{
				BeforeAll: w.hear(history.BeforeAll), AfterAll: w.hear(history.AfterAll), Timeout: listenTime, FailLate: spec.failLate, Again: spec.again,
			}))
		}
	}
	s := core.New(reg, opts...)
	for _, spec := range jobs {
		work := core.JobFunc(func(ctx context.Context, s core.Shard) error {
			return w.run(ctx, spec, history.Record{
				Job: s.Job, Epoch: s.Epoch, Total: s.Total, Item: s.Item, Due: s.Due, Instance: s.Instance, Fence: int64(s.Fence),
				Redo: s.Source == core.SourceFailover, Request: s.Request,
			})
		})
		cfg := core.JobConfig{
			Name: spec.name, Cron: spec.crons[0], TimeZone: "UTC", Shards: spec.totals[0], Concurrency: 64, Failover: spec.failover,
			StaticSharding: spec.static, MaxTimeDiff: spec.within,
		}
		if spec.unmonitored {
			cfg.Monitor = core.MonitorOff
		}
		if err := s.Add(work, cfg); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hear is the listener to a phase of rounds.
func (w *worker) hear(phase string) func(context.Context, core.Round) error {
	return func(ctx context.Context, r core.Round) error {
		return w.heard(ctx, history.Record{
			Kind: history.Called, Job: r.Job, Due: r.Due, Instance: r.Instance, Reason: phase, Count: r.Attempt,
		})
	}
}

// tell writes down an event.
func (w *worker) tell(e event.Event) {
	switch e := e.(type) {
	case event.Started:
		w.instanceOf(e.Job, e.Instance)
		w.out.Write(history.Record{Kind: history.Started, Job: e.Job, Instance: e.Instance})
		if owned, told := w.owned[e.Job]; told { // before it had started, or as the instance before in this session
			owned.Instance = e.Instance
			w.out.Write(owned)
		}
	case event.Stopped:
		w.out.Write(history.Record{Kind: history.Stopped, Job: e.Job, Instance: e.Instance, Reason: string(e.Reason), Err: text(e.Err)})
	case event.LeaderChanged:
		w.out.Write(history.Record{Kind: history.Led, Job: e.Job, Of: e.Leader, Self: e.Self})
	case event.Resharded:
		w.out.Write(history.Record{Kind: history.Resharded, Job: e.Job, Epoch: e.Epoch, Total: e.Total, Count: len(e.Moves), Took: e.Took})
	case event.ItemsChanged:
		owns := history.Record{Kind: history.Owns, Job: e.Job, Items: e.Items, Total: e.Total, Instance: w.instance(e.Job)}
		w.owned[e.Job] = owns
		w.out.Write(owns)
	case event.SessionLost:
		clear(w.owned)
	case event.ItemEnded:
		w.out.Write(history.Record{
			Kind: history.Ended, Job: e.Job, Epoch: e.Epoch, Total: e.Total, Item: e.Item, Due: e.Due, Took: e.Took, Err: text(e.Err),
			Request: e.Request, Refused: errors.Is(e.Err, core.ErrHeldUp),
		})
	case event.RoundLate:
		w.out.Write(history.Record{Kind: history.LateRound, Job: e.Job, Due: e.Due, Items: e.Items, Took: e.Waited})
	case event.ItemCut:
		w.out.Write(history.Record{Kind: history.Cut, Job: e.Job, Epoch: e.Epoch, Item: e.Item, Due: e.Due, Of: e.Instance, Reason: string(e.Reason)})
	case event.ItemsSkipped:
		w.out.Write(history.Record{
			Kind: history.Skipped, Job: e.Job, Epoch: e.Epoch, Items: e.Items, First: e.First, Due: e.Due, Count: e.Count,
			Reason: string(e.Reason),
		})
	case event.ItemsFolded:
		w.out.Write(history.Record{
			Kind: history.Folded, Job: e.Job, Epoch: e.Epoch, Items: e.Items, First: e.First, Due: e.Last, Count: e.Count, Into: e.Into,
		})
	case event.SessionRegained:
		w.out.Write(history.Record{Kind: history.Regained, Session: e.Session, Took: e.Outage})
	case event.Waiting:
		w.out.Write(history.Record{Kind: history.Waits, Job: e.Job, Reason: e.For})
	case event.Warning:
		w.out.Write(history.Record{Kind: history.Warning(e.Problem), Job: e.Job, Reason: e.Problem, Err: text(e.Err)})
	}
}

// start starts it and waits until all jobs are registered. One whose clock is off starts when
// that is right.
func start(ctx context.Context, s *core.Scheduler) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err := s.Start(ctx)
	if field, wrong := errors.AsType[*core.ConfigError](err); wrong && field.Field == "MaxTimeDiff" {
		return nil
	}
	return err
}

// startTime is more than any fault takes.
const startTime = time.Minute
