package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/internal/layout/pages"
	"github.com/elasticron/elasticron/registry"
)

// torn is the pause until a ledger is read again that changed while it was read.
const torn = 50 * time.Millisecond

// adopt takes over a ledger that somebody else wrote. It reports false when nothing may be
// committed any more.
func (r *Recorder) adopt(ctx context.Context) bool {
	r.mu.Lock()
	stale, refused, path := r.stale, r.refused, r.place.Ledger
	node := registry.Node{Path: path, Created: r.created, Version: r.written.Version, Value: r.written.Value}
	known := r.version
	news := node.Version > known
	if stale && news { // a notice does not say when a ledger was set: the fence of a begin that it shows
		news = !slices.ContainsFunc(r.queue, func(e *entry) bool { return e.unknown != 0 })
	}
	r.stale, r.refused, r.written = false, false, Written{}
	r.mu.Unlock()
	if !stale {
		return true
	}
	if news { // by whom it was told is not known
		_, err := ledger.Decode(node.Value)
		news = err == nil
	}
	if !news {
		nodes, err := settle.Get(ctx, r.cfg.Session, r.owner.Hindered, path)
		if err != nil {
			return false // the session, or the registration, has ended
		}
		node = nodes[0]
	}
	if !r.adoptNode(ctx, node, refused) {
		return false // what is unknown stays so, for Resume
	}
	if refused && node.Version == known {
		return true // it is not as it is shown: what is unknown stays so
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learn(0) // the ledger is as it was known: nothing of unknown outcome was recorded
	return true
}

// adoptNode takes over a ledger as its node holds it.
func (r *Recorder) adoptNode(ctx context.Context, node registry.Node, refused bool) bool {
	r.mu.Lock()
	path, created, version, known := r.place.Ledger, r.created, r.version, r.led
	r.mu.Unlock()
	switch {
	case node.Created != created:
		r.end(fmt.Errorf("execution: %s: %w", path, errForeign))
		return false
	case node.Version < version:
		r.end(fmt.Errorf("execution: %s: %w", path, errBack))
		return false
	case node.Version == version && refused:
		r.owner.Hindered(fmt.Errorf("execution: %s: %w", path, errContrary))
		return settle.Pause(ctx, again)
	case node.Version == version && len(known.Pages()) == 0:
		return true
	case node.Version == version:
		known = nil // so that each page is looked at
	}
	get := func(ctx context.Context, paths ...string) ([]registry.Node, error) {
		return settle.Get(ctx, r.cfg.Session, r.owner.Hindered, paths...)
	}
	found, err := pages.Read(ctx, get, map[string]*ledger.Ledger{path: known}, node)
	if err != nil {
		return false
	}
	is := found[0]
	switch {
	case errors.Is(is.Err, ledger.ErrTorn):
		r.mu.Lock()
		r.stale = true
		r.mu.Unlock()
		return settle.Pause(ctx, torn) && r.adopt(ctx)
	case is.Node.Version == version && is.Lacking != nil:
		r.mu.Lock()
		for p, stands := range is.Lacking {
			r.led.Lacks(p, stands)
		}
		r.mu.Unlock()
		return true
	case is.Err != nil:
		r.end(fmt.Errorf("execution: %s: %w: %w", path, errForeign, is.Err))
		return false
	case is.Node.Version == version:
		return true
	}
	led := is.Ledger
	r.mu.Lock()
	r.led, r.version = led, is.Node.Version
	if r.told != nil {
		*r.told = led.Rounds() // the leader knows what it has written
	}
	applied := r.learn(led.Seq)
	r.mu.Unlock()
	r.owner.Changed(led)
	if len(applied) > 0 {
		r.owner.Applied(applied, is.Node.Modified)
	}
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
	r.noteEnd(e) // and no begin that an attempt before would have recorded with it
	r.mu.Unlock()
	r.owner.Applied([]Change{e.Change}, 0)
}
