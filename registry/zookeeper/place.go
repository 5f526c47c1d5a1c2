package zookeeper

import (
	"slices"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
)

// A place is one path that somebody of the session watches, or that the list of
// a watched directory names. All watchers share it: there is one watch of each
// kind, and one read under way. The tracker's mutex guards it.
//
// What is known of a place is known from reads of its own, in their order, and
// from the end that a watch reports; a list says only what to read.
type place struct {
	path string
	data side // Get, and Exists of what is absent
	list side // Children

	node registry.Node // as last seen, without its value; absent before

	self []*target // that watch this node
	kids []*target // that watch its children

	missing bool              // the last list says that there is no such directory
	names   map[string]*place // children that were listed, until they are gone
	listed  uint64            // the newest list that is in
	within  *place            // the directory that has it in names
	naming  uint64            // the directory's list that named it last
}

// A side is the data or the children of a place: one watch.
type side struct {
	p       *place
	queued  bool
	reading bool
	again   bool   // what is being read may be old already
	armed   bool   // the service holds a watch
	started uint64 // reads so far
}

// A target is one path and scope of one watcher.
type target struct {
	pending.Target

	w      *watcher
	place  *place
	ends   bool   // absence is the last that it needs to hear of
	need   uint64 // the first read of the place that was begun for it
	begun  bool   // it is in: changes may be told
	synced bool
	// Children whose first read is to come, until the target is synced.
	waiting map[*place]uint64
}

func newPlace(path string) *place {
	p := &place{path: path}
	p.data.p, p.list.p = p, p
	return p
}

// dropped reports whether its directory's last list does not name the place.
func (p *place) dropped() bool { return p.within != nil && p.naming != p.within.listed }

func (sd *side) isList() bool { return sd == &sd.p.list }

func (sd *side) idle() bool { return !sd.queued && !sd.reading && !sd.armed }

// wanted reports whether somebody needs this side to be watched.
func (sd *side) wanted() bool {
	if sd.isList() {
		return len(sd.p.kids) > 0
	}
	return sd.p.wantsValue() || sd.p.wantsAbsence()
}

// wantsValue reports whether somebody needs to know what the node holds.
func (p *place) wantsValue() bool { return p.within != nil || len(p.self) > 0 }

// wantsAbsence reports whether somebody needs to hear of the node's creation. A
// child needs not: its directory's list tells.
func (p *place) wantsAbsence() bool {
	return (len(p.kids) > 0 && p.missing) || slices.ContainsFunc(p.self, func(t *target) bool { return !t.ends })
}

// isNews reports whether the consumer does not know this state, or a newer one,
// already.
func (t *target) isNews(n registry.Node) bool {
	last, known := t.Last(n.Path)
	if !n.Exists() {
		return last.Exists() || (!known && t.Scope == registry.Self)
	}
	return !last.Exists() || n.Modified > last.Modified
}

// tellSelf offers the state that read nr has brought; 0 is an event.
func (t *target) tellSelf(nr uint64, n registry.Node) {
	if !t.begun && nr < t.need {
		return // it may be older than what the session wrote before Add
	}
	t.w.put(t, n)
	if t.begun = true; !t.synced {
		t.synced = true
		t.w.sync(t)
	}
}

// tellChild offers the state of a child.
func (t *target) tellChild(nr uint64, p *place, n registry.Node) {
	if !t.begun {
		return
	}
	if need, waits := t.waiting[p]; waits {
		if nr < need {
			return
		}
		delete(t.waiting, p)
	}
	t.w.put(t, n)
	t.syncWhenComplete()
}

// forgo does not wait for a child any more: it is none.
func (t *target) forgo(p *place) {
	delete(t.waiting, p)
	t.syncWhenComplete()
}

func (t *target) syncWhenComplete() {
	if t.begun && !t.synced && len(t.waiting) == 0 {
		t.synced, t.waiting = true, nil
		t.w.sync(t)
	}
}
