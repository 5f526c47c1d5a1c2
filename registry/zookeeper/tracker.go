package zookeeper

import (
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A tracker knows what the watchers of a session watch. It arms one watch for
// each place and side by reading it, and reads again when the watch fires. Up to
// 64 goroutines read, and there are none while nothing is to be read.
//
// ZooKeeper answers in order, but answers are handled by the goroutines that
// asked, in any order, and an absence carries no revision to compare: so no two
// reads of one side are ever under way at once.
type tracker struct {
	s *session

	// mu guards everything here, the places and the watchers. It is held while the
	// link delivers an event, so the link is never called under it.
	mu      sync.Mutex
	places  map[string]*place
	queue   []*side
	readers int
	over    bool // the session has ended
}

func newTracker(s *session) *tracker { return &tracker{s: s, places: map[string]*place{}} }

// at returns the place of a path.
func (tr *tracker) at(path string) *place {
	p := tr.places[path]
	if p == nil {
		p = newPlace(path)
		tr.places[path] = p
	}
	return p
}

// add starts a target with a read of its own: what was read before may be older
// than what the session has written since.
func (tr *tracker) add(t *target) {
	t.place = tr.at(t.Path)
	if t.Scope == registry.Self {
		t.place.self = append(t.place.self, t)
		t.need = tr.read(&t.place.data)
		return
	}
	t.place.kids = append(t.place.kids, t)
	t.need = tr.read(&t.place.list)
}

// remove ends a target.
func (tr *tracker) remove(t *target) {
	p := t.place
	without := func(all []*target) []*target {
		if i := slices.Index(all, t); i >= 0 {
			return slices.Delete(all, i, i+1)
		}
		return all
	}
	if p.self, p.kids = without(p.self), without(p.kids); len(p.kids) == 0 {
		p.missing = false
		for _, c := range p.names {
			tr.detach(c)
		}
	}
	tr.settle(p)
}

// detach takes a place out of its directory.
func (tr *tracker) detach(c *place) {
	d := c.within
	c.within = nil
	delete(d.names, c.path)
	for _, t := range slices.Clone(d.kids) {
		t.forgo(c)
	}
	tr.settle(c)
}

// settle gives watches back that nobody needs, and forgets a place without any.
func (tr *tracker) settle(p *place) {
	needless := true
	for _, sd := range []*side{&p.data, &p.list} {
		switch {
		case sd.wanted():
			needless = false
		case !sd.idle():
			needless = false
			tr.read(sd) // which gives the watch back instead
		}
	}
	if needless && tr.places[p.path] == p {
		delete(tr.places, p.path)
	}
}

// read has a side read from now on, and returns the number of that read.
func (tr *tracker) read(sd *side) uint64 {
	switch {
	case sd.reading:
		sd.again = true
	case !sd.queued:
		sd.queued = true
		tr.queue = append(tr.queue, sd)
		if tr.readers < maxReads && !tr.over && tr.s.Go(tr.serve) {
			tr.readers++
		}
	}
	return sd.started + 1
}

// serve reads until the queue is empty.
func (tr *tracker) serve() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for len(tr.queue) > 0 && !tr.over {
		sd := tr.queue[0]
		if tr.queue = tr.queue[1:]; len(tr.queue) == 0 {
			tr.queue = nil
		}
		tr.serveOne(sd)
	}
	tr.readers--
}

// serveOne makes one read, and lets go of the mutex meanwhile.
func (tr *tracker) serveOne(sd *side) {
	sd.queued, sd.again, sd.reading = false, false, true
	sd.started++
	q := tr.questionOf(sd)
	tr.mu.Unlock()
	a := tr.ask(q)
	tr.mu.Lock()
	sd.reading, sd.armed = false, a.armed
	switch {
	case errors.Is(a.err, registry.ErrSessionLost) || tr.s.Err() != nil:
		tr.over = true
		return
	case denies(a.err):
		tr.refuse(sd, a.err)
	case a.err != nil:
		sd.again = true
	case q.list && sd.wanted():
		tr.takeList(sd.p, sd.started, a)
	case q.value || q.absence:
		tr.takeNode(sd.p, sd.started, a)
	}
	if sd.again && sd.wanted() {
		tr.read(sd)
	}
	tr.settle(sd.p)
}

// notify takes an event of the link's: it uses up the watches that it is about.
func (tr *tracker) notify(n link.Notification) {
	path, ok := tr.s.tree.path(n.Path)
	if !ok {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	p := tr.places[path]
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
func (tr *tracker) fired(sd *side) {
	sd.armed = false
	if sd.wanted() {
		tr.read(sd)
	}
	tr.settle(sd.p)
}

// deleted takes the end of a node. While no read is under way the event is about
// the node that was read last, so that it need not be asked for again; what may
// have been created since comes with its directory's list, or is asked for.
func (tr *tracker) deleted(p *place) {
	p.data.armed = false
	if p.data.reading || p.wantsAbsence() {
		tr.read(&p.data)
	}
	if !p.data.reading && p.node.Exists() {
		tr.takeNode(p, 0, answer{node: registry.Node{Path: p.path}})
	}
	tr.settle(p)
}
