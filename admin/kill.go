package admin

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// ErrNotRunning: the item does not run the fire, and is not to run it again.
var ErrNotRunning = errors.New("it does not run")

// A Kill names one run of one item.
type Kill struct {
	// Item is the sharding item.
	Item int
	// Due is the fire, as Shard.Due has it; of a run that was asked for it is request.Result.At.
	Due time.Time
	// By says who asks, for people.
	By string
}

// Kill asks for the end of a run, wherever it is: its context ends, with a *request.KilledError as
// its cause, and what its function returns then is its outcome. A function that looks at no context
// goes on. It waits for nothing: AwaitFire and Await do. Should the run begin again elsewhere within
// a minute, since its instance has died, that run's context ends too.
//
// ErrNotRunning: the item does not run that fire, and is not to run it again; or nothing is recorded
// (core.MonitorOff), so that nobody can know.
func (a *Admin) Kill(ctx context.Context, job string, k Kill) error {
	return failed("kill", job, a.kill(ctx, job, k))
}

func (a *Admin) kill(ctx context.Context, job string, k Kill) error {
	v, err := a.view(ctx, job)
	if err != nil {
		return err
	}
	if k.Item < 0 || k.Item >= max(v.total(), v.stored.ShardingTotalCount) {
		return ErrNoItem
	}
	h := v.orphan(v.holdings()[k.Item])
	runs := h.item.Running() && h.item.Run.Equal(k.Due)
	again := h.item.Redo.Owed() && h.item.Redo.Due.Equal(k.Due)
	if !runs && !again {
		return ErrNotRunning
	}
	node := v.job.Kill(newID())
	value := layout.MarshalKill(layout.Kill{Item: k.Item, Due: k.Due, By: k.By})
	return a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		nodes, err := a.store.Get(ctx, node)
		if err != nil || nodes[0].Exists() { // the answer of a commit was lost
			return nil, err
		}
		return []registry.Op{registry.Create(node, value)}, nil
	})
}
