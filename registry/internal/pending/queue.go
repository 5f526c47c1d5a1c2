package pending

import (
	"container/list"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// A Key tells targets of several watchers apart.
type Key struct {
	Path  string
	Scope registry.Scope
}

// A Target is one path and scope, and what its consumer knows of it.
type Target struct {
	Path  string
	Scope registry.Scope
	Ended bool // it was removed or refused, or the watcher was closed

	synced bool          // its Synced was queued
	mark   *list.Element // its Synced, while queued
	nodes  entries
}

// Key is the target's.
func (t *Target) Key() Key { return Key{t.Path, t.Scope} }

// An entry is one path of one target. It lives while the node exists or the consumer believes so.
type entry struct {
	modified registry.Revision // of the latest state
	exists   bool              // in it
	told     bool              // the consumer believes that the node exists
	known    bool              // the consumer was told something
	present  bool              // Show has it
	queued   *list.Element     // an item with that state
}

// A Queue holds events of any number of targets. The zero value is empty and ready.
type Queue struct {
	items list.List
	wake  chan struct{} // of a Consumer: there is something to take
}

// An item is an entry that changed, with its state, or the Synced of a target.
type item struct {
	t    *Target
	e    *entry // nil: Synced
	node registry.Node
}

// Len is the number of events that wait.
func (q *Queue) Len() int { return q.items.Len() }

// Put takes in the state of a path, which may be its absence, unless it is known already, or a newer one.
func (q *Queue) Put(t *Target, n registry.Node) {
	if n.Path == t.Path {
		n.Path = t.Path // one string for both
	}
	e := t.nodes.get(n.Path)
	switch {
	case e == nil && !n.Exists() && t.Scope == registry.Children:
		return
	case e == nil:
		e = t.nodes.add(n.Path)
	case n.Exists() == e.exists && n.Modified <= e.modified:
		return
	}
	e.modified, e.exists = n.Modified, n.Exists()
	if !e.exists && !e.told && (e.known || t.Scope == registry.Children) { // it came and went unseen
		if e.queued != nil {
			q.items.Remove(e.queued)
			e.queued = nil
		}
		if t.Scope == registry.Children {
			t.nodes.delete(n.Path)
		}
		return
	}
	if e.queued == nil {
		e.queued = q.push(nil)
	}
	e.queued.Value = item{t: t, e: e, node: n}
}

// Show takes in all that a target has, and Synced behind it: what is not present is gone.
func (q *Queue) Show(t *Target, present []registry.Node) {
	for _, n := range present {
		q.Put(t, n)
		if e := t.nodes.get(n.Path); e != nil {
			e.present = true
		}
	}
	t.nodes.each(func(path string, e *entry) {
		if !e.present {
			q.Put(t, registry.Node{Path: path})
		}
		e.present = false
	})
	if t.Scope == registry.Self && len(present) == 0 {
		q.Put(t, registry.Node{Path: t.Path})
	}
	q.Synced(t)
}

// Synced queues the end of the target's initial state, once.
func (q *Queue) Synced(t *Target) {
	if !t.synced {
		t.synced, t.mark = true, q.push(item{t: t})
	}
}

func (q *Queue) push(it any) *list.Element {
	wait.Wake(q.wake)
	return q.items.PushBack(it)
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
			event.Node = it.node
			it.t.handOut(e, it.node.Path)
		} else {
			it.t.mark = nil
		}
		events = append(events, event)
	}
	return events
}

// handOut notes that the consumer knows e now.
func (t *Target) handOut(e *entry, path string) {
	e.queued, e.told, e.known = nil, e.exists, true
	if !e.told && t.Scope == registry.Children {
		t.nodes.delete(path)
	}
}

// end removes everything of a target, to which nothing is put any more.
func (q *Queue) end(t *Target) {
	t.nodes.each(func(_ string, e *entry) {
		if e.queued != nil {
			q.items.Remove(e.queued)
		}
	})
	if t.mark != nil {
		q.items.Remove(t.mark)
	}
	t.nodes, t.mark, t.Ended = entries{}, nil, true
}
