package settle

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const (
	// patience bounds one attempt.
	patience = 3 * time.Second
	// first and last bound the pause between attempts.
	first = 50 * time.Millisecond
	last  = time.Second
)

// A Commit is what shall be applied once.
type Commit struct {
	// Store takes it; its session bounds every wait.
	Store registry.Store
	// Ops are the operations.
	Ops []registry.Op
	// Marker is the index in Ops of the operation that is unlike that of any other commit.
	Marker int
	// Shows reports whether the marker's node, as it was read, shows that Ops were applied.
	Shows func(registry.Node) bool
	// Neutral returns operations that move the marker on at the version that it has in
	// Ops, and change nothing else. It is nil where every refusal rules out all attempts.
	Neutral func() []registry.Op
}

// An Outcome is what is known of a commit beside its error.
type Outcome struct {
	// Revision is that of the commit; where its answer was lost, that of the marker's
	// node as it was read, which is no earlier.
	Revision registry.Revision
	// Uncertain: an attempt's answer was lost. What the registry holds now must be read.
	Uncertain bool
	// Took is how long the attempt took that was answered, and no pause or outage before it; 0 where none was.
	Took time.Duration
}

// Run applies c. It calls hindered, which may be nil, about once a second while it is
// held up.
func (c Commit) Run(ctx context.Context, hindered func(error)) (Outcome, error) {
	w := waiter{ctx: ctx, hindered: hindered, pause: first}
	for uncertain := false; ; {
		begun := time.Now()
		rev, err := c.attempt(ctx, c.Ops)
		took := time.Since(begun)
		failed, refused := errors.AsType[*registry.CommitError](err)
		denied := errors.Is(err, registry.ErrDenied)
		switch {
		case err == nil:
			return Outcome{Revision: rev, Uncertain: uncertain, Took: took}, nil
		case refused && !denied && uncertain:
			rev, err = c.resolve(w, failed)
			return Outcome{Revision: rev, Uncertain: true, Took: took}, err
		case refused && !denied, denied && !uncertain:
			return Outcome{Took: took}, err
		}
		uncertain = uncertain || unknown(err)
		if final(ctx, err) || !w.wait(err) {
			return Outcome{Uncertain: uncertain}, err
		}
	}
}

// resolve finds out what a refusal means that came after an attempt of unknown outcome.
func (c Commit) resolve(w waiter, failed *registry.CommitError) (registry.Revision, error) {
	for settled := failed.Index == c.Marker; ; {
		node, err := c.marker(w)
		if err != nil {
			return 0, err
		}
		switch {
		case c.Shows(node):
			return node.Modified, nil
		case settled || c.Neutral == nil:
			return 0, failed
		}
		_, err = c.attempt(w.ctx, c.Neutral())
		_, refused := errors.AsType[*registry.CommitError](err)
		switch {
		case err == nil:
			return 0, failed
		case refused && !errors.Is(err, registry.ErrDenied):
			settled = true // the marker has moved on, or is gone, or who may move it is
			continue
		case final(w.ctx, err):
			return 0, err
		}
		if !w.wait(err) {
			return 0, err
		}
	}
}

func (c Commit) attempt(ctx context.Context, ops []registry.Op) (registry.Revision, error) {
	once, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Store.Commit(once, ops...)
}

func (c Commit) marker(w waiter) (registry.Node, error) {
	nodes, err := Get(w.ctx, c.Store, w.hindered, c.Ops[c.Marker].Path)
	if err != nil {
		return registry.Node{}, err
	}
	return nodes[0], nil
}

// Get reads until it has the answer, the context ends or the session is lost. A read
// that is denied is tried again too: the outcome of a commit may hang on it.
func Get(ctx context.Context, store registry.Store, hindered func(error), paths ...string) ([]registry.Node, error) {
	w := waiter{ctx: ctx, hindered: hindered, pause: first}
	for {
		once, cancel := context.WithTimeout(ctx, patience)
		nodes, err := store.Get(once, paths...)
		cancel()
		if err == nil || final(ctx, err) {
			return nodes, err
		}
		if !w.wait(err) {
			return nil, err
		}
	}
}

// final reports whether no further attempt can help.
func final(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, registry.ErrSessionLost) || errors.Is(err, registry.ErrInvalid)
}

// unknown reports whether the attempt may have been applied, or may be yet.
func unknown(err error) bool {
	if errors.Is(err, registry.ErrUncertain) {
		return true
	}
	for _, unsent := range []error{
		context.DeadlineExceeded, context.Canceled, registry.ErrUnavailable, registry.ErrDenied, registry.ErrInvalid,
		registry.ErrSessionLost,
	} {
		if errors.Is(err, unsent) {
			return false
		}
	}
	return true
}

type waiter struct {
	ctx      context.Context
	hindered func(error)
	pause    time.Duration
}

// wait pauses; it reports false when the context ended first.
func (w *waiter) wait(err error) bool {
	if w.pause == last && w.hindered != nil {
		w.hindered(err)
	}
	ok := Pause(w.ctx, w.pause)
	w.pause = min(2*w.pause, last)
	return ok
}

// Pause waits, and reports false when the context ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
