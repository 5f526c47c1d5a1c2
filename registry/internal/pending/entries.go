package pending

import "iter"

// entries are those of one target, by their paths. Nearly every target has one at most, which takes no map: that would
// be ten times as large.
type entries struct {
	path string
	one  *entry // of path, or nil
	more map[string]*entry
}

func (s *entries) get(path string) *entry {
	if s.one != nil && s.path == path {
		return s.one
	}
	return s.more[path]
}

// put adds an entry of a path that has none.
func (s *entries) put(path string, e *entry) {
	if s.one == nil {
		s.path, s.one = path, e
		return
	}
	if s.more == nil {
		s.more = map[string]*entry{}
	}
	s.more[path] = e
}

func (s *entries) delete(path string) {
	if s.one != nil && s.path == path {
		s.path, s.one = "", nil
	} else if delete(s.more, path); len(s.more) == 0 {
		s.more = nil
	}
}

// all allows that the entry of the turn is deleted.
func (s *entries) all() iter.Seq2[string, *entry] {
	return func(yield func(string, *entry) bool) {
		if s.one != nil && !yield(s.path, s.one) {
			return
		}
		for path, e := range s.more {
			if !yield(path, e) {
				return
			}
		}
	}
}
