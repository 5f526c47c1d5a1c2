package session

import (
	"slices"

	"github.com/elasticron/elasticron/registry"
)

// A list knows which children its watcher has been told of. A target that was denied for a
// while shows what stands, and not what has gone meanwhile: then it is listed once more, from
// a known begin, and who is missing has gone.
type list struct {
	known  map[string]bool // told to stand
	synced bool            // it was listed once
	again  map[string]bool // shown since it is listed once more; nil: it is not
	torn   bool            // a target was denied while it was listed: it may have been this one
}

// note follows an event. It returns the children that have gone unseen, or that the target
// is to be listed once more to know them.
func (l *list) note(e registry.Event) (gone []string, unsure bool) {
	switch child := e.Node.Path; {
	case e.Synced:
		return l.listed()
	case e.Node.Exists():
		if l.known == nil {
			l.known = map[string]bool{}
		}
		l.known[child] = true
		if l.again != nil {
			l.again[child] = true
		}
	default:
		delete(l.known, child)
		delete(l.again, child)
	}
	return nil, false
}

// listed ends a listing.
func (l *list) listed() (gone []string, unsure bool) {
	first := !l.synced
	l.synced = true
	if l.again == nil {
		return nil, l.torn || !first
	}
	if l.torn {
		return nil, true
	}
	for child := range l.known {
		if !l.again[child] {
			gone = append(gone, child)
			delete(l.known, child)
		}
	}
	l.again = nil
	slices.Sort(gone)
	return gone, false
}

// broken says that some target was denied.
func (l *list) broken() { l.torn = l.torn || !l.synced || l.again != nil }

// begin expects the children to be listed once more.
func (l *list) begin() { l.torn, l.again = false, map[string]bool{} }
