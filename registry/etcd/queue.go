package etcd

import (
	"container/list"

	"github.com/elasticron/elasticron/registry"
)

// A queue holds what the consumer of a watcher has not taken yet: the latest
// state of each path of each target, in the order in which it first changed.
type queue struct{ items *list.List }

// An item is an entry that changed, or the Synced of a target.
type item struct {
	t *target
	e *entry // nil: Synced
}

// An entry is one path of one target. It lives while the node exists or the
// consumer believes so: a node that came and went unseen leaves nothing.
type entry struct {
	node   registry.Node // while queued; only Path and Modified matter afterwards
	told   bool          // the consumer believes that the node exists
	queued *list.Element
}

func (q *queue) init() { q.items = list.New() }

func (q *queue) empty() bool { return q.items.Len() == 0 }

// put records the new state of a path.
func (q *queue) put(t *target, n registry.Node) {
	e := t.nodes[n.Path]
	if e == nil {
		if !n.Exists() && t.scope == registry.Children {
			return
		}
		if t.nodes == nil {
			t.nodes = make(map[string]*entry, 1)
		}
		e = &entry{}
		t.nodes[n.Path] = e
	}
	e.node = n
	if !n.Exists() && !e.told && t.scope == registry.Children {
		q.forget(t, e)
		return
	}
	if e.queued == nil {
		e.queued = q.items.PushBack(item{t: t, e: e})
	}
}

func (q *queue) synced(t *target) { t.mark = q.items.PushBack(item{t: t}) }

func (q *queue) forget(t *target, e *entry) {
	if e.queued != nil {
		q.items.Remove(e.queued)
	}
	delete(t.nodes, e.node.Path)
}

// take removes and returns the first events, at most limit.
func (q *queue) take(limit int) []registry.Event {
	n := min(q.items.Len(), limit)
	if n == 0 {
		return nil
	}
	events := make([]registry.Event, 0, n)
	for range n {
		it, _ := q.items.Remove(q.items.Front()).(item) // nothing else is pushed
		event := registry.Event{Path: it.t.path, Scope: it.t.scope, Synced: it.e == nil}
		if e := it.e; e != nil {
			event.Node = e.node
			q.handOut(it.t, e)
		} else {
			it.t.mark = nil
		}
		events = append(events, event)
	}
	return events
}

// handOut notes that the consumer knows e now, and lets go of its value.
func (q *queue) handOut(t *target, e *entry) {
	e.queued, e.told = nil, e.node.Exists()
	if !e.told && t.scope == registry.Children {
		delete(t.nodes, e.node.Path)
		return
	}
	e.node.Value = nil
}

// drop removes everything of a target.
func (q *queue) drop(t *target) {
	for _, e := range t.nodes {
		if e.queued != nil {
			q.items.Remove(e.queued)
		}
	}
	if t.mark != nil {
		q.items.Remove(t.mark)
	}
	t.nodes, t.mark = nil, nil
}
