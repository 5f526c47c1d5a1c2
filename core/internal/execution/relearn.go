package execution

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout/ledger"
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
	created, version := r.created, r.version
	r.mu.Unlock()
	switch {
	case node.Created != created:
		r.end(fmt.Errorf("execution: %s: %w", path, errForeign))
		return false
	case node.Version < version:
		r.end(fmt.Errorf("execution: %s: %w", path, errBack))
		return false
	case node.Version == version:
		return true
	}
	led, err := ledger.Decode(node.Value)
	if err != nil {
		r.end(fmt.Errorf("execution: %s: %w: %w", path, errForeign, err))
		return false
	}
	r.mu.Lock()
	r.led, r.version = led, node.Version
	if r.listen {
		r.told = led.Rounds() // the leader knows what it has written
	}
	r.mu.Unlock()
	r.owner.Changed(led)
	return true
}

// stray ends an item that the ledger does not hold any more; nothing else is done to it.
func (r *Recorder) stray(e *entry) {
	if !e.Step().over() {
		r.owner.Refused(e.Change, NotOwned, ledger.Item{}, "")
		return
	}
	r.mu.Lock()
	if x := r.show.runs[e.Item()]; x.is == shown || x.missed == shown {
		r.show.runs[e.Item()] = run{is: maybe}
	}
	r.note(e)
	r.mu.Unlock()
	r.owner.Applied([]Change{e.Change}, 0)
}
