package zookeeper

import (
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// retryPause is the pause after a read that the service answered with an error that does not concern the node.
const retryPause = 100 * time.Millisecond

// A question is what one read of a watch has to find out.
type question struct {
	path    string // the contract's
	wanted  bool   // else nothing: give its watch back
	list    bool   // the names below it; else of the node:
	value   bool   // what it holds
	absence bool   // that it does not exist, and when it comes
}

// An answer is what came of it.
type answer struct {
	err     error
	armed   bool // the service holds a watch now
	node    registry.Node
	bare    bool // the node exists, and its value was not asked for
	names   []string
	missing bool // there is nothing to list
}

func (tr *tracker) questionOf(nw *nodeWatch) question {
	q := question{path: nw.p.path, wanted: nw.wanted(), list: nw.isList()}
	if !q.list {
		q.value, q.absence = nw.p.wantsValue(), nw.p.wantsAbsence()
	}
	return q
}

// ask reads, and arms a watch by it. Where nothing is to be read, it gives the watch back.
func (tr *tracker) ask(q question) answer {
	var a answer
	switch {
	case !q.wanted:
		tr.s.link.Disarm(tr.s.tree.at(q.path), q.list)
	case q.list:
		a = tr.askList(q)
	default:
		a = tr.askNode(q)
	}
	if a.err != nil && !denies(a.err) {
		wait.For(tr.s.Context(), retryPause)
	}
	return a
}

func (tr *tracker) askList(q question) answer {
	names, err := tr.s.link.Children(tr.s.Context(), tr.s.tree.at(q.path), true)
	switch {
	case err == nil:
		return answer{armed: true, names: tr.s.tree.names(q.path, names)}
	case errors.Is(err, zk.ErrNoNode):
		return answer{missing: true}
	}
	return answer{err: err}
}

// askNode repeats the pair of reads when the node came to be between them.
func (tr *tracker) askNode(q question) answer {
	s, absent := tr.s, registry.Node{Path: q.path}
	for {
		if q.value {
			value, stat, err := s.link.Get(s.Context(), s.tree.at(q.path), true)
			switch {
			case err == nil:
				s.read(len(value))
				return answer{armed: true, node: s.node(q.path, value, stat)}
			case !errors.Is(err, zk.ErrNoNode):
				return answer{err: err}
			case !q.absence:
				return answer{node: absent}
			}
		}
		stat, err := s.link.Exists(s.Context(), s.tree.at(q.path), true)
		switch {
		case err != nil:
			return answer{err: err}
		case stat == nil:
			return answer{armed: true, node: absent}
		case !q.value:
			return answer{armed: true, node: s.node(q.path, nil, stat), bare: true}
		}
	}
}

// takeNode takes the state that read nr of a node has brought; 0 is an event.
// Who has come to need the value since a bare one was asked for has asked again.
func (tr *tracker) takeNode(p *watchedNode, nr uint64, a answer) {
	n := a.node
	if !a.bare {
		p.spread(nr, n)
	}
	p.node = n
	p.node.Value = nil
	switch {
	case n.Exists() && p.missing:
		tr.read(&p.list)
	case !n.Exists() && p.dropped() && !p.data.queued:
		tr.detach(p)
	}
}

// spread tells everybody who watches the node, or the directory that has it.
func (p *watchedNode) spread(nr uint64, n registry.Node) {
	for _, t := range p.self {
		t.tellSelf(nr, n)
	}
	if p.within == nil {
		return
	}
	for _, t := range p.within.kids {
		t.tellChild(nr, p, n)
	}
}

// takeList compares a list with what is known: what is new is read, and so is what
// is not there any more, unless its end has been reported already.
func (tr *tracker) takeList(p *watchedNode, nr uint64, a answer) {
	if p.missing, p.listed = a.missing, nr; a.missing {
		tr.read(&p.data)
	}
	if p.names == nil {
		p.names = make(map[string]*watchedNode, len(a.names))
	}
	for _, name := range a.names {
		at := path.Join(p.path, name)
		c := p.names[at]
		if c == nil {
			c = tr.at(at)
			c.within, p.names[at] = p, c
			tr.read(&c.data)
		} else if !c.node.Exists() || c.data.reading {
			tr.read(&c.data)
		}
		c.naming = nr
	}
	for _, c := range p.names {
		switch {
		case c.naming == nr:
		case c.node.Exists() || c.data.reading || c.data.queued:
			tr.read(&c.data)
		default:
			tr.detach(c)
		}
	}
	for _, t := range p.kids {
		if !t.begun && nr >= t.need {
			tr.begin(t)
		}
	}
}

// begin asks for every child once more for a new target of children.
func (tr *tracker) begin(t *target) {
	t.begun, t.waiting = true, make(map[*watchedNode]uint64, len(t.node.names))
	for _, c := range t.node.names {
		t.waiting[c] = tr.read(&c.data)
	}
	t.syncWhenComplete()
}

// refuse gives up the targets that need what the service denies.
func (tr *tracker) refuse(nw *nodeWatch, err error) {
	p := nw.p
	err = fail("watch", p.path, err)
	var needy []*target
	switch {
	case nw.isList():
		needy = slices.Clone(p.kids)
	default:
		needy = slices.Clone(p.self)
		if p.missing {
			needy = append(needy, p.kids...)
		}
		if p.within != nil {
			needy = append(needy, p.within.kids...)
		}
	}
	for _, t := range needy {
		t.w.Refuse(t, err)
	}
}
