package simulation

import (
	"context"
	"encoding/json"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// What the simulation knows of the engine's API stands in this file alone.

// survivesGoexit: runtime.Goexit in a function ends the item, as a panic does.
const survivesGoexit = false

// tellsEnds: the recorded end of each run is told as an event.
const tellsEnds = false

// An engine is a scheduler.
type engine struct{ *core.Scheduler }

// A shard is what a function is given.
type shard struct {
	job, instance      string
	epoch, item, total int
	due                time.Time
	fence              registry.Revision
}

func newEngine(reg registry.Registry, stable, ip string, now func() time.Time, listen func(event.Event)) engine {
	return engine{core.New(reg, core.WithInstanceName(stable), core.WithIP(ip), core.WithClock(now),
		core.WithListener(func(e core.Event) {
			for _, e := range modern(e) {
				listen(e)
			}
		}))}
}

// add adds a job whose items run.
func (e engine) add(j *job, run func(context.Context, shard) error) error {
	return e.Add(core.JobFunc(func(ctx context.Context, s core.Shard) error {
		return run(ctx, shard{
			job: s.Job, instance: s.Instance, item: s.Item, total: s.Total, due: s.Due, fence: s.Fence,
		})
	}), core.JobConfig{
		Name: j.name, Cron: j.cron, TimeZone: j.zone, Shards: j.total, MonitorOff: j.unmonitored,
		Concurrency: j.concurrency, ReconcileInterval: j.reconcile,
	})
}

// runs reports whether the job is registered and fires here.
func (e engine) runs(job string) bool {
	for _, j := range e.State().Jobs {
		if j.Name == job {
			return j.Phase == core.PhaseRunning
		}
	}
	return false
}

// modern is an event in the types of package event.
func modern(e core.Event) []event.Event {
	switch e := e.(type) {
	case core.Started:
		return []event.Event{event.Started{Job: e.Job, Instance: e.Instance}}
	case core.Stopped:
		why := event.StopCalled
		if e.Err != nil {
			why = event.StopFailed
		}
		return []event.Event{event.Stopped{Job: e.Job, Instance: e.Instance, Reason: why, Err: e.Err}}
	case core.LeaderChanged:
		return []event.Event{event.LeaderChanged{Job: e.Job, Leader: e.Leader, Self: e.Self}}
	case core.Resharded:
		done := event.Resharded{Job: e.Job, Total: e.Total, Commits: e.Commits, Took: e.Took}
		for _, m := range e.Moves {
			done.Moves = append(done.Moves, event.Move(m))
		}
		return []event.Event{done}
	case core.ItemsChanged:
		return []event.Event{event.ItemsChanged{Job: e.Job, Items: e.Items, Total: e.Total}}
	case core.FireBegun:
		return []event.Event{event.FireBegun{Job: e.Job, Due: e.Due, Items: e.Items, Late: e.Late, MadeUp: e.MadeUp}}
	case core.FireEnded:
		var all []event.Event
		for _, n := range e.Items {
			all = append(all, event.ItemEnded{Job: e.Job, Item: n, Due: e.Due})
		}
		return all
	case core.ItemsSkipped:
		if e.Reason == core.SkipCrashed {
			return []event.Event{event.ItemCut{Job: e.Job, Item: e.Items[0], Due: e.Due}}
		}
		return []event.Event{event.ItemsSkipped{
			Job: e.Job, Items: e.Items, Due: e.Due, Count: e.Count, Reason: event.SkipReason(e.Reason), Detail: e.Detail,
		}}
	case core.SessionLost:
		return []event.Event{event.SessionLost{Err: e.Err}}
	case core.SessionRegained:
		return []event.Event{event.SessionRegained{Session: e.Session, Outage: e.Outage}}
	case core.Waiting:
		return []event.Event{event.Waiting{Job: e.Job, For: e.For}}
	case core.ConfigChanged:
		changed := event.ConfigChanged{Job: e.Job, Adopted: e.Adopted}
		for _, f := range e.Fields {
			changed.Changes = append(changed.Changes, event.Change{Field: f})
		}
		return []event.Event{changed}
	case core.Warning:
		return []event.Event{event.Warning{Job: e.Job, Problem: e.Problem, Err: e.Err}}
	}
	return nil
}

// ledgerOf reads a ledger's value; false means that it is not one.
func ledgerOf(instance string, value []byte) (history.Ledger, bool) {
	l, err := ledger.Decode(value)
	if err != nil {
		return history.Ledger{}, false
	}
	seen := history.Ledger{Instance: instance, Total: l.Total}
	for _, n := range l.Numbers() {
		it := l.Items[n]
		seen.Items = append(seen.Items, history.Holding{Item: n, Through: it.Through, Run: it.Run, Leaving: it.Leaving})
	}
	return seen, true
}

// The nodes of what is in force.
func schedulePath(ns, job string) string {
	return "/elasticron/" + ns + "/" + job + "/inforce/schedule"
}
func basePath(ns, job string) string { return "/elasticron/" + ns + "/" + job + "/inforce/base" }

func scheduleOf(value []byte) (s history.Schedule, ok bool) {
	return s, json.Unmarshal(value, &s) == nil
}

func baseOf(value []byte) (b history.Base, ok bool) {
	return b, json.Unmarshal(value, &b) == nil
}
