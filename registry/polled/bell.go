package polled

import (
	"context"
	"maps"
	"path"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A Bell is a Store whose service tells what happens in it. New finds out by itself whether a Store is one; then
// watchers look when it rings, and heartbeats are as rare as sessions allow.
//
// What watchers tell comes from reads, and a heartbeat finds out what was rung last and not heard: that costs time. But
// nobody looks again for a step that a later one was heard after, nor for a path that a step left out.
type Bell interface {
	Store

	// Listen calls heard until ctx ends or nothing can be heard any more, and says why it returns. The first call is
	// made once nothing is missed from then on; its Step has Unknown set and the revision of that moment. Each later
	// one is a step that changed nodes, in the order of revisions, soon after it, whoever made it: none is left out, or
	// it returns. Calls are made one after the other. One Listen runs at a time; it is called again after it has
	// returned, and its ctx ends when it turns out to be deaf.
	Listen(ctx context.Context, heard func(Step)) error
}

// A Step is what a Bell tells.
type Step struct {
	Revision registry.Revision
	// Paths are those of all nodes that were made, set or deleted.
	Paths []string
	// Unknown says that it may be any nodes, whatever Paths are.
	Unknown bool
}

// An ear knows what was heard of a bell.
type ear struct {
	mu   sync.Mutex
	upTo registry.Revision              // all steps up to it were heard; 0: nothing is
	mine map[registry.Revision]struct{} // committed here and not heard yet
	// missed was seen by a heartbeat at since, and not heard.
	missed registry.Revision
	since  time.Time
	// deaf ends the present Listen.
	deaf context.CancelFunc
}

// listen follows the bell until the registry closes.
func (c *client) listen(bell Bell) {
	for c.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(c.ctx)
		c.ear.begin(cancel)
		_ = bell.Listen(ctx, c.heard) // what is not heard, heartbeats see
		c.ear.begin(nil)
		cancel()
		wait.For(c.ctx, maxPause)
	}
}

// heard wakes those who follow what a step wrote.
func (c *client) heard(step Step) {
	switch {
	case c.ear.hears(step.Revision): // wake has done it
	case step.Unknown:
		for _, w := range c.watchers() {
			w.recheckAll()
		}
	default:
		recheck(c.watchers(), step.Paths)
	}
}

// begin forgets what was heard before.
func (e *ear) begin(deaf context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.upTo, e.mine, e.missed, e.deaf = 0, map[registry.Revision]struct{}{}, 0, deaf
}

func (e *ear) hearing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.upTo > 0
}

// hears notes a ring, and reports whether it was of a commit of our own.
func (e *ear) hears(rev registry.Revision) (mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, mine = e.mine[rev]
	e.upTo = max(e.upTo, rev)
	maps.DeleteFunc(e.mine, func(r registry.Revision, _ struct{}) bool { return r <= rev })
	return mine
}

// committed notes a commit of our own, whose ring tells nothing new.
func (e *ear) committed(rev registry.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.upTo > 0 && rev > e.upTo {
		e.mine[rev] = struct{}{}
	}
}

// knows reports whether everything up to rev, which a heartbeat has seen, was heard.
// A bell that has not told of it by patience later is deaf.
func (e *ear) knows(rev registry.Revision, patience time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.upTo == 0:
	case rev <= e.upTo:
		e.missed = 0
		return true
	case e.missed <= e.upTo: // also when nothing was missed before
		e.missed, e.since = rev, time.Now()
	case time.Since(e.since) >= patience:
		e.deaf()
	}
	return false
}

// peers are the registries of this process that are open.
var peers = struct {
	sync.Mutex
	open map[*client]struct{}
}{open: map[*client]struct{}{}}

func join(c *client) {
	peers.Lock()
	defer peers.Unlock()
	peers.open[c] = struct{}{}
}

func part(c *client) {
	peers.Lock()
	defer peers.Unlock()
	delete(peers.open, c)
}

// audience returns the watchers of the client and of those on the same data, where Config.Data is given.
func (c *client) audience() (all []*watcher) {
	peers.Lock()
	defer peers.Unlock()
	for peer := range peers.open {
		if peer == c || c.Data != "" && peer.Data == c.Data {
			all = append(all, peer.watchers()...)
		}
	}
	return all
}

func (c *client) watchers() (all []*watcher) {
	for _, s := range c.sessions.All() {
		all = append(all, s.audience()...)
	}
	return all
}

// wake makes those look who follow what a commit wrote. That is only a hint: what they tell comes from reads.
func (c *client) wake(ops []registry.Op) {
	var paths []string
	for _, op := range ops {
		if op.Kind != registry.OpCheck {
			paths = append(paths, op.Path)
		}
	}
	recheck(c.audience(), paths)
}

// recheck has the watchers of what was written at paths look.
func recheck(watchers []*watcher, paths []string) {
	var touched []pending.Key
	for _, p := range paths {
		touched = append(touched, pending.Key{Path: p}, pending.Key{Path: path.Dir(p), Scope: registry.Children})
	}
	for _, w := range watchers {
		w.recheck(touched)
	}
}
