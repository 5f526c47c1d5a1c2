package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/offset"
	"github.com/elasticron/elasticron/internal/field"
)

// commitGrace is how long the outcome of a batch is still waited for once the run's context has
// ended: less than a scheduler that stops waits for the run.
const commitGrace = 800 * time.Millisecond

// Dataflow fetches data of an item and processes them, a batch at a time: one for each run, or with
// Streaming as many as there are. How far it has come stands in the registry (package offset),
// with the counts of what succeeded and failed, set after each batch by nobody but the item's owner.
//
// A run ends with an error, and the batch is not passed, when Fetch fails, when Process fails and
// Failed does not deal with it, or when the offset cannot be set. The next run begins with the same
// batch: data are processed at least once.
type Dataflow[T any] struct {
	// Fetch returns what follows an offset, about so many data, and the offset behind them. The first
	// offset of all is "", or what ElasticJob 1 left. No data are the end, for now.
	Fetch func(ctx context.Context, s core.Shard, from string, count int) (data []T, next string, err error)
	// Process processes data. Its error, or panic, is that of all of them.
	Process func(ctx context.Context, s core.Shard, data []T) error
	// Failed gets the data that a call of Process failed on. When it returns nil they are dealt with, and the
	// offset passes them. Without it no failure is.
	Failed func(ctx context.Context, s core.Shard, data []T, err error) error
	// Rebase says where an item starts once the sharding total count has changed, with which its
	// data are others; before are the offsets that were set under other totals, by item. Without
	// it such a run fails, so that nothing is left out unnoticed.
	Rebase func(ctx context.Context, s core.Shard, before []offset.Position) (from string, err error)

	// Streaming goes on with the next batch until there are no data, the item is wanted elsewhere
	// (Shard.Yield), or the scheduler stops.
	Streaming bool
	// FetchCount is how many data Fetch is asked for. 0 is 100.
	FetchCount int
	// Concurrency is how many calls of Process share a batch at once, each with a part of it in its
	// order. 0 is 1.
	Concurrency int
	// CountInterval is how long what an instance processes goes into one count. 0 is 5 minutes.
	CountInterval time.Duration
	// Unrecorded keeps no offset and counts nothing: Fetch, which always gets "", knows by itself
	// what is left.
	Unrecorded bool
}

// Validate reports what is wrong, as *core.ConfigError.
func (d *Dataflow[T]) Validate() error {
	var errs []error
	if d.Fetch == nil {
		errs = append(errs, field.Errorf("Fetch", "is nil; give the function that returns data"))
	}
	if d.Process == nil {
		errs = append(errs, field.Errorf("Process", "is nil; give the function that processes them"))
	}
	if d.FetchCount < 0 {
		errs = append(errs, field.Errorf("FetchCount", "%d is negative; give 0 for the default, or at least 1", d.FetchCount))
	}
	if d.Concurrency < 0 {
		errs = append(errs, field.Errorf("Concurrency", "%d is negative; give 0 for the default, or at least 1", d.Concurrency))
	}
	if d.CountInterval < 0 {
		errs = append(errs, field.Errorf("CountInterval", "%v is negative; give 0 for the default, or for example 5m", d.CountInterval))
	}
	return errors.Join(errs...)
}

// Configured implements Configurable, with the props of DATAFLOW.
func (d *Dataflow[T]) Configured(cfg core.JobConfig) (core.Job, error) {
	p := &props{of: cfg.Props}
	c := *d
	c.Streaming = p.flag("streaming.process", d.Streaming)
	c.FetchCount = cmp.Or(p.number("dataflow.fetch.count"), d.FetchCount)
	c.Concurrency = cmp.Or(p.number("dataflow.concurrency"), d.Concurrency)
	c.CountInterval = cmp.Or(time.Duration(p.number("dataflow.count.interval.seconds"))*time.Second, d.CountInterval)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &c, c.Validate()
}

// Run implements core.Job.
func (d *Dataflow[T]) Run(ctx context.Context, s core.Shard) error {
	if err := d.Validate(); err != nil {
		return err
	}
	f := flow[T]{Dataflow: d, shard: s}
	if err := f.open(ctx); err != nil {
		return fmt.Errorf("dataflow: %w", err)
	}
	for {
		more, err := f.batch(ctx)
		if err != nil {
			return fmt.Errorf("dataflow: %w", err)
		}
		if !more || !d.Streaming || ended(ctx, s) {
			return nil
		}
	}
}

