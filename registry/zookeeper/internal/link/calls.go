package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/wait"
)

// Get reads a node. With watch its next change or its end is notified. A node that
// does not exist is zk.ErrNoNode, and arms nothing.
func (l *Link) Get(ctx context.Context, path string, watch bool) ([]byte, *zk.Stat, error) {
	type answer struct {
		value []byte
		stat  *zk.Stat
	}
	a, err := read(ctx, l, watch, opGetData, path, func() (answer, error) {
		value, stat, err := l.zk.Get(path)
		return answer{value, stat}, err
	})
	return a.value, a.stat, err
}

// A Found is what GetAll says of a node.
type Found struct {
	Value []byte
	Stat  *zk.Stat
	Err   error // nil, zk.ErrNoNode or zk.ErrNoAuth
}

// GetAll reads nodes by one request: of one connection a server reads packets one by one. It returns nothing where the
// server knows no such request, or answers with another error: then each is to be read by itself.
func (l *Link) GetAll(ctx context.Context, paths []string) ([]Found, error) {
	if !l.readsMany.Load() {
		return nil, nil
	}
	return read(ctx, l, false, opMultiRead, "", func() ([]Found, error) { return l.getAll(paths) })
}

func (l *Link) getAll(paths []string) (found []Found, err error) {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	over := make(chan struct{})
	sent := c.reads(paths, func(code int32, body []byte, failed error) {
		defer close(over)
		switch {
		case failed != nil:
			err = failed
		case code != 0:
			l.readsMany.Store(code != errUnknown)
		default:
			if found, err = parseReads(body); found != nil && len(found) != len(paths) {
				err = errMalformed
			}
		}
	})
	if !sent {
		return nil, errClosed
	}
	<-over
	return found, err
}

// Exists reads what a node is without its value; nil when there is none. With
// watch its next change, its end or its creation is notified.
func (l *Link) Exists(ctx context.Context, path string, watch bool) (*zk.Stat, error) {
	return read(ctx, l, watch, opExists, path, func() (*zk.Stat, error) {
		exists, stat, err := l.zk.Exists(path)
		if !exists {
			stat = nil
		}
		return stat, err
	})
}

// Children lists the names below a node, in no order. With watch the next
// creation or deletion of a child, or the node's end, is notified.
func (l *Link) Children(ctx context.Context, path string, watch bool) ([]string, error) {
	return read(ctx, l, watch, opChildren, path, func() ([]string, error) {
		names, _, err := l.zk.Children(path)
		return names, err
	})
}

// read repeats a read until it is answered, or ctx or the session ends.
func read[T any](ctx context.Context, l *Link, watch bool, op int32, path string, f func() (T, error)) (T, error) {
	if watch {
		defer l.watches.want(op, path)()
	}
	var zero T
	var last error
	for n := 0; ; n++ {
		if err := l.await(ctx); err != nil {
			return zero, gaveUp(err, last)
		}
		var v T
		var err error
		// The session's own goroutines need none more: Close joins them, and the client answers f by then.
		if ctx == l.Context() {
			v, err = f()
		} else {
			v, err = within(ctx, l, f)
		}
		switch {
		case errors.Is(err, errLost), errors.Is(err, errNotBegun):
			return zero, l.Err()
		case errors.Is(err, errLeft):
			return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrUnavailable, ctx.Err())
		case err == nil || answered(err):
			return v, err
		case errors.Is(err, zk.ErrInvalidPath) || errors.Is(err, zk.ErrShortBuffer):
			return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
		}
		last = err
		if n > 0 && !wait.For(ctx, min(time.Duration(n)*time.Millisecond, maxPause)) {
			return zero, gaveUp(fmt.Errorf("zookeeper: %w: %w", registry.ErrUnavailable, ctx.Err()), last)
		}
	}
}

// await returns nil once there is a connection. Nothing has been sent when it fails.
func (l *Link) await(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	select {
	case <-l.connected():
		return nil
	default:
	}
	select {
	case <-l.connected():
		return nil
	case <-l.Done():
		return l.Err()
	case <-ctx.Done():
		return fmt.Errorf("zookeeper: %w: %w (%w)", registry.ErrUnavailable, ctx.Err(), l.servers.reasons())
	}
}

func gaveUp(err, last error) error {
	if last == nil || errors.Is(err, registry.ErrSessionLost) {
		return err
	}
	return fmt.Errorf("%w (last: %w)", err, last)
}

var (
	errLeft = errors.New("the caller's context ended first")
	errLost = errors.New("the session ended first")

	errNotBegun = errors.New("the session had ended before")
)

// within calls f, and does not wait for it past the end of ctx or of the session.
// f goes on then until the client answers it, which it does at the latest when it is closed.
func within[T any](ctx context.Context, l *Link, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	var zero T
	results := make(chan result, 1)
	if !l.Go(func() {
		v, err := f()
		results <- result{v, err}
	}) {
		return zero, errNotBegun
	}
	select {
	case r := <-results:
		return r.v, r.err
	case <-ctx.Done():
	case <-l.Done():
	}
	select {
	case r := <-results: // both: what is known is better
		return r.v, r.err
	default:
	}
	if l.Err() != nil {
		return zero, errLost
	}
	return zero, errLeft
}

// refusals are what a server says of an operation. Everything else that the client
// returns leaves open whether it was carried out.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
	zk.ErrInvalidACL, zk.ErrBadArguments, zk.ErrAuthFailed,
}

// IsAny reports whether err is one of these.
func IsAny(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// answered reports whether err is the server's own word on an operation.
func answered(err error) bool {
	// The client has no name for the codes of newer servers: quota exceeded (3.7), throttled (3.6).
	return IsAny(err, refusals) || strings.HasSuffix(err.Error(), "unknown error: -125") ||
		strings.HasSuffix(err.Error(), "unknown error: -127")
}
