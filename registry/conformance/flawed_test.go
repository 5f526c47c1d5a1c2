package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const flawedTimeout = 2 * time.Second

// A flaw is one rule broken on purpose: a hook replaces one method of a sound
// session. A nil hook leaves it sound.
type flaw struct {
	commit   func(s *flawed, ctx context.Context, ops []registry.Op) (registry.Revision, error)
	get      func(s *flawed, ctx context.Context, paths []string) ([]registry.Node, error)
	children func(s *flawed, ctx context.Context, path string) ([]string, error)
	next     func(w *flawedWatcher, ctx context.Context) ([]registry.Event, error)
	add      func(w *flawedWatcher, path string, scope registry.Scope) error
	lock     func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error)
	close    func(s *flawed, ctx context.Context) error
	done     func(s *flawed) <-chan struct{}
	deadline func(s *flawed) time.Time
	err      func(s *flawed) error
	id       func(s *flawed) string
	sync     func(s *flawed, ctx context.Context) error
	watch    func(s *flawed, ctx context.Context) (registry.Watcher, error)
	try      func(s *flawed, ctx context.Context, dir string, value []byte) (registry.Lock, error)
	remove   func(w *flawedWatcher, path string, scope registry.Scope)
	closed   func(w *flawedWatcher) error
	limits   func(l registry.Limits) registry.Limits
	dropped  func(s *flawed) // right after its connections were cut once

	namespace func(r *flawedRegistry) string
	open      func(r *flawedRegistry, ctx context.Context) (registry.Session, error)
	opened    func(s *flawed, ctx context.Context) // right after Open
	store     func(r *flawedRegistry, ctx context.Context) (registry.StoreCloser, error)
	ends      func(r *flawedRegistry) error
}

// flawedHarness is a server in memory whose clients have a flaw.
type flawedHarness struct {
	srv  *memory.Server
	flaw flaw

	mu    sync.Mutex
	fates map[string]func() memory.Fate // of the next commit, by session
}

func newFlawedHarness(f flaw) *flawedHarness { return newHarnessOf(flawedTimeout, f) }

func newHarnessOf(timeout time.Duration, f flaw) *flawedHarness {
	h := &flawedHarness{srv: memory.NewServer(memory.Config{SessionTimeout: timeout}), flaw: f, fates: map[string]func() memory.Fate{}}
	h.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		h.mu.Lock()
		defer h.mu.Unlock()
		fate := h.fates[id]
		delete(h.fates, id)
		if fate == nil {
			return memory.Deliver
		}
		return fate()
	})
	return h
}

func (h *flawedHarness) Members() int                  { return 1 }
func (h *flawedHarness) SessionTimeout() time.Duration { return flawedTimeout }
func (h *flawedHarness) Grace() time.Duration          { return flawedTimeout / 2 }
func (h *flawedHarness) Faults() Faults                { return (*flawedFaults)(h) }
func (h *flawedHarness) Close()                        {}

func (h *flawedHarness) Registry(_ context.Context, tb testing.TB) registry.Registry {
	reg := h.srv.Registry("flawed")
	tb.Cleanup(func() { _ = reg.Close() })
	return &flawedRegistry{Registry: reg, h: h}
}

func (h *flawedHarness) RegistryIn(_ context.Context, tb testing.TB, namespace string) registry.Registry {
	reg := h.srv.Registry(namespace)
	tb.Cleanup(func() { _ = reg.Close() })
	return &flawedRegistry{Registry: reg, h: h}
}

func (h *flawedHarness) Lacks() map[string]string {
	return map[string]string{"History": "the server keeps the present only"}
}

type flawedRegistry struct {
	*memory.Registry
	h *flawedHarness
}

func (r *flawedRegistry) Open(ctx context.Context) (registry.Session, error) {
	if r.h.flaw.open != nil {
		return r.h.flaw.open(r, ctx)
	}
	return r.sound(ctx)
}

func (r *flawedRegistry) sound(ctx context.Context) (registry.Session, error) {
	inner, err := r.Registry.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &flawed{Session: inner, reg: r.Registry, flaw: &r.h.flaw, state: map[string]any{}}
	if s.flaw.opened != nil {
		s.flaw.opened(s, ctx)
	}
	return s, nil
}

