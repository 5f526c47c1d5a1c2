package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
)

// A client is the registry as one process sees it: that of memory, with each request
// held on its way there and each answer on its way back.
type client struct{ *process }

var (
	errDead   = fmt.Errorf("simulation: the process was killed: %w", registry.ErrSessionLost)
	errDenied = fmt.Errorf("simulation: %w", registry.ErrDenied)
)

// Namespace implements registry.Registry.
func (c client) Namespace() string { return c.link.Namespace() }

// Close implements registry.Registry. The process closes its link itself.
func (c client) Close() error { return nil }

// Open implements registry.Registry.
func (c client) Open(ctx context.Context) (registry.Session, error) {
	v := c.pass(ctx, "open", c.request, nil)
	if v == passed {
		inner, err := c.link.Open(ctx)
		if err != nil {
			return nil, err
		}
		if v = c.pass(ctx, "opened", c.answer, nil); v == passed {
			return c.open(inner), nil
		}
		if v != dead { // a killed process closes nothing
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			_ = inner.Close(gone)
		}
	}
	if v == dead {
		<-ctx.Done() // so that its engine does not spin until it ends
	}
	return nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, ctx.Err())
}

// OpenStore implements registry.Registry. The engine opens none.
func (c client) OpenStore(context.Context) (registry.StoreCloser, error) {
	return nil, fmt.Errorf("simulation: stores: %w", registry.ErrInvalid)
}

// A session is one of memory's, with everything that it does held by the driver.
type session struct {
	proc  *process
	inner registry.Session
	id    string
	done  chan struct{}

	mu  sync.Mutex
	err error
}

func (p *process) open(inner registry.Session) *session {
	p.mu.Lock()
	p.opened++
	s := &session{proc: p, inner: inner, id: fmt.Sprintf("%s#%d", p.name, p.opened), done: make(chan struct{})}
	p.session = s
	p.mu.Unlock()
	p.tell("", history.Record{Kind: history.Opened, Session: s.id, Deadline: p.world.common(inner.Deadline())})
	p.tasks.Go(s.await)
	return s
}

// await ends the session here once memory's has ended, or the process was killed.
// One that stands still finds out when it goes on.
func (s *session) await() {
	select {
	case <-s.inner.Done():
		s.proc.moves()
		s.end(s.inner.Err())
	case <-s.proc.dead:
		s.end(errDead)
	case <-s.done:
	}
}

func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	if !errors.Is(err, errDead) {
		s.proc.tell("", history.Record{
			Kind: history.Lost, Session: s.id, Deadline: s.proc.world.common(s.inner.Deadline()), Err: err.Error(),
		})
	}
	close(s.done)
}

// killed ends the session before a call says so: who goes by Err would try again until await has come to it.
func (s *session) killed() error {
	s.end(errDead)
	return errDead
}

// ended is err, and what the engine is told of the session when err says that it is over.
func (s *session) ended(err error) error {
	if errors.Is(err, registry.ErrSessionLost) {
		s.end(err)
	}
	return err
}

func (s *session) ID() string              { return s.id }
func (s *session) Limits() registry.Limits { return s.inner.Limits() }
func (s *session) Deadline() time.Time     { return s.inner.Deadline() }
func (s *session) Done() <-chan struct{}   { return s.done }

func (s *session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *session) Close(ctx context.Context) error {
	s.proc.pass(ctx, "close", s.proc.request, nil)
	if closed(s.proc.dead) {
		return s.killed()
	}
	s.mu.Lock()
	if s.err == nil {
		s.err = fmt.Errorf("simulation: closed: %w", registry.ErrSessionLost)
		s.proc.tell("", history.Record{Kind: history.Closing, Session: s.id, Deadline: s.proc.world.common(s.inner.Deadline())})
		close(s.done)
	}
	s.mu.Unlock()
	return s.inner.Close(ctx)
}

func (s *session) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	return ask(ctx, s, "get "+strings.Join(paths, " "), func() ([]registry.Node, error) { return s.inner.Get(ctx, paths...) })
}

func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	return ask(ctx, s, "list "+path, func() ([]string, error) { return s.inner.Children(ctx, path) })
}

func (s *session) Sync(ctx context.Context) error {
	_, err := ask(ctx, s, "sync", func() (struct{}, error) { return struct{}{}, s.inner.Sync(ctx) })
	return err
}

// Lock implements registry.Session. The engine takes no locks.
func (s *session) Lock(context.Context, string, []byte) (registry.Lock, error) {
	return nil, fmt.Errorf("simulation: locks: %w", registry.ErrInvalid)
}

// TryLock implements registry.Session.
func (s *session) TryLock(ctx context.Context, dir string, value []byte) (registry.Lock, error) {
	return s.Lock(ctx, dir, value)
}

// ask reads, with the request and the answer held.
func ask[T any](ctx context.Context, s *session, key string, read func() (T, error)) (T, error) {
	var none T
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return none, err
	}
	v := s.proc.pass(ctx, key, s.proc.request, s.done)
	if v == passed {
		answer, err := read()
		if v = s.proc.pass(ctx, "answer of "+key, s.proc.answer, s.done); v == passed {
			return answer, s.ended(err)
		}
	}
	return none, s.cutShort(ctx, v, fmt.Errorf("%w: %w", registry.ErrUnavailable, ctx.Err()))
}

// cutShort is the error of a call that did not come back.
func (s *session) cutShort(ctx context.Context, v verdict, otherwise error) error {
	switch v {
	case dead:
		return s.killed()
	case lost:
		return s.Err()
	}
	return cmp.Or(otherwise, ctx.Err())
}

