package leading

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/lazymap"
	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

const (
	// atOnce is how many questions one commit answers.
	atOnce = 50
	// standBack is how long an instance whose clock is off lets others be elected first.
	standBack = 2 * time.Second
)

// clocks are the questions of instances that compare their clocks with the leader's.
type clocks struct {
	task    *workqueue.Task // answers them; nil until they are watched
	watched bool
	asks    map[string]registry.Node // that have no answer yet, by path
}

// followClocks watches for questions where there may be any.
func (l *Leader) followClocks() {
	wanted := l.cfg.Host.Facts().Clocks
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	watched := l.clocks.watched
	l.clocks.watched = wanted
	if wanted && l.clocks.task == nil {
		l.clocks.task = l.cfg.Pool.Task(l.tellTime)
	}
	l.mu.Unlock()
	switch {
	case wanted && !watched:
		l.cfg.Session.Follow(l.cfg.Job.Clocks(), registry.Children, l.onClock)
	case watched && !wanted:
		l.forgetClocks()
	}
}

// forgetClocks ends the watch of questions.
func (l *Leader) forgetClocks() {
	l.mu.Lock()
	l.clocks.watched = false
	clear(l.clocks.asks)
	l.mu.Unlock()
	l.cfg.Session.Unfollow(l.cfg.Job.Clocks(), registry.Children)
}

// onClock notes who asks what the leader's clock says.
func (l *Leader) onClock(e registry.Event) {
	if e.Synced {
		return
	}
	is, err := layout.UnmarshalClock(e.Node.Value)
	open := e.Node.Exists() && err == nil && is.Leader == ""
	l.mu.Lock()
	if open = open && l.clocks.watched; open {
		lazymap.Set(&l.clocks.asks, e.Node.Path, e.Node)
	} else {
		delete(l.clocks.asks, e.Node.Path)
	}
	l.mu.Unlock()
	if open {
		l.clocks.task.Poke()
	}
}

// tellTime answers them. The clock is read when the question has been seen, and a question that
// has changed since is refused: so the answer is of a moment after it was asked.
func (l *Leader) tellTime() {
	ctx := l.enter()
	defer l.leave()
	for ctx.Err() == nil {
		l.mu.Lock()
		leads := l.node.Owned && string(l.node.Value) == l.cfg.ID
		paths := slices.Sorted(maps.Keys(l.clocks.asks))
		paths = paths[:min(len(paths), atOnce, l.cfg.Session.Limits().MaxOps-1)]
		asks := make([]registry.Node, len(paths))
		for i, p := range paths {
			asks[i] = l.clocks.asks[p]
		}
		l.mu.Unlock()
		if len(asks) == 0 || !leads {
			return // whoever leads next is shown them
		}
		ops, now := []registry.Op{l.life()}, l.cfg.Now()
		for _, n := range asks {
			c, _ := layout.UnmarshalClock(n.Value)
			c.Leader, c.At = l.cfg.ID, now
			ops = append(ops, registry.Set(n.Path, layout.MarshalClock(c), n.Version))
		}
		once, cancel := context.WithTimeout(ctx, standBack)
		_, err := l.cfg.Session.Commit(once, ops...)
		cancel()
		failed, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			l.answered(asks...)
		case refused && failed.Index == 0:
			return
		case refused && !errors.Is(err, registry.ErrDenied):
			l.answered(asks[failed.Index-1]) // it has changed, and the watch shows how
		case errors.Is(err, registry.ErrDenied):
			l.answered(asks...) // they ask again
			l.hindered(err)
		case !settle.Pause(ctx, 100*time.Millisecond):
			return
		}
	}
}

// answered forgets questions, unless they were asked anew since.
func (l *Leader) answered(asks ...registry.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range asks {
		if at := l.clocks.asks[n.Path]; at.Created == n.Created && at.Version == n.Version {
			delete(l.clocks.asks, n.Path)
		}
	}
}

// StandBack says whether others are to be elected before this instance.
func (l *Leader) StandBack(back bool) {
	l.mu.Lock()
	changed := l.back != back
	l.back = back
	l.mu.Unlock()
	if changed {
		l.work.Poke()
	}
}
