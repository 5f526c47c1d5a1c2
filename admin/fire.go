package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

// ErrNoFire: the job's schedule has no fire at that instant, or nobody records what becomes of it.
var ErrNoFire = errors.New("no such fire")

const (
	// looksApart is the least time between two looks at a job while it is waited for.
	looksApart = 100 * time.Millisecond
	// looksAgain is the longest: not everything that ends a wait is watched.
	looksAgain = time.Second
)

// AwaitFire waits until a fire of a job is complete in the cluster, or ctx ends: it does not run
// at any item, and no item is to begin it or to run it again. An item that cannot begin it, since it
// or the job is disabled, or each instance is paused or on a disabled server, or it is bound to one
// that is, or is away (JobConfig.StaticSharding), does not hold it up.
// The instant is that of the fire, as Shard.Due has it; it may be to come.
//
// The answers say what became of the fire, item by item, as Explain does: of a fire that is not the
// latest of its item the registry knows no more than that it is Settled. It costs a watch, and a
// look at the job whenever its ledgers change, ten times a second at most.
//
// ErrNoFire: none is due then, the job has a fixed delay, so that no two items share a fire, or
// nothing is recorded (core.MonitorOff).
func (a *Admin) AwaitFire(ctx context.Context, job string, due time.Time) ([]Answer, error) {
	answers, err := a.awaitFire(ctx, job, due.Round(0))
	return answers, failed("await fire", job, err)
}

func (a *Admin) awaitFire(ctx context.Context, job string, due time.Time) ([]Answer, error) {
	v, err := a.view(ctx, job)
	if err != nil {
		return nil, err
	}
	w, err := a.store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	for _, dir := range []string{v.job.Ledgers(), v.job.InForce()} {
		if err := w.Add(dir, registry.Children); err != nil {
			return nil, err
		}
	}
	for {
		answers, over, err := v.complete(due)
		if over || err != nil {
			return answers, err
		}
		if !pause(ctx, max(looksApart, due.Sub(a.now()))) {
			return nil, context.Cause(ctx)
		}
		next, cancel := context.WithTimeout(ctx, looksAgain)
		_, err = w.Next(next)
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return nil, err
		}
		if v, err = a.look(ctx, v.job); err != nil {
			return nil, err
		}
	}
}

// complete says what became of a fire, and whether nothing of it is to come.
func (v *view) complete(due time.Time) (answers []Answer, over bool, err error) {
	if v.configErr == nil && v.config.Monitor == core.MonitorOff {
		return nil, false, fmt.Errorf("%w: the job records nothing (monitorExecution: false)", ErrNoFire)
	}
	holdings := v.holdings()
	for n := range v.total() {
		if _, owned := holdings[n]; !owned {
			holdings[n] = holding{}
		}
	}
	over = len(holdings) > 0
	for _, n := range slices.Sorted(maps.Keys(holdings)) {
		ans := v.explain(n, holdings[n], due)
		switch ans.Outcome {
		case NotDue:
			return nil, false, fmt.Errorf("%w: %s", ErrNoFire, ans.Why)
		case ToCome, Runs, ToRunAgain, Unrecorded:
			over = false
		case Owed:
			over = over && v.off(n, holdings[n])
		case Ended, Failed, Skipped, Cut, Settled:
		}
		answers = append(answers, ans)
	}
	if len(answers) == 0 {
		err = v.configErr // which says how many there are to be
	}
	return answers, over, err
}
