package simulation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/offset"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// What the simulation knows of the engine's API stands in this file alone.

// An engine is a scheduler.
type engine struct{ *core.Scheduler }

// A shard is what a function is given.
type shard struct {
	job, instance      string
	epoch, item, total int
	due                time.Time
	fence              registry.Revision
	redo               bool
	request            int64
	// set moves the item's offset and counts one success. sure: it is known that nothing was set.
	set func(ctx context.Context, to string) (sure bool, err error)
}

func newEngine(reg registry.Registry, stable, ip string, now func() time.Time, listen func(event.Event), rounds ...core.Option) engine {
	return engine{core.New(reg, append(rounds,
		core.WithLogger(slog.New(slog.DiscardHandler)), core.WithInstanceName(stable), core.WithIP(ip), core.WithClock(now), core.WithListener(listen),
		core.WithElasticJob())...)}
}

// hearing is the option by which a process listens to the rounds of a job.
func hearing(j *job, call func(ctx context.Context, c called) error) core.Option {
	hear := func(phase event.RoundPhase) func(context.Context, core.Round) error {
		return func(ctx context.Context, r core.Round) error {
			return call(ctx, called{job: r.Job, instance: r.Instance, phase: string(phase), due: r.Due, attempt: r.Attempt})
		}
	}
	var before func(context.Context, core.Round) error
	if j.gathers {
		before = hear(event.RoundStarted)
	}
	return core.WithRoundListeners(j.name, core.RoundListeners{
		BeforeAll: before, AfterAll: hear(event.RoundCompleted), Timeout: hearingTimeout, Again: j.again, FailLate: j.failLate,
	})
}

// heldUp reports whether an item failed for a listener before its round.
func heldUp(err error) bool { return errors.Is(err, core.ErrHeldUp) }

// hearingTimeout bounds a call of a listener to rounds.
const hearingTimeout = 3 * time.Second

// called is what a listener to rounds is given.
type called struct {
	job, instance, phase string
	due                  time.Time
	attempt              int
}

// add adds a job whose items run.
func (e engine) add(j *job, run func(context.Context, shard) error) error {
	monitor := core.MonitorOn
	if j.unmonitored {
		monitor = core.MonitorOff
	}
	return e.Add(core.JobFunc(func(ctx context.Context, s core.Shard) error {
		return run(ctx, shard{
			job: s.Job, instance: s.Instance, epoch: s.Epoch, item: s.Item, total: s.Total, due: s.Due, fence: s.Fence,
			redo: s.Source == core.SourceFailover, request: s.Request, set: setter(s),
		})
	}), core.JobConfig{
		Misfire: policies[j.misfire], MisfireCap: j.misfireCap, MisfireWindow: j.misfireWindow,
		Name: j.name, Cron: j.cron, TimeZone: j.zone, Shards: j.total, Monitor: monitor,
		Concurrency: j.concurrency, ReconcileInterval: j.reconcile, Failover: j.failover, BeginAhead: j.ahead, StaticSharding: j.static,
		MaxTimeDiff: time.Duration(j.within) * time.Second,
	})
}

func setter(s core.Shard) func(ctx context.Context, to string) (bool, error) {
	return func(ctx context.Context, to string) (bool, error) {
		at, err := offset.Open(ctx, s, offset.Config{})
		if err != nil {
			return true, err
		}
		err = at.Set(ctx, to, offset.Counted{Success: 1})
		return errors.Is(err, offset.ErrNotOwner) || errors.Is(err, offset.ErrMoved), err
	}
}

// offsetOf reads the node of an offset.
func offsetOf(value []byte) (offset string, successes int64, ok bool) {
	o, err := layout.UnmarshalOffset(value)
	return o.Offset, o.Success, err == nil
}

// policies are those for missed fires, by name.
var policies = map[string]core.Misfire{"once": core.MisfireOnce, "skip": core.MisfireSkip, "all": core.MisfireAll}

// killOf is the value that asks for the end of a run.
func killOf(item int, due time.Time) string {
	return string(layout.MarshalKill(layout.Kill{Item: item, Due: due, By: "the simulation"}))
}

// setBackWarning is told of records that are set back, which a clock far ahead had made.
const setBackWarning = "was ahead of the clock and is set back"

// givenUp is why a fire is cut that has taken too many instances with it.
const givenUp = string(event.CutTries)

// mayTell reports whether a fire may be told as skipped for a reason under a policy.
func mayTell(policy, reason string) bool {
	switch event.SkipReason(reason) {
	case event.SkipMissed, event.SkipRunning:
		return policy == "skip"
	case event.SkipBeyond:
		return policy == "all"
	}
	return reason != string(history.Folded) || policy == "once"
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

// requestOf is the value of a request.
func requestOf(items []int, refuse bool, expires time.Time, param string) string {
	r := layout.Request{Refuse: refuse, Expires: expires, Parameter: param}
	if len(items) > 0 {
		r.Items = ledger.FormatRange(items)
	}
	return string(layout.MarshalRequest(r))
}
