package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
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
func (l *Link) Children(ctx context.Context, path string, watch bool) ([]string, *zk.Stat, error) {
	type answer struct {
		names []string
		stat  *zk.Stat
	}
	a, err := read(ctx, l, watch, opChildren, path, func() (answer, error) {
		names, stat, err := l.zk.Children(path)
		return answer{names, stat}, err
	})
	return a.names, a.stat, err
}

// Multi applies ops, all or none. A nil error comes with the results; an error of
// the server's with one result for each op, of which the first that has an error
// names the failure. Otherwise the error wraps registry.ErrSessionLost alone or
// ErrUnavailable or the context's own (never sent), ErrInvalid (cannot be sent), or
// ErrUncertain, also with ErrSessionLost.
func (l *Link) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if n := EncodedSize(ops...); n >= MaxRequest {
		return nil, fmt.Errorf("zookeeper: %w: the request has %d bytes, less than %d fit", registry.ErrInvalid, n, MaxRequest)
	}
	own := owned(ops)
	return write(ctx, l, func() ([]zk.MultiResponse, error) { return l.zk.Multi(own...) })
}

// Create makes one node and returns its path, to which the service has added a
// number when flags say so. The errors are those of Multi.
func (l *Link) Create(ctx context.Context, path string, value []byte, flags int32, acl []zk.ACL) (string, error) {
	if n := EncodedSize(&zk.CreateRequest{Path: path, Data: value, Acl: acl}); n >= MaxRequest {
		return "", fmt.Errorf("zookeeper: %w: the request has %d bytes, less than %d fit", registry.ErrInvalid, n, MaxRequest)
	}
	value = bytes.Clone(value)
	return write(ctx, l, func() (string, error) { return l.zk.Create(path, value, flags, acl) })
}

// Set replaces the value of one node at a version, or at any with -1. The errors are
// those of Multi.
func (l *Link) Set(ctx context.Context, path string, value []byte, version int32) (*zk.Stat, error) {
	if n := EncodedSize(&zk.SetDataRequest{Path: path, Data: value}); n >= MaxRequest {
		return nil, fmt.Errorf("zookeeper: %w: the request has %d bytes, less than %d fit", registry.ErrInvalid, n, MaxRequest)
	}
	value = bytes.Clone(value)
	return write(ctx, l, func() (*zk.Stat, error) { return l.zk.Set(path, value, version) })
}

// Delete removes one node at a version, or at any with -1. The errors are those of
// Multi.
func (l *Link) Delete(ctx context.Context, path string, version int32) error {
	_, err := write(ctx, l, func() (struct{}, error) { return struct{}{}, l.zk.Delete(path, version) })
	return err
}

// owned copies the values: a call that is given up may still be sent.
func owned(ops []any) []any {
	own := make([]any, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			c := *op
			c.Data = bytes.Clone(op.Data)
			own[i] = &c
		case *zk.SetDataRequest:
			c := *op
			c.Data = bytes.Clone(op.Data)
			own[i] = &c
		default:
			own[i] = op
		}
	}
	return own
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
		v, err := within(ctx, l, f)
		switch {
		case errors.Is(err, errLost):
			return zero, l.Err()
		case errors.Is(err, errLeft):
			return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrUnavailable, ctx.Err())
		case err == nil || answered(err):
			return v, err
		case errors.Is(err, zk.ErrInvalidPath) || errors.Is(err, zk.ErrShortBuffer):
			return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
		}
		last = err
		if n > 0 && !sleep(ctx, min(time.Duration(n)*time.Millisecond, maxPause)) {
			return zero, gaveUp(fmt.Errorf("zookeeper: %w: %w", registry.ErrUnavailable, ctx.Err()), last)
		}
	}
}

// write sends once.
func write[T any](ctx context.Context, l *Link, f func() (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil && l.Err() == nil {
		return zero, err
	}
	if err := l.await(ctx); err != nil {
		return zero, err
	}
	v, err := within(ctx, l, f)
	switch {
	case err == nil || answered(err):
		return v, err
	case errors.Is(err, errLost):
		return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, l.Err())
	case errors.Is(err, errLeft):
		return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, ctx.Err())
	case errors.Is(err, zk.ErrInvalidPath) || errors.Is(err, zk.ErrShortBuffer):
		return zero, fmt.Errorf("zookeeper: %w: %w", registry.ErrInvalid, err)
	}
	if lost := l.Err(); lost != nil {
		return zero, fmt.Errorf("zookeeper: %w: %w (%w)", registry.ErrUncertain, lost, err)
	}
	return zero, fmt.Errorf("zookeeper: %w: %w%s", registry.ErrUncertain, err, l.whyBroken(err))
}

// whyBroken adds to the client's "connection closed" what the Link knows of it.
func (l *Link) whyBroken(err error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, zk.ErrConnectionClosed) || l.broke == nil {
		return ""
	}
	return " (" + l.broke.Error() + ")"
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
	case <-l.done:
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
	if !l.spawn(func() {
		v, err := f()
		results <- result{v, err}
	}) {
		return zero, errLost
	}
	select {
	case r := <-results:
		return r.v, r.err
	case <-ctx.Done():
	case <-l.done:
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

// spawn runs f on a goroutine that Close joins. False: the session has ended.
func (l *Link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.work.Go(f)
	return true
}

// refusals are what a server says of an operation. Everything else that the client
// returns leaves open whether it was carried out.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
	zk.ErrInvalidACL, zk.ErrBadArguments, zk.ErrAuthFailed,
}

// answered reports whether err is the server's own word on an operation.
func answered(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	// The client has no name for the codes of newer servers: quota exceeded (3.7),
	// throttled (3.6).
	return strings.HasSuffix(err.Error(), "unknown error: -125") || strings.HasSuffix(err.Error(), "unknown error: -127")
}
