package session

import (
	"slices"

	"github.com/elasticron/elasticron/registry"
)

// A list knows which children its watcher has been told of. A target that was denied for a
// while shows what stands, and not what has gone meanwhile: then it is listed once more, from
// a known begin, and who is missing has gone.
type list struct {
	known  children  // told to stand
	again  *children // while it is listed once more: shown since then
	synced bool      // it was listed once
	torn   bool      // a target was denied while it was listed: it may have been this one
}

// children are paths, in order. Nearly all directories that are watched have one at most.
type children []string

func (c *children) add(path string) {
	if at, found := slices.BinarySearch(*c, path); !found {
		*c = slices.Insert(*c, at, path)
	}
}

func (c *children) remove(path string) {
	if at, found := slices.BinarySearch(*c, path); found {
		*c = slices.Delete(*c, at, at+1)
	}
}

// note follows an event. It returns the children that have gone unseen, or that the target
// is to be listed once more to know them.
func (l *list) note(e registry.Event) (gone []string, unsure bool) {
	switch child := e.Node.Path; {
	case e.Synced:
		return l.listed()
	case e.Node.Exists():
		l.known.add(child)
		if l.again != nil {
			l.again.add(child)
		}
	default:
		l.known.remove(child)
		if l.again != nil {
			l.again.remove(child)
		}
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
	for _, child := range l.known {
		if _, shown := slices.BinarySearch(*l.again, child); !shown {
			gone = append(gone, child)
		}
	}
	l.known, l.again = *l.again, nil
	return gone, false
}

// broken says that some target was denied.
func (l *list) broken() { l.torn = l.torn || !l.synced || l.again != nil }

// begin expects the children to be listed once more.
func (l *list) begin() { l.torn, l.again = false, &children{} }
