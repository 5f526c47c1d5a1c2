package conformance

import (
	"context"

	"github.com/elasticron/elasticron/registry"
)

// changed has change look at each node that a watcher delivers; first says that its target has had no Synced yet.
func changed(change func(w *flawedWatcher, g target, first bool, n *registry.Node)) flaw {
	return flaw{next: func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error) {
		events, err := w.Watcher.Next(ctx)
		for i := range events {
			g := target{events[i].Path, events[i].Scope}
			if events[i].Synced {
				w.notes.Store(g, true)
			} else {
				change(w, g, !w.noted(g), &events[i].Node)
			}
		}
		return events, err
	}}
}

// firstOfSelf has change look at the first state of each target of one node.
func firstOfSelf(change func(n *registry.Node)) flaw {
	return changed(func(_ *flawedWatcher, g target, first bool, n *registry.Node) {
		if first && g.scope == registry.Self {
			change(n)
		}
	})
}

// afterHits has change look at what arrives once a fault has hit.
func afterHits(change func(n *registry.Node)) flaw {
	return changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
		if w.s.reg.Hits() > 0 && n.Exists() {
			change(n)
		}
	})
}

// watchWholeBreakages leave something of a node out.
var watchWholeBreakages = []breakage{
	{"R49", "the first state of a Self target is nobody's", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Owned = false })},
	{"R48", "the first state of a Self target is persistent", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Ephemeral = false })},
	{"R44", "the first state of a Self target has version 0", "Watch/EventsAreWholeNodes", "the event holds",
		firstOfSelf(func(n *registry.Node) { n.Version = 0 })},
	{"R49", "what arrives after an outage is nobody's", "Watch/EventsAreWholeNodes", "the event holds",
		afterHits(func(n *registry.Node) { n.Owned = false })},
	{"R26", "what arrives after an outage is persistent", "Watch/EventsAreWholeNodes", "the event holds",
		afterHits(func(n *registry.Node) { n.Ephemeral = false })},
	{"R58", "what is gone is told with its last version and value", "Watch/SeesDelete", "want the zero Node but for Path",
		changed(func(w *flawedWatcher, _ target, _ bool, n *registry.Node) {
			if n.Exists() {
				w.notes.Store("last "+n.Path, *n)
			} else if last, known := w.notes.Load("last " + n.Path); known {
				*n = last.(registry.Node)
				n.Created = 0
			}
		})},
	{"R77", "what is gone reads with its last version and value", "Nodes/GetMissing", "want the zero Node but for Path",
		flaw{get: func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error) {
			nodes, err := s.Session.Get(ctx, paths...)
			for i, n := range nodes {
				if n.Exists() {
					s.remember("last "+n.Path, n)
				} else if last, known := remembered[registry.Node](s, "last "+n.Path); known {
					last.Created = 0
					nodes[i] = last
				}
			}
			return nodes, err
		}}},
}
