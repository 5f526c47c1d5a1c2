package pending

// entries are those of one target, by their paths. Nearly every target has one at most, which takes no map and no
// object of its own: a map would be ten times as large.
type entries struct {
	path string // of one, or empty
	one  entry
	more map[string]*entry
}

func (s *entries) get(path string) *entry {
	if s.path == path {
		return &s.one
	}
	return s.more[path]
}

// add returns a new entry of a path that has none.
func (s *entries) add(path string) *entry {
	if s.path == "" {
		s.path = path
		return &s.one
	}
	if s.more == nil {
		s.more = map[string]*entry{}
	}
	e := &entry{}
	s.more[path] = e
	return e
}

func (s *entries) delete(path string) {
	if s.path == path {
		s.path, s.one = "", entry{}
	} else if delete(s.more, path); len(s.more) == 0 {
		s.more = nil
	}
}

// each calls f with every entry, which f may delete.
func (s *entries) each(f func(path string, e *entry)) {
	if s.path != "" {
		f(s.path, &s.one)
	}
	for path, e := range s.more {
		f(path, e)
	}
}
