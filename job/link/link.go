package link

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/elasticron/elasticron/core"
)

// A Link makes a job of a job.
type Link = func(core.Job) core.Job

// Chain puts links around a job, the first one outermost.
func Chain(work core.Job, links ...Link) core.Job {
	for _, l := range slices.Backward(links) {
		work = l(work)
	}
	return work
}

// A Listener is told of runs of items. Its functions may be nil.
type Listener struct {
	// Before is called before the run. Its error is that of the run, whose function is
	// not called then.
	Before func(ctx context.Context, s core.Shard) error
	// After is called after it, with how long it took and the error that it ends with;
	// also when Before has failed, and with core.ErrGoexit when the run ended its goroutine.
	// ctx may have ended.
	After func(ctx context.Context, s core.Shard, took time.Duration, err error)
}

// Listen tells a listener of each run of an item. Listeners of whole fires are the
// scheduler's.
func Listen(l Listener) Link {
	return func(next core.Job) core.Job {
		return core.JobFunc(func(ctx context.Context, s core.Shard) error {
			err := core.ErrGoexit // unless what is called returns
			if begun := time.Now(); l.After != nil {
				defer func() { l.After(ctx, s, time.Since(begun), err) }()
			}
			err = listened(ctx, s, l, next)
			return err
		})
	}
}

func listened(ctx context.Context, s core.Shard, l Listener, next core.Job) error {
	if l.Before != nil {
		if err := l.Before(ctx, s); err != nil {
			return err
		}
	}
	return Call(ctx, next, s)
}

// Call runs a job, and returns its panic as a *core.PanicError.
func Call(ctx context.Context, work core.Job, s core.Shard) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &core.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return work.Run(ctx, s)
}
