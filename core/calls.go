package core

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// listenTimeout bounds a call of a listener unless another bound is given.
const listenTimeout = 10 * time.Second

// listenGrace is how long a listener has to return after its context has ended.
const listenGrace = 100 * time.Millisecond

// calls are those of a job's listeners that are under way. Its lock is a leaf.
type calls struct {
	changed func() // called when one has returned
	joined  sync.WaitGroup

	mu   sync.Mutex
	busy []string
}

// take notes a call for bounded; with alone, unless that listener is being called already.
func (c *calls) take(name string, alone bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if alone && slices.Contains(c.busy, name) {
		return false
	}
	c.busy = append(c.busy, name)
	return true
}

// names are the listeners that are being called, as Stop names them.
func (c *calls) names(job string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.busy {
		names = append(names, job+"/"+name)
	}
	return names
}

// bounded calls a listener that was taken, whose context ends after timeout. It returns when that has, or a
// moment after its time: then it was late, and goes on for itself.
func (c *calls) bounded(ctx context.Context, name string, timeout time.Duration, call func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the listener took longer than %v: %w", timeout, context.DeadlineExceeded))
	type result struct {
		late bool
		err  error
	}
	returned := make(chan result, 1)
	c.joined.Go(func() {
		defer cancel()
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			c.over(name) // before anybody is called again
			returned <- result{ctx.Err() != nil, err}
		}()
		err = call(ctx)
	})
	select {
	case is := <-returned:
		return is.late, is.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(listenGrace)
	defer grace.Stop()
	select {
	case is := <-returned: // ctx has ended with it, perhaps: it says itself whether that came first
		return is.late, is.err
	case <-grace.C:
		return true, context.Cause(ctx)
	}
}

func (c *calls) over(name string) {
	c.mu.Lock()
	at := slices.Index(c.busy, name)
	c.busy = slices.Delete(c.busy, at, at+1)
	c.mu.Unlock()
	c.changed()
}
