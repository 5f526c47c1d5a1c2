package lifetime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// Reasons why a session ended that all adapters have.
var (
	ErrSilent = errors.New("no heartbeat was acknowledged in time")
	ErrClosed = errors.New("closed by its owner")
)

// A Lifetime is one life of a session. Its methods named as those of registry.Session are these. New makes it.
type Lifetime struct {
	adapter string
	ctx     context.Context // its end is Done, its cause Err
	cancel  context.CancelCauseFunc
	work    sync.WaitGroup

	closing  atomic.Bool
	closed   chan struct{}
	closeErr error

	mu       sync.Mutex
	id       string
	deadline time.Time
	lead     time.Duration // of Done before deadline
	alarm    *time.Timer   // nil: there is no deadline
}

// New returns a lifetime without a deadline. Errors begin with the name of the adapter.
func New(adapter string) *Lifetime {
	l := &Lifetime{adapter: adapter, closed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Begin names the session, and gives it its first deadline. See Extend.
func (l *Lifetime) Begin(id string, deadline time.Time, lead time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = id
	if l.ctx.Err() != nil {
		return
	}
	l.deadline, l.lead = deadline, lead
	l.alarm = time.AfterFunc(l.left(), l.ring)
}

// Extend moves the deadline forward, and has Done closed by lead before it: timers are
// late and never early. False: the session has ended, or would have by now.
func (l *Lifetime) Extend(deadline time.Time, lead time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil || l.left() <= 0 { // somebody may have acted on it
		return false
	}
	if deadline.After(l.deadline) {
		l.deadline, l.lead = deadline, lead
	}
	return true
}

// left is the time until Done must be closed. l.mu is held.
func (l *Lifetime) left() time.Duration { return time.Until(l.deadline) - l.lead }

// ring ends the session, unless the deadline has moved.
func (l *Lifetime) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.left(); left > 0 && l.ctx.Err() == nil {
		l.alarm.Reset(left)
		return
	}
	l.lose(ErrSilent)
}

// Lose ends the session here, and reports whether it was this call that did.
func (l *Lifetime) Lose(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lose(reason)
}

func (l *Lifetime) lose(reason error) bool {
	if l.ctx.Err() != nil {
		return false
	}
	if l.alarm != nil {
		l.alarm.Stop()
	}
	l.cancel(fmt.Errorf("%s: %w: session %s: %w", l.adapter, registry.ErrSessionLost, l.id, reason))
	return true
}

// ID is the name that Begin gave.
func (l *Lifetime) ID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Deadline is registry.Session's.
func (l *Lifetime) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Done is registry.Session's.
func (l *Lifetime) Done() <-chan struct{} { return l.ctx.Done() }

// Err is registry.Session's.
func (l *Lifetime) Err() error { return context.Cause(l.ctx) }

// Context ends with the session.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Alive reports why a call cannot start: the session's end, or that of ctx.
func (l *Lifetime) Alive(ctx context.Context) error { return cmp.Or(l.Err(), ctx.Err()) }

// AliveFor is Alive for a call that concerns paths, which must be valid; what it is called is for the error.
func (l *Lifetime) AliveFor(ctx context.Context, what string, paths ...string) error {
	return cmp.Or(Validate(l.adapter, what, paths...), l.Alive(ctx))
}

// Validate refuses a path that cannot be, to a call of an adapter.
func Validate(adapter, what string, paths ...string) error {
	for _, path := range paths {
		if err := registry.ValidatePath(path); err != nil {
			return fmt.Errorf("%s: %s: %w", adapter, what, err)
		}
	}
	return nil
}

// Bound returns a context that ends with ctx and with the session, of which it then has
// the cause. release must be called.
func (l *Lifetime) Bound(ctx context.Context) (bounded context.Context, release func()) {
	return Both(ctx, l.ctx)
}

// Both returns ctx, which ends with other too, of which it then has the cause. release must be called.
func Both(ctx, other context.Context) (both context.Context, release func()) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return both, func() { stop(); cancel(nil) }
}

// Go runs f on a goroutine that Wait joins. False: the session has ended.
func (l *Lifetime) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.work.Go(f)
	return true
}

// Spawn runs f on a goroutine that Wait joins, with a context that ends with the session;
// once that has ended, in the caller.
func (l *Lifetime) Spawn(f func(ctx context.Context)) {
	if !l.Go(func() { f(l.ctx) }) {
		f(l.ctx)
	}
}

// Wait joins the goroutines. The session must have ended.
func (l *Lifetime) Wait() { l.work.Wait() }

// End ends the session here and joins its goroutines.
func (l *Lifetime) End() {
	l.Lose(ErrClosed)
	l.Wait()
}

// attemptPart of the session's timeout is how long Close waits for the service when its context has ended before.
const attemptPart = 4

// CloseOnce has the first caller end the session, and gives the outcome to all. Each waits no longer than his ctx, nor
// than timeout, after which the session is gone anyway. A ctx that has ended leaves time for one attempt.
func (l *Lifetime) CloseOnce(ctx context.Context, timeout time.Duration, end func(context.Context) error) error {
	if ctx.Err() != nil {
		ctx, timeout = context.WithoutCancel(ctx), timeout/attemptPart
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if !l.closing.Swap(true) {
		defer close(l.closed)
		l.closeErr = end(ctx)
		return l.closeErr
	}
	select {
	case <-l.closed:
		return l.closeErr
	case <-ctx.Done():
		return fmt.Errorf("%s: close: %w: %w",
			l.adapter, registry.ErrUnavailable, ctx.Err())
	}
}

// Open is the sessions of a registry that are not closed yet. The zero value is ready.
type Open[S interface {
	comparable
	Close(ctx context.Context) error
}] struct {
	mu       sync.Mutex
	closed   bool
	sessions map[S]struct{}
}

// Add takes a session in. False: the registry is closed.
func (o *Open[S]) Add(s S) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.sessions == nil {
		o.sessions = map[S]struct{}{}
	}
	o.sessions[s] = struct{}{}
	return true
}

// Remove forgets a session that is closed.
func (o *Open[S]) Remove(s S) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, s)
}

// All returns the sessions that are open.
func (o *Open[S]) All() []S {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.sessions))
}

// Closed reports whether Close was called.
func (o *Open[S]) Closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// Close closes the sessions that are open, and waits for the service no longer than patience: one that does not answer
// ends them by expiry. It reports whether this call was the first.
func (o *Open[S]) Close(patience time.Duration) bool {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	var work sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for s := range o.sessions {
		work.Go(func() { _ = s.Close(ctx) })
	}
	o.mu.Unlock()
	work.Wait()
	return first
}
