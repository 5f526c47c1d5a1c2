package session

import (
	"github.com/elasticron/elasticron/registry"
)

const (
	// partsAWatcher is how many jobs share a watcher while there are watchers to be had.
	partsAWatcher = 128
	// mostWatchers bounds the watchers of a session, and with them its goroutines.
	mostWatchers = 32
)

// A Part is what one job has of a session: its targets are watched by one watcher, so that their events come in order.
// Many jobs are spread over several watchers. For a watcher that does not take its changes at once etcd keeps 128; the
// targets of those beyond it reads from its store later, some thousand a second, and one commit, or one death, changes
// more than 128 where many jobs share a watcher.
type Part struct {
	*Session

	// Of the session's lock:
	via     *watching // nil while there are no targets
	targets int
}

// A watching is a watcher and how many parts have their targets there.
type watching struct {
	registry.Watcher

	parts int
}

// Part returns a part without targets. It ends with the session.
func (s *Session) Part() *Part { return &Part{Session: s} }

// Follow has handle called with what a target shows, until Unfollow.
func (p *Part) Follow(path string, scope registry.Scope, handle func(registry.Event)) {
	s := p.Session
	s.grow(p)
	via, before := s.enter(p, path, scope, handle)
	if before != nil { // or nothing would be shown anew
		before.Remove(path, scope)
	}
	if err := via.Add(path, scope); err != nil && s.Context.Err() == nil && s.Err() == nil {
		s.warn("cannot watch "+path, err)
	}
}

// Unfollow ends a target, where it is this part's.
func (p *Part) Unfollow(path string, scope registry.Scope) {
	s := p.Session
	if via := s.strike(p, path, scope); via != nil {
		via.Remove(path, scope)
	}
}

// enter writes down whose target it is, and returns the watcher for it, and that of the part which had it before.
func (s *Session) enter(p *Part, path string, scope registry.Scope, handle handler) (via, before *watching) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.via == nil {
		p.via = s.roomiest()
		p.via.parts++
	}
	if had := s.of(path, scope); had != p {
		p.targets++
		if had != nil {
			before = had.less()
		}
	}
	if scope == registry.Children {
		s.dirs[path] = &dir{part: p, handle: handle}
	} else {
		s.selves[path] = node{p, handle}
	}
	return p.via, before
}

// hears reports whether there is a part, and whether it goes by what a watcher tells. The caller holds the session's mu.
func (p *Part) hears(w registry.Watcher) bool { return p != nil && p.via.Watcher == w }

// less takes a target from a part, and returns its watcher. The caller holds the session's mu.
func (p *Part) less() *watching {
	via := p.via
	if p.targets--; p.targets == 0 {
		p.via = nil
		via.parts--
	}
	return via
}

// strike strikes a target of a part out, and returns its watcher: nil where it is not the part's.
func (s *Session) strike(p *Part, path string, scope registry.Scope) *watching {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of(path, scope) != p {
		return nil
	}
	if scope == registry.Children {
		delete(s.dirs, path)
	} else {
		delete(s.selves, path)
	}
	return p.less()
}

// of is whose target it is, nil where it is nobody's. The caller holds mu.
func (s *Session) of(path string, scope registry.Scope) *Part {
	if scope == registry.Children {
		if d := s.dirs[path]; d != nil {
			return d.part
		}
		return nil
	}
	return s.selves[path].part
}

// roomiest is the first watcher with room, or else that with the fewest parts. The caller holds mu.
func (s *Session) roomiest() *watching {
	best := s.watchers[0]
	for _, w := range s.watchers {
		if w.parts < partsAWatcher {
			return w
		}
		if w.parts < best.parts {
			best = w
		}
	}
	return best
}

// grow opens another watcher where a part without targets finds no room. One that cannot be opened is done without.
func (s *Session) grow(p *Part) {
	s.mu.Lock()
	full := len(s.watchers) == mostWatchers || s.roomiest().parts < partsAWatcher
	wanted := p.via == nil && !full && !s.growing && !s.over
	s.growing = s.growing || wanted
	s.mu.Unlock()
	if !wanted {
		return
	}
	w, err := s.Watch(s.Context)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.growing = false
	switch {
	case err != nil:
	case s.over:
		_ = w.Close() // it has ended with the session
	default:
		s.attach(w)
	}
}

// attach has the events of a watcher handed on. The caller holds mu, or is alone.
func (s *Session) attach(w registry.Watcher) {
	s.watchers = append(s.watchers, &watching{Watcher: w})
	s.joined.Go(func() { s.follow(w) })
}
