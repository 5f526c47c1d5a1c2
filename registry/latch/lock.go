package latch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// Spawn runs fn on a goroutine that the session owns and joins when it is closed. The context ends with the session.
// When the session has ended already, fn is run all the same, in the caller too, with a context that has ended.
type Spawn func(fn func(ctx context.Context))

// Acquire is Session.Lock, or with try Session.TryLock, for ses. It needs of ses
// Get, Children, Sync, Commit and Watch as the contract has them.
func Acquire(ctx context.Context, ses registry.Session, dir string, value []byte, try bool, spawn Spawn, opts ...Option) (registry.Lock, error) {
	if err := registry.ValidatePath(dir); err != nil {
		return nil, err
	}
	for {
		c := newContender(ses, dir, value, spawn)
		for _, opt := range opts {
			opt(c)
		}
		err := c.acquire(ctx, try)
		if err == nil {
			return newLock(c), nil
		}
		gone := errors.Is(err, errVanished)
		left := c.leave(gone, true)
		if gone {
			continue
		}
		if errors.Is(err, registry.ErrHeld) {
			_ = left.wait(ctx) // it is removed all the same
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
}

func (c *contender) acquire(ctx context.Context, try bool) error {
	if try {
		if err := c.lookIfHeld(ctx); err != nil {
			return err
		}
	}
	if err := c.join(ctx); err != nil {
		return err
	}
	if err := c.wait(ctx, try); err != nil {
		return err
	}
	return c.watchSelf(ctx)
}

// lookIfHeld spares a held lock the commotion of one more contender. A list may be old, hence the second look. Nobody is
// asked about a value that cannot be.
func (c *contender) lookIfHeld(ctx context.Context) error {
	if err := c.session.Limits().Validate([]registry.Op{registry.Create(c.prefix, c.value)}); err != nil {
		return err
	}
	found, err := c.list(ctx)
	if err == nil && len(found) > 0 {
		if err = c.session.Sync(ctx); err == nil {
			found, err = c.list(ctx)
		}
	}
	if err == nil && len(found) > 0 {
		return registry.ErrHeld
	}
	return err
}

// A lock is a contender that came first.
type lock struct {
	contender *contender
	token     registry.Revision
	lost      chan struct{}
	lose      func() // closes lost, once

	mu   sync.Mutex
	left *departure // the latest; nil: none yet
}

func newLock(c *contender) *lock {
	l := &lock{contender: c, token: c.token, lost: make(chan struct{})}
	l.lose = sync.OnceFunc(func() { close(l.lost) })
	c.spawn(l.guard)
	return l
}

func (l *lock) Path() string             { return l.contender.path }
func (l *lock) Token() registry.Revision { return l.token }
func (l *lock) Guard() registry.Op       { return registry.Check(l.contender.path, registry.AnyVersion) }
func (l *lock) Lost() <-chan struct{}    { return l.lost }

func (l *lock) Release(ctx context.Context) error {
	l.lose()
	if err := l.leave(false).wait(ctx); err != nil {
		return fmt.Errorf("release lock %s: %w", l.contender.dir, err)
	}
	return nil
}

// leave removes the contender, once, and again after each time that the service has refused that.
func (l *lock) leave(gone bool) *departure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil || l.left.refused.Load() {
		l.left = l.contender.leave(gone, false)
	}
	return l.left
}

// guard closes Lost when the node is gone, or nobody can tell any more.
func (l *lock) guard(ctx context.Context) {
	defer l.lose()
	defer l.contender.watcher.Close()
	for {
		events, err := l.contender.watcher.Next(ctx)
		if err != nil {
			return
		}
		for _, ev := range events {
			if !ev.Synced && ev.Path == l.contender.path && ev.Node.Created != l.token {
				l.leave(true) // others of its nodes may be there, or come
				return
			}
		}
	}
}

const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// A pause grows with every use. The zero value is ready.
type pause struct {
	next  time.Duration
	cause error // why the last request failed that could be repeated
}

// beforeRetry waits before a request that failed with err is repeated. It fails
// with err when that is no use, and when ctx or the session ends.
func (p *pause) beforeRetry(ctx context.Context, ses registry.Session, err error) error {
	switch {
	case ses.Err() != nil:
		return ses.Err()
	case err == nil:
		return ctx.Err()
	case !errors.Is(err, registry.ErrUncertain) && !errors.Is(err, registry.ErrUnavailable):
		if ctx.Err() != nil && p.cause != nil { // err is only that ctx has ended
			return unreachable(ctx, p.cause)
		}
		return cmp.Or(ctx.Err(), err)
	case ctx.Err() != nil: // err is why the time did not do
		return unreachable(ctx, err)
	}
	p.cause = err
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(max(2*p.next, minPause), maxPause)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return unreachable(ctx, err)
	case <-ses.Done():
		return ses.Err()
	}
}

// unreachable says that ctx ended while the service did not answer. Whether it has done
// what it was asked is nobody's matter any more: the contender leaves.
func unreachable(ctx context.Context, err error) error {
	return fmt.Errorf("%w: %w: %v", registry.ErrUnavailable, ctx.Err(), err) //nolint:errorlint // of one class
}
