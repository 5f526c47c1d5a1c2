package zookeeper

import (
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
)

// A tracker knows what the watchers of a session watch. It arms one watch for each node and kind by reading it, and
// reads again when the watch fires. Up to 64 goroutines read, and there are none while nothing is to be read.
//
// ZooKeeper answers in order, but answers are handled by the goroutines that asked, in any order, and an absence
// carries no revision to compare: so no two reads of one watch are ever under way at once.
type tracker struct {
	s *session

	// mu guards everything here, the nodes and the watchers. It is held while the
	// link delivers an event, so the link is never called under it.
	mu      sync.Mutex
	nodes   map[string]*watchedNode
	queue   []*nodeWatch
	readers int
	over    bool // the session has ended
}

func newTracker(s *session) *tracker { return &tracker{s: s, nodes: map[string]*watchedNode{}} }

// at returns the node of a path.
func (tr *tracker) at(path string) *watchedNode {
	p := tr.nodes[path]
	if p == nil {
		p = newWatchedNode(path)
		tr.nodes[path] = p
	}
	return p
}

// add starts a target with a read of its own: what was read before may be older
// than what the session has written since.
func (tr *tracker) add(t *target) {
	t.node = tr.at(t.Path)
	if t.Scope == registry.Self {
		t.node.self = append(t.node.self, t)
		t.need = tr.read(&t.node.data)
		return
	}
	t.node.kids = append(t.node.kids, t)
	t.need = tr.read(&t.node.list)
}

// remove ends a target.
func (tr *tracker) remove(t *target) {
	p := t.node
	same := func(other *target) bool { return other == t }
	if p.self, p.kids = slices.DeleteFunc(p.self, same), slices.DeleteFunc(p.kids, same); len(p.kids) == 0 {
		p.missing = false
		for _, c := range p.names {
			tr.detach(c)
		}
	}
	tr.unwatchUnneeded(p)
}

// detach takes a node out of its directory.
func (tr *tracker) detach(c *watchedNode) {
	d := c.within
	c.within = nil
	delete(d.names, c.path)
	for _, t := range slices.Clone(d.kids) {
		t.forgo(c)
	}
	tr.unwatchUnneeded(c)
}

// unwatchUnneeded gives watches back that nobody needs, and forgets a node without any.
func (tr *tracker) unwatchUnneeded(p *watchedNode) {
	needless := true
	for _, nw := range []*nodeWatch{&p.data, &p.list} {
		switch {
		case nw.wanted():
			needless = false
		case !nw.idle():
			needless = false
			tr.read(nw) // which gives the watch back instead
		}
	}
	if needless && tr.nodes[p.path] == p {
		delete(tr.nodes, p.path)
	}
}

// read has a watch read from now on, and returns the number of that read.
func (tr *tracker) read(nw *nodeWatch) uint64 {
	switch {
	case nw.reading:
		nw.again = true
	case !nw.queued:
		nw.queued = true
		tr.queue = append(tr.queue, nw)
		tr.hire()
	}
	return nw.started + 1
}

// hire has one more read, if it may.
func (tr *tracker) hire() {
	if tr.readers < tr.s.atOnce(maxReads) && len(tr.queue) > 0 && !tr.over && tr.s.Go(tr.serve) {
		tr.readers++
	}
}

// serve reads until the queue is empty, or more do than may.
func (tr *tracker) serve() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for len(tr.queue) > 0 && !tr.over && tr.readers <= tr.s.atOnce(maxReads) {
		nw := tr.queue[0]
		if tr.queue = tr.queue[1:]; len(tr.queue) == 0 {
			tr.queue = nil
		}
		tr.serveOne(nw)
		tr.hire()
	}
	tr.readers--
}

// serveOne makes one read, and lets go of the mutex meanwhile.
func (tr *tracker) serveOne(nw *nodeWatch) {
	nw.queued, nw.again, nw.reading = false, false, true
	nw.started++
	q := tr.questionOf(nw)
	tr.mu.Unlock()
	a := tr.ask(q)
	tr.mu.Lock()
	nw.reading, nw.armed = false, a.armed
	switch {
	case errors.Is(a.err, registry.ErrSessionLost) || tr.s.Err() != nil:
		tr.over = true
		return
	case denies(a.err):
		tr.refuse(nw, a.err)
	case a.err != nil:
		nw.again = true
	case !q.wanted:
	case !q.list:
		tr.takeNode(nw.p, nw.started, a)
	case nw.wanted():
		tr.takeList(nw.p, nw.started, a)
	}
	if nw.again && nw.wanted() {
		tr.read(nw)
	}
	tr.unwatchUnneeded(nw.p)
}

// notify takes an event of the link's: it uses up the watches that it is about.
func (tr *tracker) notify(n zk.Event) {
	path, ok := tr.s.tree.path(n.Path)
	if !ok {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	p := tr.nodes[path]
	if p == nil {
		return
	}
	switch n.Type {
	case zk.EventNodeCreated, zk.EventNodeDataChanged:
		tr.fired(&p.data)
	case zk.EventNodeChildrenChanged:
		tr.fired(&p.list)
	case zk.EventNodeDeleted:
		tr.fired(&p.list)
		tr.deleted(p)
	default: // of the session; the link knows better
	}
}

// fired reads again what a watch has reported to be old.
func (tr *tracker) fired(nw *nodeWatch) {
	nw.armed = false
	if nw.wanted() {
		tr.read(nw)
	}
	tr.unwatchUnneeded(nw.p)
}

// deleted takes the end of a node. While no read is under way the event is about the node that was read last, so that
// it need not be asked for again; what may have been created since comes with its directory's list, or is asked for.
func (tr *tracker) deleted(p *watchedNode) {
	p.data.armed = false
	if p.data.reading || p.wantsAbsence() {
		tr.read(&p.data)
	}
	if !p.data.reading && p.node.Exists() {
		tr.takeNode(p, 0, answer{node: registry.Node{Path: p.path}})
	}
	tr.unwatchUnneeded(p)
}