// ended reports whether a run is asked to end.
func ended(ctx context.Context, s core.Shard) bool {
	select {
	case <-s.Yield:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// A flow is one run of a Dataflow.
type flow[T any] struct {
	*Dataflow[T]

	shard core.Shard
	at    *offset.Offset // nil when nothing is recorded
	from  string
}

// open finds out where the run starts.
func (f *flow[T]) open(ctx context.Context) (err error) {
	if f.Unrecorded {
		return nil
	}
	if f.at, err = offset.Open(ctx, f.shard, offset.Config{CountInterval: f.CountInterval}); err != nil {
		return err
	}
	f.from = f.at.Position().Offset
	before := f.at.Before()
	switch {
	case len(before) == 0:
		return nil
	case f.Rebase == nil:
		return field.Errorf("Rebase", "is nil, and offsets were set under a sharding total count of %d, which is %d now; give the function that says where items start",
			before[0].Total, f.shard.Total)
	}
	if f.from, err = f.Rebase(ctx, f.shard, before); err != nil {
		return fmt.Errorf("rebase: %w", err)
	}
	return nil
}

// batch does one batch. It reports whether there may be more.
func (f *flow[T]) batch(ctx context.Context) (more bool, err error) {
	data, next, err := f.Fetch(ctx, f.shard, f.from, cmp.Or(f.FetchCount, 100))
	if err != nil {
		return false, fmt.Errorf("fetch: %w", err)
	}
	if len(data) == 0 {
		if next == f.from {
			return false, nil
		}
		return false, f.pass(ctx, next, offset.Counted{})
	}
	failed, err := f.process(ctx, data)
	switch {
	case err == nil:
		return true, f.pass(ctx, next, offset.Counted{Success: len(data) - failed, Failure: failed})
	case ctx.Err() == nil: // what was broken off has not failed
		err = errors.Join(err, f.pass(ctx, f.from, offset.Counted{Failure: failed}))
	}
	return false, err
}

// pass sets the offset.
func (f *flow[T]) pass(ctx context.Context, next string, counted offset.Counted) error {
	if f.at == nil {
		return nil
	}
	// Who is stopped now has done the work all the same: it is not to be done twice.
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(commitGrace, func() { cancel(context.Cause(ctx)) })
	})
	defer stop()
	f.from = next
	return f.at.Set(lasting, next, counted)
}

// A part of a batch, and what became of it.
type part[T any] struct {
	data []T
	err  error
}

// process processes a batch. It returns how many data failed, and the errors that nobody has
// dealt with.
func (f *flow[T]) process(ctx context.Context, data []T) (failed int, err error) {
	parts := divide(data, cmp.Or(f.Concurrency, 1))
	if len(parts) == 1 {
		f.call(ctx, &parts[0])
	} else {
		var all sync.WaitGroup
		for i := range parts {
			all.Go(func() { f.call(ctx, &parts[i]) })
		}
		all.Wait()
	}
	var errs []error
	for _, p := range parts {
		if p.err == nil {
			continue
		}
		failed += len(p.data)
		if f.Failed != nil && ctx.Err() == nil {
			p.err = f.Failed(ctx, f.shard, p.data, p.err)
		}
		errs = append(errs, p.err)
	}
	return failed, errors.Join(errs...)
}

// call processes a part. A panic is its error, and so is the end of its goroutine.
func (f *flow[T]) call(ctx context.Context, p *part[T]) {
	p.err = core.ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			p.err = &core.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	p.err = f.Process(ctx, f.shard, p.data)
}

// divide makes at most n parts of data, of sizes that differ by one at most.
func divide[T any](data []T, n int) []part[T] {
	n = min(n, len(data))
	parts := make([]part[T], n)
	for i := range parts {
		parts[i].data = data[i*len(data)/n : (i+1)*len(data)/n]
	}
	return parts
}

var (
	_ core.Job     = (*Dataflow[int])(nil)
	_ Configurable = (*Dataflow[int])(nil)
)
