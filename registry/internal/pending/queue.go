package pending

import (
	"container/list"
	"iter"

	"github.com/elasticron/elasticron/registry"
)

// A Key tells targets apart.
type Key struct {
	Path  string
	Scope registry.Scope
}

// A Target is one path and scope, and what its consumer knows of it. Once it is
// dropped it is as new.
type Target struct {
	Key

	nodes map[string]*entry
	mark  *list.Element // its Synced, while queued
}

// An entry is one path of one target. It lives while the node exists or the
// consumer believes so.
type entry struct {
	node   registry.Node // its Value only while queued
	told   bool          // the consumer believes that the node exists
	known  bool          // the consumer was told something
	queued *list.Element
}

// Last returns the state that was put last for a path, without its value if
// that has been taken, and whether there is one. What is gone is forgotten in a
// target of children once the consumer knows.
func (t *Target) Last(path string) (registry.Node, bool) {
	e := t.nodes[path]
	if e == nil {
		return registry.Node{}, false
	}
	return e.node, true
}

// All returns the last state of each path. The queue may be put to meanwhile.
func (t *Target) All() iter.Seq[registry.Node] {
	return func(yield func(registry.Node) bool) {
		for _, e := range t.nodes {
			if !yield(e.node) {
				return
			}
		}
	}
}

// A Queue holds events of any number of targets. The zero value is empty and
// ready.
type Queue struct{ items list.List }

// An item is an entry that changed, or the Synced of a target.
type item struct {
	t *Target
	e *entry // nil: Synced
}

// Len is the number of events that wait.
func (q *Queue) Len() int { return q.items.Len() }

// Put records the new state of a path, which may be its absence.
func (q *Queue) Put(t *Target, n registry.Node) {
	e := t.nodes[n.Path]
	if e == nil {
		if !n.Exists() && t.Scope == registry.Children {
			return
		}
		if t.nodes == nil {
			t.nodes = make(map[string]*entry, 1)
		}
		e = &entry{}
		t.nodes[n.Path] = e
	}
	e.node = n
	if !n.Exists() && !e.told && t.Scope == registry.Children {
		q.forget(t, e)
		return
	}
	if !n.Exists() && !e.told && e.known { // it came and went unseen
		if e.queued != nil {
			q.items.Remove(e.queued)
			e.queued = nil
		}
		return
	}
	if e.queued == nil {
		e.queued = q.items.PushBack(item{t: t, e: e})
	}
}

// Synced queues the end of the target's initial state.
func (q *Queue) Synced(t *Target) { t.mark = q.items.PushBack(item{t: t}) }

func (q *Queue) forget(t *Target, e *entry) {
	if e.queued != nil {
		q.items.Remove(e.queued)
	}
	delete(t.nodes, e.node.Path)
}

// Take removes and returns the first events, at most limit; nil when none wait.
func (q *Queue) Take(limit int) []registry.Event {
	n := min(q.items.Len(), limit)
	if n == 0 {
		return nil
	}
	events := make([]registry.Event, 0, n)
	for range n {
		it, _ := q.items.Remove(q.items.Front()).(item) // nothing else is pushed
		event := registry.Event{Path: it.t.Path, Scope: it.t.Scope, Synced: it.e == nil}
		if e := it.e; e != nil {
			event.Node = e.node
			it.t.handOut(e)
		} else {
			it.t.mark = nil
		}
		events = append(events, event)
	}
	return events
}

// handOut notes that the consumer knows e now, and lets go of its value.
func (t *Target) handOut(e *entry) {
	e.queued, e.told, e.known = nil, e.node.Exists(), true
	if !e.told && t.Scope == registry.Children {
		delete(t.nodes, e.node.Path)
		return
	}
	e.node.Value = nil
}

// Drop removes everything of a target.
func (q *Queue) Drop(t *Target) {
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

// Clear removes everything of all targets, which must not be used afterwards.
func (q *Queue) Clear() { q.items.Init() }
