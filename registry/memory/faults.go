package memory

import (
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A Fate is what becomes of one commit: Deliver, AnswerLost, RequestLost,
// Refused, or what AppliedLate returns.
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

// Counts are numbers of requests that clients have sent, whether they arrived or
// not. A Get of many paths is one.
type Counts struct {
	Get, Children, Sync, Commit, WatchAdd, Heartbeat, Open, Close int
}

// faults counts, for each, how many callers want it.
type faults struct {
	refuse, loseRequests, loseAnswers int

	delay time.Duration // of every answer
}

// A pause is one caller of Pause that has not resumed.
type pause struct{ _ byte }

// Intercept makes fate decide what becomes of each commit that is sent from now
// on; nil ends that. fate must be safe for concurrent use, must not change ops,
// and may call the server.
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

// Pause stops the server from serving, until resume. What arrives meanwhile
// waits, and is served then, even if its author has given up. Sessions whose
// timeout passed meanwhile expire first. resume is idempotent.
func (s *Server) Pause() (resume func()) {
	p := &pause{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused[p] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, mine := s.paused[p]; mine {
			delete(s.paused, p)
			s.resume()
		}
	}
}

func (s *Server) resume() {
	if len(s.paused) > 0 {
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

// Restart stops the server and starts it again on its data. All connections
// break, what has arrived and was not served is lost, a pause ends, and every
// session has its whole timeout again.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	clear(s.paused)
	for _, l := range s.inOrder() {
		s.renew(l)
	}
	s.hitClients()
	s.epoch++
	s.wake()
}

// Drop breaks all connections of all clients once. What is under way becomes
// ErrUncertain; sessions and watches go on.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hitClients()
	s.epoch++
	s.wake()
}

// Refuse breaks all connections and refuses new ones until heal, which is
// idempotent.
func (s *Server) Refuse() (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hitClients()
	s.epoch++
	return s.inject(&s.faults.refuse, &s.epoch)
}

// LoseRequests keeps connections open and swallows all requests until heal,
// which is idempotent and breaks the connections.
func (s *Server) LoseRequests() (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(&s.faults.loseRequests, &s.epoch)
}

// LoseAnswers serves what arrives and swallows all answers and watch events
// until heal, which is idempotent and breaks the connections.
func (s *Server) LoseAnswers() (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(&s.faults.loseAnswers, &s.epoch)
}

// Requests returns how many requests all clients have sent since the server was
// made or ResetRequests was called.
func (s *Server) Requests() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return newCounts(s.counts)
}

// ResetRequests starts the counters of the server, not of its clients, again from 0.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = [kinds]int{}
}

// Drop is Server.Drop for this client alone.
func (r *Registry) Drop() {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	r.link.hits++
	r.link.epoch++
	s.wake()
}

// Refuse is Server.Refuse for this client alone.
func (r *Registry) Refuse() (heal func()) {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	r.link.hits++
	r.link.epoch++
	return s.inject(&r.link.faults.refuse, &r.link.epoch)
}

// LoseRequests is Server.LoseRequests for this client alone.
func (r *Registry) LoseRequests() (heal func()) {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(&r.link.faults.loseRequests, &r.link.epoch)
}

// LoseAnswers is Server.LoseAnswers for this client alone.
func (r *Registry) LoseAnswers() (heal func()) {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inject(&r.link.faults.loseAnswers, &r.link.epoch)
}

// Delay lets every answer and watch event reach this client d later, until heal, which is
// idempotent.
func (r *Registry) Delay(d time.Duration) (heal func()) {
	s := r.link.server
	add := func(d time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.link.faults.delay += d
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

// Hits counts the requests, answers, events and connections of this client that
// faults have hit.
func (r *Registry) Hits() int {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.link.hits
}

// Requests returns how many requests this client has sent since it was made or
// ResetRequests was called.
func (r *Registry) Requests() Counts {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	return newCounts(r.link.counts)
}

// ResetRequests starts the counters of this client again from 0.
func (r *Registry) ResetRequests() {
	s := r.link.server
	s.mu.Lock()
	defer s.mu.Unlock()
	r.link.counts = [kinds]int{}
}

// inject begins a fault. Its end breaks connections: what it swallowed never
// arrives. The caller holds mu.
func (s *Server) inject(wanted, epoch *int) (heal func()) {
	*wanted++
	s.wake()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*wanted--
		*epoch++
		s.wake()
	})
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
			r.link.hits++
		}
	}
}

func newCounts(n [kinds]int) Counts {
	return Counts{
		Get: n[kindGet], Children: n[kindChildren], Sync: n[kindSync], Commit: n[kindCommit],
		WatchAdd: n[kindWatch], Heartbeat: n[kindHeartbeat], Open: n[kindOpen], Close: n[kindClose],
	}
}
