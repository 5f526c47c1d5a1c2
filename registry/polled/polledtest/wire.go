package polledtest

import (
	"context"
	"slices"
	"time"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
)

// A wire is a client's way to the server: a store whose requests travel, are
// served, and come back, unless a fault has them. The server's mu guards it.
type wire struct {
	*server

	connected       bool // the connection is made by the first request
	stale           bool // it was cut, which the next request finds out
	pending         map[*request]struct{}
	refuses         int
	swallowRequests int
	swallowAnswers  int
	delay           time.Duration    // of every answer
	fates           map[string]*fate // of the next commit, by session
	hits            int
}

// A fate is what becomes of one commit.
type fate struct {
	kind conformance.Fate
	hit  bool
}

// A request is on its way, or its answer is.
type request struct {
	broken chan struct{}
	lossy  bool // a fault has swallowed something of it
}

var _ polled.Store = (*wire)(nil)

func (s *server) connect() *wire {
	return &wire{server: s, pending: map[*request]struct{}{}, fates: map[string]*fate{}}
}

// call carries a request to the server and waits for the answer.
func call[T any](ctx context.Context, w *wire, committer string, run func(context.Context, polled.Store) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	r := &request{broken: make(chan struct{})}
	err := w.send(r, committer, func(delay time.Duration, unanswered bool) {
		value, err := serve(w.server, delay, run)
		w.holdBack(r)
		if w.arrives(r, unanswered) {
			answered <- answer{value, err}
		}
	})
	var none T
	if err != nil {
		return none, err
	}
	defer w.leave(r)
	select {
	case a := <-answered:
		return a.value, a.err
	case <-r.broken:
		return none, errReset
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// send is what becomes of a request on its way. deliver runs in the background.
func (w *wire) send(r *request, committer string, deliver func(delay time.Duration, unanswered bool)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	stale := w.stale
	w.stale = false
	switch {
	case w.refuses > 0 || w.store == nil:
		w.hits++
		return errRefused
	case stale:
		return errReset
	}
	w.connected = true
	w.pending[r] = struct{}{}
	if w.swallowRequests > 0 {
		w.swallow(r)
		return nil
	}
	if w.paused > 0 {
		w.hits++
	}
	f, delay := w.fateOf(committer), time.Duration(0)
	if f != nil && f.kind != conformance.AnswerLost {
		w.snap(r)
		delay = conformance.LateBy
	}
	if f == nil || f.kind != conformance.RequestLost {
		w.serving.Go(func() { deliver(delay, f != nil) })
	}
	return nil
}

// holdBack lets the answer be as late as a fault says.
func (w *wire) holdBack(r *request) {
	w.mu.Lock()
	late := w.delay
	if late > 0 {
		w.hits++
	}
	w.mu.Unlock()
	if late == 0 {
		return
	}
	timer := time.NewTimer(late)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.broken:
	case <-w.ctx.Done():
	}
}

// arrives says whether the answer comes through.
func (w *wire) arrives(r *request, unanswered bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case unanswered:
		w.snap(r)
	case w.swallowAnswers > 0:
		w.swallow(r)
	default:
		return true
	}
	return false
}

func (w *wire) leave(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, r)
}

// fateOf returns what is planned for the next commit of a session, or nil.
func (w *wire) fateOf(committer string) *fate {
	f := w.fates[committer]
	if f != nil {
		delete(w.fates, committer)
		f.hit = true
		w.hits++
	}
	return f
}

func (w *wire) swallow(r *request) {
	r.lossy = true
	w.hits++
}

// snap breaks what one request travels on.
func (w *wire) snap(r *request) {
	if _, waits := w.pending[r]; waits {
		delete(w.pending, r)
		close(r.broken)
	}
}

// cut breaks everything that there is.
func (w *wire) cut() {
	for r := range w.pending {
		w.hits++
		w.snap(r)
	}
	if w.connected {
		w.hits++
	}
	w.hangUp(func(l *line) bool { return l.wire == w })
	w.stale, w.connected = w.stale || w.connected, false
}

func (w *wire) Begin(ctx context.Context, session string, timeout time.Duration) error {
	w.mu.Lock()
	w.wires[session] = w
	w.mu.Unlock()
	return do(ctx, w, func(ctx context.Context, s polled.Store) error { return s.Begin(ctx, session, timeout) })
}

func (w *wire) Beat(ctx context.Context, session string) (registry.Revision, error) {
	return call(ctx, w, "", func(ctx context.Context, s polled.Store) (registry.Revision, error) { return s.Beat(ctx, session) })
}

func (w *wire) Sessions(ctx context.Context) ([]polled.Session, error) {
	return call(ctx, w, "", func(ctx context.Context, s polled.Store) ([]polled.Session, error) { return s.Sessions(ctx) })
}

func (w *wire) End(ctx context.Context, session string, beat int64) error {
	return do(ctx, w, func(ctx context.Context, s polled.Store) error { return s.End(ctx, session, beat) })
}

func (w *wire) Read(ctx context.Context, paths, dirs []string) ([]polled.Node, error) {
	paths, dirs = slices.Clone(paths), slices.Clone(dirs)
	return call(ctx, w, "", func(ctx context.Context, s polled.Store) ([]polled.Node, error) { return s.Read(ctx, paths, dirs) })
}

func (w *wire) Commit(ctx context.Context, session string, ops []registry.Op) (registry.Revision, error) {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Value = slices.Clone(ops[i].Value) // served late, it is the caller's again
	}
	return call(ctx, w, session, func(ctx context.Context, s polled.Store) (registry.Revision, error) {
		return s.Commit(ctx, session, ops)
	})
}

// Close leaves the server as it is.
func (w *wire) Close() error { return nil }

// do is call for what has no answer but an error.
func do(ctx context.Context, w *wire, run func(context.Context, polled.Store) error) error {
	_, err := call(ctx, w, "", func(ctx context.Context, s polled.Store) (struct{}, error) { return struct{}{}, run(ctx, s) })
	return err
}
