package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// A watched registry writes down what becomes of its sessions, and which lives are
// under which.
type watched struct {
	registry.Registry

	out *history.Writer

	mu    sync.Mutex
	lives map[string]*watchedSession // by instance id
}

func watch(reg registry.Registry, out *history.Writer) *watched {
	return &watched{Registry: reg, out: out, lives: map[string]*watchedSession{}}
}

// Open implements registry.Registry.
func (r *watched) Open(ctx context.Context) (registry.Session, error) {
	ses, err := r.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &watchedSession{Session: ses, in: r, closing: make(chan struct{}), acked: map[string]registry.Revision{}}
	r.out.Write(history.Record{Kind: history.Opened, Session: ses.ID(), Deadline: commonOf(ses.Deadline())})
	go s.follow()
	return s, nil
}

// under returns the session of a life, and its Deadline now.
func (r *watched) under(instance string) (session string, deadline time.Duration) {
	r.mu.Lock()
	s := r.lives[instance]
	r.mu.Unlock()
	if s == nil {
		return "", 0
	}
	return s.ID(), commonOf(s.Deadline())
}

// A watchedSession is one session.
type watchedSession struct {
	registry.Session

	in      *watched
	once    sync.Once
	closing chan struct{}
	lost    sync.Once

	mu    sync.Mutex
	acked map[string]registry.Revision // of the latest write that was acknowledged, by path
}

// heartbeat is how often the Deadline is written down.
const heartbeat = 200 * time.Millisecond

// follow tells how far the Deadline moves, and the session's loss.
func (s *watchedSession) follow() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.tell(history.Alive, nil)
		case <-s.closing:
			return
		case <-s.Done():
			s.loses(s.Err())
			return
		}
	}
}

func (s *watchedSession) tell(k history.Kind, err error) {
	s.in.out.Write(history.Record{Kind: k, Session: s.ID(), Deadline: commonOf(s.Deadline()), Err: text(err)})
}

// Commit implements registry.Store.
func (s *watchedSession) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	for _, op := range ops {
		job, id, ok := lifeAt(op.Path)
		switch {
		case ok && op.Kind == registry.OpCreateEphemeral:
			s.registers(job, id)
		case ok && op.Kind == registry.OpDelete:
			s.in.out.Write(history.Record{Kind: history.Leaving, Job: job, Instance: id})
		}
	}
	rev, err := s.Session.Commit(ctx, ops...)
	if err != nil {
		return rev, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range ops {
		switch op.Kind {
		case registry.OpDelete:
			delete(s.acked, op.Path)
		case registry.OpCreate, registry.OpCreateEphemeral, registry.OpSet:
			s.acked[op.Path] = max(s.acked[op.Path], rev)
		case registry.OpCheck:
		}
	}
	return rev, nil
}

// Get implements registry.Store. What a session has written, and what was acknowledged to it, it
// reads: a node that is older was lost by the servers.
func (s *watchedSession) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	s.mu.Lock()
	acked := make([]registry.Revision, len(paths))
	for i, path := range paths {
		acked[i] = s.acked[path]
	}
	s.mu.Unlock()
	nodes, err := s.Session.Get(ctx, paths...)
	for i, n := range nodes {
		if !n.Exists() || n.Modified >= acked[i] { // one that is gone may have been deleted by others
			continue
		}
		s.in.out.Write(history.Record{
			Kind: history.LostWrites, Session: s.ID(), Count: 1,
			Reason: fmt.Sprintf("%s was modified at %#x, a write of it at %#x was acknowledged", n.Path, n.Modified, acked[i]),
		})
		s.mu.Lock()
		delete(s.acked, n.Path) // told
		s.mu.Unlock()
	}
	return nodes, err
}

// lifeAt is the life that a path stands for: /elasticron/{namespace}/{job}/lives/{id}.
func lifeAt(path string) (job, id string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) < 4 || parts[len(parts)-2] != "lives" {
		return "", "", false
	}
	return parts[len(parts)-3], parts[len(parts)-1], true
}

// registers notes a life.
func (s *watchedSession) registers(job, id string) {
	s.in.mu.Lock()
	known := s.in.lives[id]
	s.in.lives[id] = s
	s.in.mu.Unlock()
	if known == nil {
		s.in.out.Write(history.Record{Kind: history.Registered, Job: job, Instance: id, Session: s.ID()})
	}
}

// Close implements registry.Session.
func (s *watchedSession) Close(ctx context.Context) error {
	s.once.Do(func() {
		if err := s.Err(); err != nil { // and follow has not come to it
			s.loses(err)
		}
		s.tell(history.Closing, nil)
		close(s.closing)
	})
	err := s.Session.Close(ctx)
	if err != nil { // it ends by expiry
		s.loses(err)
	}
	return err
}

// loses tells once that the session is lost.
func (s *watchedSession) loses(err error) { s.lost.Do(func() { s.tell(history.Lost, err) }) }

// text is an error's, or nothing.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
