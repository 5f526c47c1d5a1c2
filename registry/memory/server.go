package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/settings"
)

// defaultTimeout is the default of Config.SessionTimeout.
const defaultTimeout = 6 * time.Second

// Config of a Server. The zero value is ready.
type Config struct {
	// SessionTimeout is how long after its last heartbeat a session expires. Default 6 s.
	SessionTimeout time.Duration
	// Limits of a commit. A field that is 0 has the value of registry.PortableLimits.
	Limits registry.Limits
}

// A Server is one coordination service in memory. It runs nothing by itself and
// needs no closing; sessions that nobody closes expire.
type Server struct {
	config Config

	mu        sync.Mutex // guards everything below, and all of links, sessions and watchers
	tree      tree
	lives     map[string]*life     // sessions that have not ended here
	clients   map[string]*Registry // by session, until the client closes it
	targets   targets
	opened    int           // sessions so far
	changed   chan struct{} // closed, and made again, when a fault begins or ends
	paused    *int          // callers of Pause that have not resumed; another after a Restart
	queue     []*request    // arrived while paused
	intercept func(sessionID string, ops []registry.Op) Fate
	side
}

// A life is a session as the server sees it.
type life struct {
	id      string
	number  int // in the order of opening
	alive   bool
	endless bool // of a store: nothing ends it here
	expires time.Time
	timer   *time.Timer
	nodes   map[string]struct{} // paths of its ephemeral nodes

	watchers map[*watcher]struct{}
}

// NewServer returns a server with an empty tree.
func NewServer(c Config) *Server {
	if c.SessionTimeout <= 0 {
		c.SessionTimeout = defaultTimeout
	}
	c.Limits = settings.FillLimits(c.Limits, registry.PortableLimits())
	s := &Server{
		config:  c,
		tree:    newTree(),
		lives:   map[string]*life{},
		clients: map[string]*Registry{},
		targets: targets{},
		changed: make(chan struct{}),
		paused:  new(int),
	}
	s.side = side{server: s, cutOff: s.hitClients}
	return s
}

// Registry returns a new client of the server. The caller closes it. It panics
// when namespace is not one or more segments of a path, or is the reserved one.
func (s *Server) Registry(namespace string) *Registry {
	namespace = strings.Trim(namespace, "/")
	if err := validNamespace(namespace); err != nil {
		panic("memory: " + err.Error())
	}
	r := &Registry{link: &link{}, namespace: namespace}
	r.side = side{server: s, cutOff: func() { r.hits++ }}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Client returns the registry that opened a session, or nil when there is no such session or its owner has closed it.
func (s *Server) Client(sessionID string) *Registry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[sessionID]
}

// Dump returns the tree without its root, one line for each node, sorted by
// path: the path, E when it is ephemeral, the quoted value.
func (s *Server) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s.tree.nodes)) {
		n := s.tree.nodes[path]
		switch {
		case path == "/":
		case n.owner != nil:
			fmt.Fprintf(&b, "%s E %q\n", path, n.value)
		default:
			fmt.Fprintf(&b, "%s %q\n", path, n.value)
		}
	}
	return b.String()
}

// begin starts a life. The caller holds mu, as for all that follows.
func (s *Server) begin() *life {
	s.opened++
	l := &life{
		id: "session-" + strconv.Itoa(s.opened), number: s.opened, alive: true,
		nodes: map[string]struct{}{}, watchers: map[*watcher]struct{}{},
	}
	l.expires = time.Now().Add(s.config.SessionTimeout)
	l.timer = time.AfterFunc(s.config.SessionTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.expireIfDue(l)
	})
	s.lives[l.id] = l
	return l
}

// inOrder returns the lives as they were opened, so that what happens to all of them
// at once happens in the same order each time.
func (s *Server) inOrder() []*life {
	return slices.SortedFunc(maps.Values(s.lives), func(a, b *life) int { return a.number - b.number })
}

func (s *Server) renew(l *life) {
	l.expires = time.Now().Add(s.config.SessionTimeout)
	l.timer.Reset(s.config.SessionTimeout)
}

// expireIfDue ends l when its time is over. A paused server does nothing; it looks again when it resumes.
func (s *Server) expireIfDue(l *life) {
	if l.alive && *s.paused == 0 && !time.Now().Before(l.expires) {
		s.end(l)
	}
}

// end makes l's ephemeral nodes vanish in one revision, and its watches.
func (s *Server) end(l *life) {
	if !l.alive {
		return
	}
	l.alive = false
	for w := range l.watchers {
		w.detach()
	}
	if l.endless {
		return
	}
	l.timer.Stop()
	delete(s.lives, l.id)
	s.targets.notify(s.tree.removeOwned(l))
}

// commit applies ops for a session of a client.
func (s *Server) commit(l *life, ops []registry.Op) (registry.Revision, error) {
	if !l.alive {
		return 0, errExpired
	}
	rev, changes, err := s.tree.commit(l, ops)
	s.targets.notify(changes)
	return rev, err
}

// fateOf asks the interceptor, without the lock since it may call the server.
func (s *Server) fateOf(sessionID string, ops []registry.Op) Fate {
	s.mu.Lock()
	decide := s.intercept
	s.mu.Unlock()
	if decide == nil {
		return Deliver
	}
	return decide(sessionID, ops)
}

// late returns what serves a request that arrives by itself, from a timer.
func (s *Server) late(serve func()) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if *s.paused > 0 {
			s.queue = append(s.queue, &request{serve: serve})
			return
		}
		serve()
	}
}
