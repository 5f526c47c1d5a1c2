package memory

import (
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A Fate is what becomes of one commit: Deliver, AnswerLost, RequestLost, Refused, or what AppliedLate returns.
type Fate time.Duration

const (
	// Deliver: nothing happens to it.
	Deliver Fate = -iota
	// AnswerLost: it is applied, its author gets ErrUncertain.
	AnswerLost
	// RequestLost: it is not applied, its author gets ErrUncertain.
	RequestLost
	// Refused: it is not applied, its author gets ErrUnavailable.
	Refused
)

// AppliedLate is the fate of a commit whose author gets ErrUncertain at once and
// which is applied d later, if its conditions and its session still hold then.
func AppliedLate(d time.Duration) Fate { return Fate(max(d, 1)) }

// Counts are numbers of requests that clients have sent, whether they arrived or not. A Get of many paths is one.
type Counts struct {
	Get, Children, Sync, Commit, WatchAdd, Heartbeat, Open, Close int
}

// faults counts, for each, how many callers want it.
type faults struct {
	refuse, loseRequests, loseAnswers int

	delay time.Duration // of every answer
}

// Intercept makes fate decide what becomes of each commit that is sent from now on; nil ends that. fate must be safe
// for concurrent use, must not change ops, and may call the server.
func (s *Server) Intercept(fate func(sessionID string, ops []registry.Op) Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = fate
}

// Expire ends a session here and now, which its client learns at its next
// request. It reports whether the session was alive.
func (s *Server) Expire(sessionID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.lives[sessionID]
	if ok {
		s.end(l)
	}
	return ok
}

// Pause stops the server from serving, until resume. What arrives meanwhile waits, and is served then, even if its
// author has given up. Sessions whose timeout passed meanwhile expire first. resume is idempotent.
func (s *Server) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paused := s.paused
	*paused++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*paused--
		s.resume()
	})
}

func (s *Server) resume() {
	if *s.paused > 0 {
		return
	}
	for _, l := range s.inOrder() {
		s.expireIfDue(l)
	}
	waiting := s.queue
	s.queue = nil
	for _, r := range waiting {
		r.serve()
		r.served = true
	}
	s.wake()
}

// Restart stops the server and starts it again on its data. All connections break, what has arrived and was not served
// is lost, a pause ends, and every session has its whole timeout again.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	s.paused = new(int)
	for _, l := range s.inOrder() {
		s.renew(l)
	}
	s.cut()
	s.wake()
}

// A side is what faults act on: one client, or a Server for all of its clients. Server.mu guards it.
type side struct {
	server *Server
	faults faults
	epoch  int // raised when its connections break
	counts [kinds]int
	cutOff func() // counts the connections that break
}

// Drop breaks the connections once: those of all clients, or of this client. What is under
// way becomes ErrUncertain; sessions and watches go on.
func (f *side) Drop() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.cut()
	f.server.wake()
}

// Refuse breaks the connections of all clients, or of this client, and refuses new ones until
// heal, which is idempotent.
func (f *side) Refuse() (heal func()) {
	defer f.Drop()
	return f.inject(&f.faults.refuse)
}

// LoseRequests keeps connections open and swallows the requests of all clients, or of this
// client, until heal, which is idempotent and breaks the connections.
func (f *side) LoseRequests() (heal func()) { return f.inject(&f.faults.loseRequests) }

// LoseAnswers serves what arrives and swallows all answers and watch events, to all clients or
// to this client, until heal, which is idempotent and breaks the connections.
func (f *side) LoseAnswers() (heal func()) { return f.inject(&f.faults.loseAnswers) }

// Requests returns how many requests all clients, or this client, have sent since the Server
// or Registry was made or its ResetRequests was called.
func (f *side) Requests() Counts {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	n := f.counts
	return Counts{
		Get: n[kindGet], Children: n[kindChildren], Sync: n[kindSync], Commit: n[kindCommit],
		WatchAdd: n[kindWatch], Heartbeat: n[kindHeartbeat], Open: n[kindOpen], Close: n[kindClose],
	}
}

// ResetRequests starts these counters again from 0: the Server's, or this client's.
func (f *side) ResetRequests() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.counts = [kinds]int{}
}

// cut breaks the connections. The caller holds mu.
func (f *side) cut() {
	f.cutOff()
	f.epoch++
}

// inject begins a fault. Its end breaks connections: what it swallowed never arrives.
func (f *side) inject(wanted *int) (heal func()) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	*wanted++
	f.server.wake()
	return sync.OnceFunc(func() {
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		*wanted--
		f.epoch++
		f.server.wake()
	})
}

// Delay lets every answer and watch event reach this client d later, until heal, which is idempotent.
func (r *Registry) Delay(d time.Duration) (heal func()) {
	s := r.server
	add := func(d time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.faults.delay += d
	}
	add(d)
	return sync.OnceFunc(func() { add(-d) })
}

// Deny makes the server refuse everybody what concerns path or a node below it, until
// allow, which is idempotent: reads, operations, watch targets.
func (s *Server) Deny(path string) (allow func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree.denied[path]++
	s.targets.recheck(s.tree.refuses)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tree.denied[path]--; s.tree.denied[path] == 0 {
			delete(s.tree.denied, path)
		}
	})
}

// Hits counts the requests, answers, events and connections of this client that faults have hit.
func (r *Registry) Hits() int {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.hits
}

// wake makes all who wait look at the faults again.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hitClients counts the connections of everyone who has a session.
func (s *Server) hitClients() {
	seen := map[*Registry]struct{}{}
	for _, r := range s.clients {
		if _, twice := seen[r]; !twice {
			seen[r] = struct{}{}
			r.hits++
		}
	}
}
