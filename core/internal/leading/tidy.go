package leading

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// tidyUp removes the nodes of items that the total does not have any more. It runs on
// the tidy task, in commits that a former leader, or a leader of another epoch, cannot
// make: each checks the life, the term and the base.
func (l *Leader) tidyUp() {
	ctx := l.cfg.Context
	l.mu.Lock()
	due := l.untidy && l.node.Owned && l.able && string(l.node.Value) == l.cfg.ID
	if due {
		l.untidy = false
	}
	l.mu.Unlock()
	if !due || ctx.Err() != nil {
		return
	}
	if err := l.tidyItems(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, registry.ErrSessionLost) {
		l.mu.Lock()
		l.untidy = true
		l.mu.Unlock()
		if settle.Pause(ctx, tidyPause) {
			l.tidy.Poke()
		}
	}
}

// tidyPause is the pause after a failure: nobody waits for it.
const tidyPause = 2 * time.Second

func (l *Leader) tidyItems(ctx context.Context) error {
	job := l.cfg.Job
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	b := l.readBase(base)
	if b == nil || !b.Assigned {
		return nil // the end of the epoch's assignment asks again
	}
	guard := []registry.Op{l.life(), registry.Check(job.Term(), registry.AnyVersion), registry.Check(base.Path, base.Version)}
	names, err := l.cfg.Session.Children(ctx, job.Sharding())
	if err != nil {
		return err
	}
	fits := l.cfg.Session.Limits().MaxOps
	var ops []registry.Op
	for _, name := range names {
		n, ok := layout.ParseItem(name)
		if !ok || n < b.To {
			continue
		}
		of, err := l.item(ctx, n)
		if err != nil {
			return err
		}
		if len(guard)+len(ops)+len(of) > fits {
			if err := l.sweep(ctx, guard, ops); err != nil {
				return err
			}
			ops = nil
		}
		if len(guard)+len(of) <= fits {
			ops = append(ops, of...)
		}
	}
	return l.sweep(ctx, guard, ops)
}

// item returns what deletes an item's node and its children.
func (l *Leader) item(ctx context.Context, n int) ([]registry.Op, error) {
	path := l.cfg.Job.Item(n)
	names, err := l.cfg.Session.Children(ctx, path)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ops := make([]registry.Op, 0, len(names)+1)
	for _, name := range names {
		ops = append(ops, registry.Delete(path+"/"+name, registry.AnyVersion))
	}
	return append(ops, registry.Delete(path, registry.AnyVersion)), nil
}

// sweep commits deletes. A refusal leaves the rest to the next time.
func (l *Leader) sweep(ctx context.Context, guard, ops []registry.Op) error {
	if len(ops) == 0 {
		return nil
	}
	_, err := l.cfg.Session.Commit(ctx, append(append([]registry.Op{}, guard...), ops...)...)
	failed, refused := errors.AsType[*registry.CommitError](err)
	if refused && failed.Index < len(guard) {
		return nil // another leader, or another epoch: it tidies
	}
	return err
}