func (r *flawedRegistry) Namespace() string {
	if r.h.flaw.namespace != nil {
		return r.h.flaw.namespace(r)
	}
	return r.Registry.Namespace()
}

func (r *flawedRegistry) OpenStore(ctx context.Context) (registry.StoreCloser, error) {
	if r.h.flaw.store != nil {
		return r.h.flaw.store(r, ctx)
	}
	return r.Registry.OpenStore(ctx)
}

func (r *flawedRegistry) Close() error {
	if r.h.flaw.ends != nil {
		return r.h.flaw.ends(r)
	}
	return r.Registry.Close()
}

// flawed is a session of the memory adapter with a flaw.
type flawed struct {
	registry.Session
	reg  *memory.Registry
	flaw *flaw

	mu    sync.Mutex
	state map[string]any // whatever a flaw remembers
}

// once returns what produce makes, the same for each key.
func once[T any](s *flawed, key string, produce func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.state[key]; !known {
		s.state[key] = produce()
	}
	return s.state[key].(T)
}

func (s *flawed) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if s.flaw.commit != nil {
		return s.flaw.commit(s, ctx, ops)
	}
	return s.Session.Commit(ctx, ops...)
}

func (s *flawed) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if s.flaw.get != nil {
		return s.flaw.get(s, ctx, paths)
	}
	return s.Session.Get(ctx, paths...)
}

func (s *flawed) Children(ctx context.Context, path string) ([]string, error) {
	if s.flaw.children != nil {
		return s.flaw.children(s, ctx, path)
	}
	return s.Session.Children(ctx, path)
}

func (s *flawed) Lock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	if s.flaw.lock != nil {
		return s.flaw.lock(s, ctx, dir, value)
	}
	return s.Session.Lock(ctx, dir, value)
}

func (s *flawed) Close(ctx context.Context) error {
	if s.flaw.close != nil {
		return s.flaw.close(s, ctx)
	}
	return s.Session.Close(ctx)
}

func (s *flawed) Done() <-chan struct{} {
	if s.flaw.done != nil {
		return s.flaw.done(s)
	}
	return s.Session.Done()
}

func (s *flawed) Deadline() time.Time {
	if s.flaw.deadline != nil {
		return s.flaw.deadline(s)
	}
	return s.Session.Deadline()
}

func (s *flawed) Watch(ctx context.Context) (registry.Watcher, error) {
	if s.flaw.watch != nil {
		return s.flaw.watch(s, ctx)
	}
	return s.watcher(ctx)
}

func (s *flawed) watcher(ctx context.Context) (registry.Watcher, error) {
	w, err := s.Session.Watch(ctx)
	if err != nil {
		return nil, err
	}
	return &flawedWatcher{Watcher: w, s: s, past: map[string]registry.Event{}}, nil
}

func (s *flawed) Err() error {
	if s.flaw.err != nil {
		return s.flaw.err(s)
	}
	return s.Session.Err()
}

func (s *flawed) ID() string {
	if s.flaw.id != nil {
		return s.flaw.id(s)
	}
	return s.Session.ID()
}

func (s *flawed) Sync(ctx context.Context) error {
	if s.flaw.sync != nil {
		return s.flaw.sync(s, ctx)
	}
	return s.Session.Sync(ctx)
}

func (s *flawed) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	if s.flaw.try != nil {
		return s.flaw.try(s, ctx, dir, value)
	}
	return s.Session.TryLock(ctx, dir, value)
}

func (s *flawed) Limits() registry.Limits {
	if s.flaw.limits != nil {
		return s.flaw.limits(s.Session.Limits())
	}
	return s.Session.Limits()
}

type flawedWatcher struct {
	registry.Watcher
	s    *flawed
	past map[string]registry.Event

	notes sync.Map // what a flaw remembers between Next and the other calls
}

func (w *flawedWatcher) Next(ctx context.Context) ([]registry.Event, error) {
	if w.s.flaw.next != nil {
		return w.s.flaw.next(w, ctx)
	}
	return w.Watcher.Next(ctx)
}

