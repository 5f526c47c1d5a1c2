package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elasticron/elasticron/internal/layout"
)

// JobState is one of ElasticJob's four.
type JobState string

const (
	// JobOK: instances are there, and every item has one of them.
	JobOK JobState = "OK"
	// JobCrashed: no instance is registered.
	JobCrashed JobState = "CRASHED"
	// JobDisabled: the job's configuration says disabled, or every server is, or none is known.
	JobDisabled JobState = "DISABLED"
	// JobSharding: items wait to be assigned. ElasticJob's SHARDING_FLAG.
	JobSharding JobState = "SHARDING_FLAG"
)

// A Job is one job in short.
type Job struct {
	// Name is its name.
	Name string
	// State is the first of CRASHED, DISABLED, SHARDING_FLAG, OK that holds. Why says it
	// in words, "" for OK.
	State JobState
	Why   string
	// Description and Cron are the configured ones; the schedule in force may still be
	// another.
	Description, Cron string
	// Instances is the number of registered instances.
	Instances int
	// Total is the sharding total count that is configured.
	Total int
	// Leader is the id of the leading instance, "" when there is none.
	Leader string
	// Next is the next fire by the schedule in force; zero when there is none, or it follows
	// the items' runs (a fixed delay).
	Next time.Time
	// Err is why the configuration cannot be read: Description, Cron and Total are then empty.
	Err error
}

// atOnce bounds the jobs that are read at once.
const atOnce = 16

// Jobs returns all jobs, by name.
func (a *Admin) Jobs(ctx context.Context) ([]Job, error) {
	jobs, err := eachJob(ctx, a, func(v *view) (Job, bool) { return v.brief(), true })
	return jobs, failed("list jobs", "", err)
}

// JobsOn returns the jobs that know a server, by name. State is then that of the server in
// the job, OK or DISABLED, and Instances are those on it.
func (a *Admin) JobsOn(ctx context.Context, ip string) ([]Job, error) {
	jobs, err := eachJob(ctx, a, func(v *view) (Job, bool) {
		b := v.brief()
		b.State, b.Why, b.Instances = JobOK, "", len(v.on(ip))
		if !v.enabled(ip) {
			b.State, b.Why = JobDisabled, "the server "+ip+" is disabled"
		}
		return b, v.has(v.job.Server(ip))
	})
	return jobs, failed("list jobs", "", err)
}

// Job returns one job.
func (a *Admin) Job(ctx context.Context, name string) (Job, error) {
	v, err := a.view(ctx, name)
	if err != nil {
		return Job{}, failed("show", name, err)
	}
	return v.brief(), nil
}

// view reads one job, no older than the call.
func (a *Admin) view(ctx context.Context, name string) (*view, error) {
	j, err := layout.New(a.namespace, name)
	if err != nil {
		return nil, err
	}
	if err := a.store.Sync(ctx); err != nil {
		return nil, err
	}
	return a.look(ctx, j)
}

// eachJob reads all jobs, some at once, and returns what f makes of those it wants, by name.
func eachJob[T any](ctx context.Context, a *Admin, f func(*view) (T, bool)) ([]T, error) {
	if err := a.store.Sync(ctx); err != nil {
		return nil, err
	}
	names, err := a.names(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]*T, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() error {
			j, err := layout.New(a.namespace, name)
			if err != nil {
				return err
			}
			v, err := a.look(ctx, j)
			if errors.Is(err, ErrNoJob) {
				return nil // it went meanwhile
			}
			if err != nil {
				return err
			}
			if t, wanted := f(v); wanted {
				found[i] = &t
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []T
	for _, t := range found {
		if t != nil {
			all = append(all, *t)
		}
	}
	return all, nil
}

func (v *view) brief() Job {
	b := Job{
		Name: v.job.Name(), Description: v.stored.Description, Cron: v.stored.Cron, Total: v.stored.ShardingTotalCount,
		Instances: len(v.instances), Leader: v.value(v.job.Leader()), Err: v.configErr,
	}
	b.State, b.Why = v.state()
	if s, err := v.timing(); err == nil {
		if _, delayed := s.Delay(); !delayed {
			b.Next, _ = s.Next(v.now)
		}
	}
	return b
}

// state is ElasticJob's rule, on the records where there are any.
func (v *view) state() (JobState, string) {
	if len(v.instances) == 0 {
		return JobCrashed, "no instance is registered"
	}
	if why := v.jobDisabled(); why != "" {
		return JobDisabled, why
	}
	holdings := v.holdings()
	if len(holdings) == 0 {
		return JobSharding, "no item is assigned yet"
	}
	for n, h := range holdings {
		if name := v.bound(h); name != "" && (h.item.Lent() || !v.alive(h.owner)) {
			return JobSharding, fmt.Sprintf("item %d is bound to the instance %s, which is away", n, name)
		}
		if !v.alive(h.owner) {
			return JobSharding, fmt.Sprintf("the owner of item %d, %s, is gone", n, h.owner)
		}
	}
	if v.base != nil { // ElasticJob's own members keep no record of it
		if total := v.stored.ShardingTotalCount; v.configErr == nil && v.base.To != total {
			return JobSharding, fmt.Sprintf("the sharding total count changes from %d to %d", v.base.To, total)
		}
		for n := range v.base.To {
			if h, assigned := holdings[n]; !assigned || h.known && h.epoch != v.base.Epoch {
				return JobSharding, fmt.Sprintf("item %d is not assigned yet", n)
			}
		}
	}
	return JobOK, ""
}

// jobDisabled says why nothing of the job may begin anywhere, "" when something may.
func (v *view) jobDisabled() string {
	switch {
	case v.stored.Disabled:
		return v.stored.DisabledReason()
	case len(v.servers) == 0:
		return "no server is known"
	case !slices.ContainsFunc(v.servers, v.enabled):
		return "every server is disabled"
	}
	return ""
}
