package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// adopt takes over a ledger that somebody else wrote. It reports false when nothing may be
// committed any more.
func (r *Recorder) adopt(ctx context.Context) bool {
	r.mu.Lock()
	stale, path := r.stale, r.place.Ledger
	r.stale = false
	r.mu.Unlock()
	if !stale {
		return true
	}
	nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
	if err != nil {
		return false // the session, or the registration, has ended
	}
	node := nodes[0]
	r.mu.Lock()
	known := node.Created == r.created && node.Version == r.version
	r.mu.Unlock()
	if known {
		return true
	}
	if node.Created != r.created {
		r.end(fmt.Errorf("execution: %s: %w", path, errForeign))
		return false
	}
	led, err := ledger.Decode(node.Value)
	if err != nil {
		r.end(fmt.Errorf("execution: %s: %w: %w", path, errForeign, err))
		return false
	}
	r.mu.Lock()
	r.led, r.version = led, node.Version
	r.mu.Unlock()
	r.owner.Changed(led)
	return true
}

// erase commits the deletes of changes whose items the ledger does not hold any more,
// where the nodes are still ours: they would be in the way of the items' next owners.
func (r *Recorder) erase(ctx context.Context, strays []*entry) {
	for _, e := range strays {
		deletes := e.ops(nil)
		kept := deletes[:0]
		for _, op := range deletes {
			if op.Kind == registry.OpDelete {
				kept = append(kept, op)
			}
		}
		if len(kept) == 0 {
			r.owner.Refused(e.Change, NotOwned, ledger.Item{}, "")
			continue
		}
		for _, op := range kept {
			if !r.eraseNode(ctx, op.Path) {
				r.putBack([]*entry{e})
				return
			}
		}
		r.owner.Applied([]Change{e.Change}, 0)
	}
}

// eraseNode reports false when the session, or the registration, has ended.
func (r *Recorder) eraseNode(ctx context.Context, path string) bool {
	nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
	if err != nil || !nodes[0].Owned {
		return err == nil
	}
	_, err = settle.Commit{
		Store: r.cfg.Session, Ops: []registry.Op{registry.Delete(path, nodes[0].Version)},
		Shows: func(n registry.Node) bool { return !n.Exists() },
	}.Run(ctx, r.owner.Hindered)
	_, refused := errors.AsType[*registry.CommitError](err)
	return err == nil || refused
}
