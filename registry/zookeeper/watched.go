package zookeeper

import (
	"bytes"
	"context"
	"slices"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/latch"
)

// A watchedNode is one path that somebody of the session watches, or that the list of a watched directory names. All
// watchers share it: there is one watch of each kind, and one read under way. The tracker's mutex guards it.
//
// What is known of a node is known from reads of its own, in their order, and from the end that a watch reports; a list
// says only what to read.
type watchedNode struct {
	path string
	data nodeWatch // Get, and Exists of what is absent
	list nodeWatch // Children

	node registry.Node // as last seen, without its value; absent before

	self []*target // that watch this node
	kids []*target // that watch its children

	missing bool                    // the last list says that there is no such directory
	names   map[string]*watchedNode // children that were listed, until they are gone
	listed  uint64                  // the newest list that is in
	within  *watchedNode            // the directory that has it in names
	naming  uint64                  // the directory's list that named it last
}

// A nodeWatch is one watch: the data or the children of a node.
type nodeWatch struct {
	p       *watchedNode
	queued  bool
	reading bool
	again   bool   // what is being read may be old already
	armed   bool   // the service holds a watch
	started uint64 // reads so far
}

// A target is one path and scope of one watcher.
type target struct {
	pending.Target

	w     *watcher
	node  *watchedNode
	ends  bool   // absence is the last that it needs to hear of
	need  uint64 // the first read of the node that was begun for it
	begun bool   // it is in: changes may be told
	// Children whose first read is to come, until the target is synced.
	waiting map[*watchedNode]uint64
}

func newWatchedNode(path string) *watchedNode {
	p := &watchedNode{path: path}
	p.data.p, p.list.p = p, p
	return p
}

// dropped reports whether its directory's last list does not name the node.
func (p *watchedNode) dropped() bool { return p.within != nil && p.naming != p.within.listed }

func (nw *nodeWatch) isList() bool { return nw == &nw.p.list }

func (nw *nodeWatch) idle() bool { return !nw.queued && !nw.reading && !nw.armed }

// wanted reports whether somebody needs this watch.
func (nw *nodeWatch) wanted() bool {
	if nw.isList() {
		return len(nw.p.kids) > 0
	}
	return nw.p.wantsValue() || nw.p.wantsAbsence()
}

// wantsValue reports whether somebody needs to know what the node holds.
func (p *watchedNode) wantsValue() bool { return p.within != nil || len(p.self) > 0 }

// wantsAbsence reports whether somebody needs to hear of the node's creation. A
// child needs not: its directory's list tells.
func (p *watchedNode) wantsAbsence() bool {
	return (len(p.kids) > 0 && p.missing) || slices.ContainsFunc(p.self, func(t *target) bool { return !t.ends })
}

// tellSelf offers the state that read nr has brought; 0 is an event.
func (t *target) tellSelf(nr uint64, n registry.Node) {
	if !t.begun && nr < t.need {
		// It may be older than what the session wrote before Add.
		return
	}
	t.begun = true
	t.tell(n)
	t.w.Synced(&t.Target)
}

// tellChild offers the state of a child.
func (t *target) tellChild(nr uint64, p *watchedNode, n registry.Node) {
	if !t.begun {
		return
	}
	if need, waits := t.waiting[p]; waits {
		if nr < need {
			return
		}
		delete(t.waiting, p)
	}
	t.tell(n)
	t.syncWhenComplete()
}

// forgo does not wait for a child any more: it is none.
func (t *target) forgo(p *watchedNode) {
	delete(t.waiting, p)
	t.syncWhenComplete()
}

func (t *target) syncWhenComplete() {
	if t.begun && len(t.waiting) == 0 {
		t.waiting = nil
		t.w.Synced(&t.Target)
	}
}

// A watcher is a queue that the session's tracker fills. It has no goroutine. The tracker's mutex guards it.
type watcher struct {
	*pending.Consumer[*target]
}

// Watch returns a watcher with no targets; it sends nothing.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.Alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{}
	w.Consumer = pending.NewConsumer(s.Context(), "zookeeper", &s.tracker.mu, pending.Hooks[*target]{
		New:   func(t pending.Target) *target { return &target{Target: t, w: w} },
		Start: s.tracker.add, Stop: s.tracker.remove,
	})
	return w, nil
}

var _ latch.EndWatcher = (*watcher)(nil)

// AddUntilGone is Add of a node alone, which arms nothing once the node is gone. See latch.EndWatcher.
func (w *watcher) AddUntilGone(path string) error {
	return w.AddAs(path, registry.Self, func(t pending.Target) *target { return &target{Target: t, w: w, ends: true} })
}

// tell queues a state.
func (t *target) tell(n registry.Node) {
	n.Value = bytes.Clone(n.Value) // others get the same answer
	t.w.Put(&t.Target, n)
}