func (w *flawedWatcher) Add(path string, scope registry.Scope) error {
	if w.s.flaw.add != nil {
		return w.s.flaw.add(w, path, scope)
	}
	return w.Watcher.Add(path, scope)
}

func (w *flawedWatcher) Remove(path string, scope registry.Scope) {
	if w.s.flaw.remove != nil {
		w.s.flaw.remove(w, path, scope)
		return
	}
	w.Watcher.Remove(path, scope)
}

func (w *flawedWatcher) Close() error {
	if w.s.flaw.closed != nil {
		return w.s.flaw.closed(w)
	}
	return w.Watcher.Close()
}

// filter delivers the events that keep keeps, and waits for more when none is left.
func (w *flawedWatcher) filter(ctx context.Context, keep func(registry.Event) bool) ([]registry.Event, error) {
	for {
		events, err := w.Watcher.Next(ctx)
		var kept []registry.Event
		for _, e := range events {
			if keep(e) {
				kept = append(kept, e)
			}
		}
		if err != nil || len(kept) > 0 {
			return kept, err
		}
	}
}

// flawedLock is a lock with another token, guard or release.
type flawedLock struct {
	registry.Lock
	token   registry.Revision
	guard   *registry.Op
	release func(ctx context.Context) error
	lost    <-chan struct{}
}

func (l *flawedLock) Lost() <-chan struct{} {
	if l.lost != nil {
		return l.lost
	}
	return l.Lock.Lost()
}

func (l *flawedLock) Token() registry.Revision {
	if l.token != 0 {
		return l.token
	}
	return l.Lock.Token()
}

func (l *flawedLock) Guard() registry.Op {
	if l.guard != nil {
		return *l.guard
	}
	return l.Lock.Guard()
}

func (l *flawedLock) Release(ctx context.Context) error {
	if l.release != nil {
		return l.release(ctx)
	}
	return l.Lock.Release(ctx)
}

// flawedFaults are sound: the flaw is the adapter's.
type flawedFaults flawedHarness

func client(s registry.Session) *memory.Registry { return s.(*flawed).reg }

func (f *flawedFaults) Expire(s registry.Session) error {
	if !f.srv.Expire(s.ID()) {
		return errors.New("the session had ended before")
	}
	return nil
}

func (f *flawedFaults) Drop(s registry.Session) error {
	client(s).Drop()
	if f := s.(*flawed); f.flaw.dropped != nil {
		f.flaw.dropped(f)
	}
	return nil
}

func (f *flawedFaults) Blackhole(s registry.Session, d Direction) (func(), error) {
	switch d {
	case Requests:
		return client(s).LoseRequests(), nil
	case Answers:
		return client(s).LoseAnswers(), nil
	}
	requests, answers := client(s).LoseRequests(), client(s).LoseAnswers()
	return func() { requests(); answers() }, nil
}

func (f *flawedFaults) Delay(s registry.Session, d time.Duration) (func(), error) {
	return client(s).Delay(d), nil
}

func (f *flawedFaults) Deny(path string) (func(), error) { return f.srv.Deny(path), nil }

func (f *flawedFaults) Refuse(s registry.Session) (func(), error) { return client(s).Refuse(), nil }

func (f *flawedFaults) NextCommit(s registry.Session, fate Fate) (func() bool, error) {
	met := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fates[s.ID()] = func() memory.Fate {
		close(met)
		return map[Fate]memory.Fate{
			AnswerLost: memory.AnswerLost, RequestLost: memory.RequestLost, AppliedLate: memory.AppliedLate(LateBy),
		}[fate]
	}
	return func() bool {
		select {
		case <-met:
			return true
		default:
			return false
		}
	}, nil
}

func (f *flawedFaults) Hits(s registry.Session) int  { return client(s).Hits() }
func (f *flawedFaults) PauseServer() (func(), error) { return f.srv.Pause(), nil }
func (f *flawedFaults) RestartServer() error         { f.srv.Restart(); return nil }
func (f *flawedFaults) LoseLeader() error            { return ErrUnsupported }
func (f *flawedFaults) ForgetHistory() error         { return nil }
