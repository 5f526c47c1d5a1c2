package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/bench/internal/contest"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

const namespace = "bench"

// elasticron is Elasticron as a contender.
type elasticron struct {
	reg     registry.Registry
	sched   *core.Scheduler
	tally   *contest.Tally
	again   bool
	started bool
	counts  bool // Config.Counts

	mu    sync.Mutex
	items map[string]int // by job, where it counts
	owns  contest.Owned

	registered time.Duration // what that took of the last Add
}

func openElasticron(ctx context.Context, cfg contest.Config, tally *contest.Tally) (contest.Contender, error) {
	reg, err := openRegistry(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &elasticron{reg: reg, tally: tally, again: cfg.Contender == oursAgain, counts: cfg.Counts, items: map[string]int{}}
	opts := []core.Option{core.WithLogger(nil), core.WithIP("127.0.0.1"), core.WithInstanceName(cfg.Name)}
	if e.counts { // else no event is made
		opts = append(opts, core.WithListener(e.hear))
	}
	e.sched = core.New(reg, opts...)
	return e, nil
}

// dialing is what a server that is busy with other tests may take to answer.
const dialing = time.Minute

func openRegistry(ctx context.Context, cfg contest.Config) (registry.Registry, error) {
	if cfg.Registry == onZooKeeper {
		return zookeeper.Open(ctx, zookeeper.Config{Servers: []string{cfg.Server}, Namespace: namespace})
	}
	return etcd.Open(ctx, etcd.Config{Endpoints: []string{cfg.Server}, Namespace: namespace, DialTimeout: dialing})
}

// startTime is what many jobs may take to register on a machine that has other work.
const startTime = 10 * time.Minute

// Add returns when each item of the jobs has an owner.
func (e *elasticron) Add(ctx context.Context, jobs contest.Jobs) error {
	begun := time.Now()
	monitor := core.MonitorOff
	if jobs.Recorded {
		monitor = core.MonitorOn
	}
	for i := jobs.First; i < jobs.First+jobs.Count; i++ {
		work := core.JobFunc(func(_ context.Context, s core.Shard) error {
			e.tally.Began(i, s.Due)
			return nil
		})
		cfg := core.JobConfig{
			Name: contest.JobName(i), Cron: jobs.Cron("?"), TimeZone: "UTC", Shards: jobs.Items, Monitor: monitor, Failover: e.again && jobs.Recorded,
			Strategy: "ODEVITY", // half of the jobs of one item to each of two instances
		}
		if e.counts {
			cfg.Strategy = "STICKY"
		}
		if jobs.Period == 0 {
			cfg.Cron += " 2099"
		}
		if err := e.sched.Add(work, cfg); err != nil {
			return err
		}
	}
	if !e.started {
		e.started = true
		ctx, cancel := context.WithTimeout(ctx, startTime) // Start itself waits for 30 s
		defer cancel()
		if err := e.sched.Start(ctx); err != nil {
			return err
		}
	}
	if err := poll(ctx, func() (bool, error) { return all(e.sched.State(), registered) }); err != nil {
		return err
	}
	e.registered = time.Since(begun)
	return poll(ctx, func() (bool, error) { return all(e.sched.State(), owned) })
}

// hear counts what it owns.
func (e *elasticron) hear(told event.Event) {
	if c, is := told.(event.ItemsChanged); is {
		now := time.Now()
		e.mu.Lock()
		defer e.mu.Unlock()
		if more := len(c.Items) - e.items[c.Job]; more != 0 {
			e.items[c.Job] = len(c.Items)
			e.owns.Items += more
			if more > 0 {
				e.owns.At = now
			}
		}
	}
}

// Owned implements contest.Owner.
func (e *elasticron) Owned() contest.Owned {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owns
}

// Registered implements contest.Registrant.
func (e *elasticron) Registered() time.Duration { return e.registered }

var errFailed = errors.New("a job cannot run")

// all reports whether all jobs are in a state.
func all(s core.State, is func(core.JobState) bool) (bool, error) {
	for _, j := range s.Jobs {
		switch {
		case j.Phase == core.PhaseFailed:
			return false, fmt.Errorf("%w: %s: %w", errFailed, j.Name, j.Err)
		case !is(j):
			return false, nil
		}
	}
	return true, nil
}

func registered(j core.JobState) bool { return j.Phase == core.PhaseRunning && len(j.Instances) > 0 }

// owned: an instance that is alone owns every item. Beside others it may own none; its total is 0 then,
// as it is before the first epoch.
func owned(j core.JobState) bool {
	return registered(j) && (len(j.Instances) > 1 || j.Total > 0 && len(j.Items) == j.Total)
}

func (e *elasticron) Close(ctx context.Context) error {
	return errors.Join(e.sched.Stop(ctx), e.reg.Close())
}

// poll asks until it is done, or ctx ends. It spends a twentieth of the time on asking at most.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		begun := time.Now()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-time.After(max(20*time.Millisecond, 19*time.Since(begun))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