// Commit implements registry.Store.
func (s *session) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	if err := s.Limits().Validate(ops); err != nil {
		return 0, err
	}
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return 0, err
	}
	key := "commit " + describe(ops)
	if v := s.proc.pass(ctx, key, s.proc.request, s.done); v != passed {
		return 0, s.cutShort(ctx, v, ctx.Err())
	}
	if err := s.proc.deny(ops); err != nil {
		return 0, err
	}
	s.proc.world.judgeCommit(s.proc, ops)
	rev, err := s.inner.Commit(ctx, ops...)
	v := s.proc.pass(ctx, "answer of "+key, s.proc.answer, s.done)
	switch v {
	case passed:
		return rev, s.ended(err)
	case dead:
		return 0, s.killed()
	case lost:
		return 0, fmt.Errorf("simulation: %w: %w", registry.ErrUncertain, s.Err())
	}
	return 0, fmt.Errorf("simulation: %w: %w", registry.ErrUncertain, ctx.Err())
}

// describe names a commit by what it does.
func describe(ops []registry.Op) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%d%s@%d ", op.Kind, op.Path, op.Version)
	}
	return b.String()
}

// A watcher delivers what memory's watchers tell, one for each target, when the
// driver lets it: order over different targets is the seed's.
type watcher struct {
	session *session
	wake    chan struct{}
	closed  chan struct{}

	mu      sync.Mutex
	targets map[string]*target
	ready   []registry.Event
	err     error // to be told once
}

// A target is one target of a watcher.
type target struct {
	key     string
	inner   registry.Watcher
	queue   []registry.Event
	waiting bool // for a step
	gone    bool
}

// Watch implements registry.Store.
func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, err
	}
	w := &watcher{session: s, wake: make(chan struct{}, 1), closed: make(chan struct{}), targets: map[string]*target{}}
	s.proc.mu.Lock()
	defer s.proc.mu.Unlock()
	s.proc.watchers = append(s.proc.watchers, w)
	return w, nil
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failure(); err != nil {
		return err
	}
	key := scope.String() + " " + path
	if w.targets[key] != nil {
		return nil
	}
	inner, err := w.session.inner.Watch(context.Background())
	if err != nil {
		return err
	}
	t := &target{key: key, inner: inner}
	if err := inner.Add(path, scope); err != nil {
		return err
	}
	w.targets[key] = t
	if w.session.proc.denyWatch(path) {
		t.waiting = true
		w.ask(t, func() { w.refuse(t, path) })
		return nil
	}
	w.session.proc.tasks.Go(func() { w.pump(t) })
	return nil
}

// refuse tells, once, that the service does not let this target be watched.
func (w *watcher) refuse(t *target, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.gone {
		w.drop(t)
		w.err = fmt.Errorf("watch of %s: %w", path, errDenied)
		w.nudge()
	}
}

func (w *watcher) Remove(path string, scope registry.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.targets[scope.String()+" "+path]
	if t == nil {
		return
	}
	w.drop(t)
	kept := w.ready[:0:0]
	for _, e := range w.ready {
		if e.Path != path || e.Scope != scope {
			kept = append(kept, e)
		}
	}
	w.ready = kept
}

// drop ends a target. The caller holds mu, as for nudge, ask and failure.
func (w *watcher) drop(t *target) {
	t.gone = true
	delete(w.targets, t.key)
	_ = t.inner.Close()
}

func (w *watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) failure() error {
	if closed(w.closed) {
		return fmt.Errorf("simulation: watcher: %w", registry.ErrClosed)
	}
	return w.session.Err()
}

// pump takes what memory tells of one target. Of changes that are not delivered yet
// the seed may fold two of one node into one.
func (w *watcher) pump(t *target) {
	for {
		events, err := t.inner.Next(context.Background())
		if err != nil {
			return
		}
		w.mu.Lock()
		for _, e := range events {
			last := len(t.queue) - 1
			if last >= 0 && !e.Synced && !t.queue[last].Synced && t.queue[last].Node.Path == e.Node.Path &&
				chance(w.session.proc.draw("fold "+t.key), 2) {
				t.queue[last] = e
				continue
			}
			t.queue = append(t.queue, e)
		}
		if !t.waiting && len(t.queue) > 0 {
			t.waiting = true
			w.ask(t, func() { w.deliver(t) })
		}
		w.mu.Unlock()
	}
}

// ask lets the driver decide when something of t reaches the client.
func (w *watcher) ask(t *target, then func()) {
	p := w.session.proc
	p.world.driver.add(&step{key: p.name + " event " + t.key, proc: p, wait: p.answer, run: then})
}

// deliver hands over what the seed wants of what waits.
func (w *watcher) deliver(t *target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.waiting = false
	if t.gone || closed(w.session.done) {
		return
	}
	n := len(t.queue)
	if r := w.session.proc.draw("batch " + t.key); chance(r, 2) {
		n = 1 + r.IntN(n)
	}
	w.ready = append(w.ready, t.queue[:n]...)
	t.queue = t.queue[n:]
	if len(t.queue) > 0 {
		t.waiting = true
		w.ask(t, func() { w.deliver(t) })
	}
	w.nudge()
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		if events, err := w.take(ctx); err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-w.wake:
		case <-w.closed:
		case <-w.session.done:
		case <-ctx.Done():
		}
	}
}

func (w *watcher) take(ctx context.Context) ([]registry.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmp.Or(w.failure(), ctx.Err()); err != nil {
		return nil, err
	}
	events, err := w.ready, w.err
	w.ready = nil
	if len(events) > 0 {
		return events, nil
	}
	w.err = nil
	return nil, err
}

func (w *watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !closed(w.closed) {
		close(w.closed)
		for _, t := range w.targets {
			w.drop(t)
		}
	}
	return nil
}
